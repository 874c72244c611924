package web

import (
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/redrive-dlq/redrive/dlq/board"
	"github.com/redrive-dlq/redrive/dlq/jobtype"
	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/dlq/replay"
	"github.com/redrive-dlq/redrive/views/batches"
	"github.com/redrive-dlq/redrive/views/component"
	"github.com/redrive-dlq/redrive/views/layout"
	"github.com/redrive-dlq/redrive/views/route"
)

type reviewForm struct {
	PlanHash string `form:"plan_hash"`
	Reason   string `form:"reason"`
	When     string `form:"when"` // soon, now or later
	At       string `form:"at"`
	Rate     string `form:"rate_per_minute"`
	Canary   string `form:"canary"`
	Repeat   string `form:"accept_repeat"` // accept or refuse
}

// order is the review as the domain takes it. Errors: Invalid with the field.
func (f reviewForm) order(b board.Batch, now time.Time) (o replay.ReviewOrder, err error) {
	o = replay.ReviewOrder{Batch: b.ID, PlanHash: f.PlanHash, Reason: f.Reason, AcceptRepeat: f.Repeat == "accept"}
	switch f.When {
	case "", "soon":
		o.StartAfter = replay.DefaultStartAfter
	case "now":
	case "later":
		if o.StartAt, err = utcMinute(route.FieldAt, f.At); err != nil {
			return o, err
		}
	default:
		return o, problem.At(problem.Invalid, route.FieldAt, "Choose when it starts.")
	}
	if o.RatePerMinute, err = strconv.Atoi(f.Rate); err != nil || o.RatePerMinute < 1 {
		return o, problem.At(problem.Invalid, route.FieldRate, "Write a whole number of replays a minute, at least 1.")
	}
	if o.Canary, err = strconv.Atoi(f.Canary); err != nil {
		return o, problem.At(problem.Invalid, route.FieldCanary, "Write a whole number, 0 for no canary.")
	}
	return o, nil
}

// planBatch reads the batch of the address; replays must be there.
func (s *Server) planBatch(c echo.Context) (board.Batch, error) {
	if s.config.Replays == nil {
		return board.Batch{}, errNoReplays
	}
	id, err := idParam(c, "id")
	if err != nil {
		return board.Batch{}, err
	}
	return board.BatchOf(c.Request().Context(), s.config.Pool, s.principal(c), id)
}

// reviewPage proposes how the batch shall run, or shows how it was reviewed.
func (s *Server) reviewPage(c echo.Context) error {
	b, err := s.planBatch(c)
	if err != nil {
		return err
	}
	if err := s.mayRun(s.principal(c), b); err != nil {
		return err
	}
	if (b.State != "planned" && b.State != "waiting") || b.Eligible == 0 {
		return s.redirectWithFlash(c, route.Batch(formatID(b.ID)), layout.Flash{Tone: "warning", Text: "This batch can't be reviewed as it is. Nothing was changed."})
	}
	t, ok := s.config.Types().Type(b.JobType)
	if !ok {
		return problem.New(problem.Conflict, "The catalogue no longer declares %s, so nothing of it can be replayed.", b.JobType)
	}
	d := replay.ReviewDefaults(t, b.Eligible)
	form := reviewForm{Reason: b.Reason, Rate: strconv.Itoa(d.RatePerMinute), Canary: strconv.Itoa(d.Canary)}
	if b.ReviewHash != "" {
		form.Rate, form.Canary = strconv.Itoa(min(b.RatePerMinute, d.RatePerMinute)), strconv.Itoa(min(b.Canary, b.Eligible))
		switch {
		case b.StartAt != nil:
			form.When, form.At = "later", b.StartAt.UTC().Format("2006-01-02T15:04")
		case b.StartAfterS == 0:
			form.When = "now"
		}
	}
	form.PlanHash = b.PlanHash
	return s.renderReview(c, http.StatusOK, b, t, form, nil)
}

