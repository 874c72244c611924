package web

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/redrive-dlq/redrive/dlq/board"
	"github.com/redrive-dlq/redrive/dlq/redact"
	"github.com/redrive-dlq/redrive/dlq/replay"
	"github.com/redrive-dlq/redrive/rbac"
	"github.com/redrive-dlq/redrive/views/batches"
	"github.com/redrive-dlq/redrive/views/component"
	"github.com/redrive-dlq/redrive/views/route"
)

// planView shows a batch that isn't ordered: its plan, or that it waits for a
// second person.
func (s *Server) planView(c echo.Context, b board.Batch) error {
	props := batches.PlanProps{Frozen: b.Planned, Problem: reasonText(b.PlanProblem), Who: s.batchWho(b), ReviewedAt: when(b.ReviewedAt),
		Stale: s.staleplan(b), Asked: s.askFor(c, b), PlanCan: s.planCan(c, b)}
	if b.ReviewHash == "" {
		props.ReviewedAt = when(nil)
	}
	steps := []func() error{
		func() (err error) { props.Head, err = s.batchHead(c, b, planTitle(b)); return err },
		func() (err error) { props.Trail, err = s.batchTrail(c, b); return err },
	}
	if b.State != "planning" {
		steps = append(steps,
			func() (err error) { props.Verdicts, err = s.planVerdicts(c, b); return err },
			func() (err error) { props.WouldDo, err = s.planWords(c, b); return err },
			func() (err error) { props.Warnings, err = s.batchWaits(c, b); return err },
			func() (err error) { props.Canary, err = s.planCanary(c, b); return err },
			func() (err error) { props.Items, err = s.batchItems(c, b); return err })
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return s.render(c, http.StatusOK, batches.Plan(props))
}

// staleplan says whether a plan is too old to be confirmed.
func (s *Server) staleplan(b board.Batch) bool {
	return b.State == "planned" && b.PlannedAt != nil && s.people.Now().Sub(*b.PlannedAt) > replay.PlanFresh
}

func planTitle(b board.Batch) string {
	what := component.Cut(b.JobType, 60)
	switch b.State {
	case "planning":
		return "A replay of " + what + " is being planned, " + b.Environment
	case "waiting":
		return component.Plural(b.Eligible, "replay", "replays") + " of " + what + " wait for a second person, " + b.Environment
	}
	return component.Count(b.Eligible) + " of " + component.Plural(b.Planned, "job", "jobs") + " of " + what + " can be replayed, " + b.Environment
}

// askFor says who asks for a second person; nil when nobody does.
func (s *Server) askFor(c echo.Context, b board.Batch) *batches.Asked {
	if b.State != "waiting" {
		return nil
	}
	id := s.principal(c).UserID
	return &batches.Asked{By: b.ConfirmedBy, Why: b.NeedsApproval, Until: when(b.ApproveUntil), Mine: id == b.ConfirmedByID || id == b.CreatedByID}
}

func (s *Server) planCan(c echo.Context, b board.Batch) (can batches.PlanCan) {
	if s.config.Replays == nil {
		return can
	}
	p := s.principal(c)
	may := func(right rbac.Permission) bool { return p.Can(right, b.Environment, b.JobType) }
	settled := b.State == "planned" || b.State == "waiting"
	run := s.mayRun(p, b) == nil && b.Eligible > 0
	can.Review = run && b.State == "planned" && !s.staleplan(b)
	can.Confirm = can.Review && b.ReviewHash != ""
	can.Approve = b.State == "waiting" && may(rbac.ApproveBatch) && p.UserID != b.ConfirmedByID && p.UserID != b.CreatedByID
	can.Fix = settled && may(rbac.DeclareFix) && b.Verdicts[replay.InvalidInput]+b.Verdicts[replay.AuthNotFixed] > 0
	can.Judge = settled && may(rbac.PlanBatch)
	can.Cancel = s.mayCancelBatch(p, b) == nil
	return can
}

// planVerdicts are the plan's verdicts in the order that people read them, each
// with what lifts it and a few of its jobs.
func (s *Server) planVerdicts(c echo.Context, b board.Batch) ([]batches.Verdict, error) {
	samples, err := board.Samples(c.Request().Context(), s.config.Pool, b)
	if err != nil {
		return nil, err
	}
	can, p := s.planCan(c, b), s.principal(c)
	var list []batches.Verdict
	for _, info := range replay.Verdicts() {
		n := b.Verdicts[info.Code]
		if n == 0 {
			continue
		}
		v := batches.Verdict{Code: info.Code, Title: info.Title, Lifts: info.Lifts, Count: n,
			Href: toItems(route.Change(c.Request().URL, route.ParamVerdict, info.Code))}
		switch {
		case info.Lift == replay.LiftDeclareFix && can.Fix:
			v.Act, v.ActWord = route.BatchFix(formatID(b.ID)), "Declare a fix for all of them"
		case info.Code == replay.TooOld && p.Can(rbac.RunBatch, b.Environment, b.JobType):
			v.Act, v.ActWord = route.BatchOld(formatID(b.ID)), "Take old jobs along"
		}
		for _, r := range samples[info.Code] {
			v.Samples = append(v.Samples, batchItem(r))
		}
		list = append(list, v)
	}
	return list, nil
}

// planWords say what would happen, what is left out, and what to look at first.
func (s *Server) planWords(c echo.Context, b board.Batch) ([]string, error) {
	left, err := board.LeftOutOf(c.Request().Context(), s.config.Pool, b)
	if err != nil {
		return nil, err
	}
	words := s.willHappen(b, s.rateOf(b), s.canaryOf(b))
	if left.Arrived > 0 {
		words = append(words, atLeast(left.Arrived, left.More)+" arrived since: not included.")
	}
	if left.Changed > 0 {
		words = append(words, component.Plural(left.Changed, "job", "jobs")+" of the plan changed since: they would be left out. Judge again to see them as they are.")
	}
	if left.Fixed > 0 {
		words = append(words, "This plan is older than a fix: "+component.Plural(left.Fixed, "blocked job has", "blocked jobs have")+" one that was declared since. Judge again to take them along.")
	}
	if b.OlderLeftOut > 0 {
		words = append(words, "Of "+component.Plural(b.OlderLeftOut, "entity", "entities")+" an older open job stays behind: look whether their order matters.")
	}
	if b.AllowOld != "" {
		words = append(words, "Jobs older than their type allows are taken along: "+redact.Readable(b.AllowOld))
	}
	return words, nil
}

func atLeast(n int, more bool) string {
	if more {
		return "More than " + component.Count(n)
	}
	return component.Count(n)
}

func (s *Server) planCanary(c echo.Context, b board.Batch) ([]batches.Item, error) {
	n := min(s.canaryOf(b), b.Eligible, 12)
	if n == 0 {
		return nil, nil
	}
	found, err := board.CanaryMembers(c.Request().Context(), s.config.Pool, b.ID, n)
	if err != nil {
		return nil, err
	}
	var list []batches.Item
	for _, r := range found {
		item := batchItem(r)
		item.Why = r.Tenant
		list = append(list, item)
	}
	return list, nil
}
