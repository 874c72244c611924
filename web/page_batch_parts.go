package web

import (
	"slices"
	"time"

	"github.com/redrive-dlq/redrive/dlq/board"
	"github.com/redrive-dlq/redrive/rbac"
	"github.com/redrive-dlq/redrive/views/batches"
	"github.com/redrive-dlq/redrive/views/component"
)

// ordered says whether the batch was confirmed, so that replays of it leave or
// left.
func ordered(b board.Batch) bool {
	switch b.State {
	case "planning", "planned", "waiting":
		return false
	case "cancelled":
		return b.DueAt != nil || b.Kind == "single"
	}
	return true
}

// left is how many replays are still to leave.
func left(b board.Batch) int {
	return b.Tallies["plan.eligible"] + b.Tallies["pending"] + b.Tallies["ready"]
}

// progressOf is how far an ordered batch is; what the plan blocked isn't in it.
// What was eligible and never taken counts as cancelled with its batch.
func progressOf(b board.Batch) batches.Progress {
	t := b.Tallies
	p := batches.Progress{Succeeded: t["succeeded"], AlreadyDone: t["already_done"], Failed: t["failed"], Unconfirmed: t["unconfirmed"],
		Skipped: t["skipped"], Cancelled: t["cancelled"], Out: t["released"], Left: left(b)}
	if b.FinishedAt != nil {
		p.Cancelled, p.Left = p.Cancelled+p.Left, 0
	}
	return p
}

// batchName is a batch in a sentence: "batch 41, 4,000 send_welcome_email in production".
func batchName(b board.Batch) string {
	n := progressOf(b).Total()
	if !ordered(b) {
		n = b.Planned
	}
	return "batch " + formatID(b.ID) + ", " + component.Count(n) + " " + component.Cut(b.JobType, 60) + " in " + b.Environment
}

// mayRun requires what pausing, resuming and slowing a batch takes; the domain
// checks it again.
func (s *Server) mayRun(p *rbac.Principal, b board.Batch) error {
	needs := []rbac.Permission{rbac.RunBatch}
	if t, ok := s.config.Types().Type(b.JobType); ok && t.MoneyRisk() {
		needs = append(needs, rbac.ReplayMoney)
	}
	return p.Require(b.Environment, b.JobType, needs...)
}

// mayCancelBatch requires what cancelling takes: a plan is withdrawn by who may
// plan, a request, or what went without a second person, also by who may approve
// it.
func (s *Server) mayCancelBatch(p *rbac.Principal, b board.Batch) error {
	switch b.State {
	case "planning", "planned":
		return p.Require(b.Environment, b.JobType, rbac.PlanBatch)
	case "waiting":
		if p.Can(rbac.ApproveBatch, b.Environment, b.JobType) {
			return nil
		}
	case "scheduled", "running", "paused":
		if b.NoSecondPerson() && p.Can(rbac.ApproveBatch, b.Environment, b.JobType) {
			return nil
		}
	}
	return s.mayRun(p, b)
}

// mayHold says whether the person may hold all that the hold would stop: what
// isn't limited to a type isn't for one whose right is.
func mayHold(p *rbac.Principal, environment, jobType string) bool {
	if !p.Can(rbac.HoldReplays, environment, jobType) {
		return false
	}
	everywhere, limits := p.Scopes(rbac.HoldReplays)
	return everywhere || jobType != "" || slices.ContainsFunc(limits, func(g rbac.Grant) bool {
		return g.JobType == "" && (g.Environment == "" || g.Environment == environment)
	})
}

// rateOf is how many replays a minute may leave, by the batch and its type.
func (s *Server) rateOf(b board.Batch) int {
	t, ok := s.config.Types().Type(b.JobType)
	switch {
	case !ok:
		return b.RatePerMinute
	case b.RatePerMinute == 0:
		return t.Limit().PerMinute
	}
	return min(b.RatePerMinute, t.Limit().PerMinute)
}

// canaryOf is how many replays would leave first after a stop.
func (s *Server) canaryOf(b board.Batch) int {
	if t, ok := s.config.Types().Type(b.JobType); ok && b.Canary == 0 {
		return t.Canary()
	}
	return b.Canary
}

// stopPct is the share of failures above which the batch stops, in percent.
func (s *Server) stopPct(b board.Batch) int {
	if t, ok := s.config.Types().Type(b.JobType); ok {
		return t.StopAtFailurePct()
	}
	return 0
}

// lasts says how long so many replays take at a rate: "about 33 min".
func lasts(n, perMinute int) string {
	if n == 0 || perMinute <= 0 {
		return "no time"
	}
	return "about " + component.Duration((time.Duration(n) * time.Minute / time.Duration(perMinute)).Round(time.Second))
}