func (s *Server) reviewSubmit(c echo.Context) error {
	b, err := s.planBatch(c)
	if err != nil {
		return err
	}
	form, err := bind[reviewForm](c)
	if err != nil {
		return err
	}
	o, err := form.order(b, s.people.Now())
	if err == nil {
		_, err = s.config.Replays.Review(c.Request().Context(), s.principal(c), o)
	}
	if err == nil {
		return c.Redirect(http.StatusSeeOther, route.BatchConfirm(formatID(b.ID)))
	}
	t, ok := s.config.Types().Type(b.JobType)
	if !ok || (!problem.Is(err, problem.Invalid) && !problem.Is(err, problem.Conflict)) {
		return err
	}
	return s.renderReview(c, s.explain(err).status, b, t, form, err)
}

func (s *Server) renderReview(c echo.Context, status int, b board.Batch, t *jobtype.Type, f reviewForm, cause error) error {
	limit := t.Limit().PerMinute
	rate, err := strconv.Atoi(f.Rate)
	if err != nil || rate < 1 {
		rate = limit
	}
	props := batches.ReviewProps{Row: batchRow(b), PlanHash: f.PlanHash, Sentence: s.reviewWords(b, f, rate),
		Reason: f.Reason, When: f.When, At: f.At, Rate: f.Rate, RateMax: limit, Lasts: lasts(b.Eligible, rate), Canary: f.Canary,
		CanaryMax: min(b.Eligible, replay.MaxCanary), StopPct: t.StopAtFailurePct(), Repeat: f.Repeat,
		Placeholder: s.people.Now().UTC().Add(time.Hour).Format("2006-01-02T15:04")}
	if !t.Idempotent() {
		props.NotIdempotent = "Nothing keeps " + component.Cut(b.JobType, 60) + " from having its effect twice"
	}
	switch {
	case t.MoneyRisk():
		props.NeedsApproval = "A replay of " + component.Cut(b.JobType, 60) + " may move money."
	case b.Eligible > t.ApprovalAbove():
		props.NeedsApproval = "More than " + component.Count(t.ApprovalAbove()) + " replays of " + component.Cut(b.JobType, 60) + " a day take a second person."
	}
	if why := props.NeedsApproval; why != "" && s.config.Types().CoolsOff(b.Environment, t) {
		props.NeedsApproval = ""
		if i := slices.IndexFunc(props.Sentence, func(line string) bool { return strings.HasPrefix(line, "It starts ") }); i >= 0 {
			props.Sentence[i] = coolsOff(b.Environment, why)
		}
	}
	at, text := fault(cause)
	switch at {
	case route.FieldReason:
		props.ReasonError = text
	case route.FieldAt, "start_at", "start_after_seconds":
		props.AtError = text
	case route.FieldRate:
		props.RateError = text
	case route.FieldCanary:
		props.CanaryError = text
	case route.FieldRepeat:
		props.RepeatError = text
	default:
		props.Problem = text
	}
	if props.Page, err = s.pageIn(c, "Review: how "+component.Plural(b.Eligible, "replay", "replays")+" of "+component.Cut(b.JobType, 60)+" shall run in "+b.Environment,
		layout.SectionBatches, b.Environment, route.Batches); err != nil {
		return err
	}
	return s.render(c, status, batches.Review(props))
}

// reviewWords say what the batch does as the form stands: first what and when.
func (s *Server) reviewWords(b board.Batch, f reviewForm, rate int) []string {
	canary := s.canaryOf(b)
	if n, err := strconv.Atoi(f.Canary); err == nil {
		canary = n
	}
	words := s.willHappen(b, rate, canary)
	return slices.Insert(words, min(1, len(words)), f.startsWhen(s.people.Now()))
}

// fault is what was wrong with a form: the field, empty for none, and the
// message.
func fault(err error) (at, text string) {
	var p *problem.Error
	if errors.As(err, &p) {
		return p.Field, p.Message
	}
	return "", ""
}
