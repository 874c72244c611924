package web

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/redrive-dlq/redrive/dlq"
	"github.com/redrive-dlq/redrive/dlq/jobtype"
	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/dlq/redact"
	"github.com/redrive-dlq/redrive/dlq/replay"
	"github.com/redrive-dlq/redrive/rbac"
	"github.com/redrive-dlq/redrive/views/component"
	"github.com/redrive-dlq/redrive/views/job"
	"github.com/redrive-dlq/redrive/views/layout"
	"github.com/redrive-dlq/redrive/views/route"
)

type replayForm struct {
	Version string `form:"version"` // what shown() wrote: generation and payload version
	Reason  string `form:"reason"`
	When    string `form:"when"` // now or later
	At      string `form:"at"`

	reasonError, atError, problem string
}

var errNoReplays = problem.New(problem.Unavailable, "This console was started without replays. Nothing was done.")

// mayReplay says whether the person may order a replay of the type at all.
func (s *Server) mayReplay(p *rbac.Principal, environment, jobType string) bool {
	t, _ := s.config.Types().Type(jobType)
	return p.Can(replay.Needs(t), environment, jobType)
}

// replayPage is the dry run of one job: it says what would happen, or why not.
func (s *Server) replayPage(c echo.Context) error {
	j, err := s.replayJob(c)
	if err != nil {
		return err
	}
	v, err := s.config.Replays.Judge(c.Request().Context(), s.principal(c), j.ID)
	if err != nil {
		return err
	}
	status := http.StatusOK
	if v.Code == replay.OutOfScope {
		status = http.StatusForbidden
	}
	return s.renderReplay(c, status, j, v, replayForm{Version: shown(j.Generation, j.PayloadVersion)})
}

func (s *Server) replayJob(c echo.Context) (dlq.DetailJob, error) {
	if s.config.Replays == nil {
		return dlq.DetailJob{}, errNoReplays
	}
	id, err := idParam(c, "id")
	if err != nil {
		return dlq.DetailJob{}, err
	}
	j, err := dlq.DetailHead(c.Request().Context(), s.config.Pool, s.principal(c), id)
	if err != nil {
		return j, err
	}
	// Here the right for a single replay; that for money or for a type without
	// protection is judged with all else, and has a page that says so.
	return j, s.principal(c).Require(j.Environment, j.JobType, rbac.ReplayOne)
}

// replaySubmit orders the replay of exactly what was shown.
func (s *Server) replaySubmit(c echo.Context) error {
	j, err := s.replayJob(c)
	if err != nil {
		return err
	}
	form, err := bind[replayForm](c)
	if err != nil {
		return err
	}
	order := replay.Order{DeadJobID: j.ID, Reason: form.Reason}
	order.Generation, order.PayloadVersion = shownVersion(form.Version)
	if order.At, err = form.at(s.people.Now()); err == nil {
		if order.Reason, err = dlq.TriageReason(form.Reason); err == nil { // kept redacted: everybody reads it
			var made replay.Ordered
			if made, err = s.config.Replays.One(c.Request().Context(), s.principal(c), order); err == nil {
				return s.redirectWithFlash(c, route.Job(strconv.FormatInt(j.ID, 10)), orderedFlash(made, order.At))
			}
		}
	}
	return s.replayRefused(c, j, form, err)
}

// replayRefused answers an order that was not taken.
func (s *Server) replayRefused(c echo.Context, j dlq.DetailJob, form replayForm, cause error) error {
	var blocked *replay.BlockedError
	var p *problem.Error
	switch {
	case errors.As(cause, &blocked):
		now, err := dlq.DetailHead(c.Request().Context(), s.config.Pool, s.principal(c), j.ID)
		if err != nil {
			return err
		}
		return s.renderReplay(c, http.StatusConflict, now, blocked.Verdict, form)
	case !errors.As(cause, &p):
		return cause
	case p.Code == problem.Conflict:
		return s.renderRefused(c, triageJob(j), cause)
	case p.Code == problem.Forbidden:
		v := replay.Verdict{Code: replay.OutOfScope, Lift: replay.LiftAskColleague, Detail: p.Message}
		return s.renderReplay(c, http.StatusForbidden, j, v, form)
	case p.Code != problem.Invalid:
		return cause
	}
	switch p.Field {
	case route.FieldReason:
		form.reasonError = p.Message
	case route.FieldAt, route.FieldWhen:
		form.atError = p.Message
	default:
		form.problem = p.Message
	}
	v, err := s.config.Replays.Judge(c.Request().Context(), s.principal(c), j.ID)
	if err != nil {
		return err
	}
	return s.renderReplay(c, http.StatusUnprocessableEntity, j, v, form)
}

// triageJob is what the page of a refused act shows.
func triageJob(j dlq.DetailJob) dlq.TriageJob {
	return dlq.TriageJob{ID: j.ID, Environment: j.Environment, JobType: j.JobType, Status: j.Status, Generation: j.Generation,
		PayloadVersion: j.PayloadVersion, Effect: j.Effect, EffectID: j.EffectID, JobID: j.JobID, IdempotencyKey: j.IdempotencyKey}
}

// at is when the replay is due; the zero time means now. Errors: Invalid (at,
// when).
func (f replayForm) at(now time.Time) (time.Time, error) {
	switch f.When {
	case "", "now":
		return time.Time{}, nil
	case "later":
	default:
		return time.Time{}, problem.At(problem.Invalid, route.FieldWhen, "Choose now or a time.")
	}
	at, err := utcMinute(route.FieldAt, f.At)
	switch {
	case err != nil:
		return at, err
	case !at.After(now):
		return at, problem.At(problem.Invalid, route.FieldAt, "This time is over. Choose one that is still to come, or now.")
	case at.After(now.Add(replay.MaxAhead)):
		return at, problem.At(problem.Invalid, route.FieldAt, "A replay can be scheduled at most 30 days ahead.")
	}
	return at, nil
}

func orderedFlash(made replay.Ordered, at time.Time) layout.Flash {
	f := layout.Flash{Tone: "success", Text: "The replay is ordered and leaves as soon as the limits of its type allow.",
		Href: route.Batch(strconv.FormatInt(made.BatchID, 10)), Link: "Follow it"}
	if !at.IsZero() {
		f.Text = "The replay is ordered for " + at.UTC().Format("2006-01-02 15:04") + " UTC."
	}
	return f
}

func (s *Server) renderReplay(c echo.Context, status int, j dlq.DetailJob, v replay.Verdict, f replayForm) error {
	title := "Replay " + component.Cut(j.JobType, 60) + " " + component.Cut(j.JobID, 60) + " in " + j.Environment + "?"
	if !v.OK() {
		title = component.Cut(j.JobType, 60) + " " + component.Cut(j.JobID, 60) + " can't be replayed now"
	}
	page, err := s.act(c, triageJob(j), title)
	if err != nil {
		return err
	}
	t, _ := s.config.Types().Type(j.JobType)
	page.Version, page.Reason, page.ReasonError, page.Problem = f.Version, f.Reason, f.reasonError, f.problem
	page.Consequence = "The job runs once more in " + j.Environment + ", under its own job id and key. This " + runDoes(t) + "."
	p := s.principal(c)
	props := job.ReplayProps{Act: page, SideEffects: effectsOf(t), Money: t != nil && t.MoneyRisk(), Idempotency: guardWords(t),
		Target: replayTarget(t, j.Environment), PayloadNote: payloadWords(j), Warnings: replayWarnings(j, t),
		Blocks: s.replayBlocks(p, j, v), Earlier: v.EffectID, When: f.When, At: f.At, AtError: f.atError,
		Now: s.people.Now(), CanReplay: v.OK() && replay.NeedsBatch(j.JobType, t) == "" && s.mayReplay(p, j.Environment, j.JobType)}
	return s.render(c, status, job.Replay(props))
}

// replayBlocks says why not and what lifts it; nil when nothing stands in the way.
func (s *Server) replayBlocks(p *rbac.Principal, j dlq.DetailJob, v replay.Verdict) []job.Block {
	t, _ := s.config.Types().Type(j.JobType)
	why := replay.NeedsBatch(j.JobType, t)
	if v.Code == replay.TooOld {
		why = v.Detail
	}
	if why != "" && (v.OK() || v.Code == replay.OutOfScope || v.Code == replay.TooOld) && p.Can(rbac.PlanBatch, j.Environment, j.JobType) {
		return []job.Block{{Reason: why, Href: route.PlanOfJob(strconv.FormatInt(j.ID, 10)), Link: "Plan a batch of this job"}}
	}
	if v.OK() {
		return nil
	}
	state := jobState{ID: strconv.FormatInt(j.ID, 10), Environment: j.Environment, Type: j.JobType, Status: j.Status,
		Effect: j.Effect, PayloadKind: j.PayloadKind}
	can := s.jobCan(p, state, v)
	if blocks := jobBlocks(state, v, can); len(blocks) > 0 {
		return blocks
	}
	block := job.Block{Reason: v.Detail}
	if v.Lift == replay.LiftReopen && can.Reopen {
		block.Href, block.Link = route.JobAction(state.ID, route.Reopen), "Reopen it"
	}
	return []job.Block{block}
}

// guardWords says what keeps a second run from repeating the effect.
func guardWords(t *jobtype.Type) string {
	switch {
	case t == nil || !t.HasEffect():
		return ""
	case t.Idempotency.ProviderDeduplicates:
		return "The provider refuses a second effect of the same key."
	case t.Idempotency.By == "key":
		return "The ledger lets the effect of this key happen once."
	case t.Idempotency.By == "unique_constraint":
		return "A unique constraint of the application keeps it from happening twice."
	case t.Idempotency.By == "marker":
		return "The worker leaves a marker that keeps it from happening twice."
	}
	return "Nothing keeps it from happening twice: the type declares no protection."
}

func replayTarget(t *jobtype.Type, environment string) string {
	if t == nil {
		return ""
	}
	target, _ := t.Target(environment)
	return redact.Readable(destinationWords(target))
}

func payloadWords(j dlq.DetailJob) string {
	words := "the bytes as captured"
	if j.PayloadVersion > 1 {
		words = "version " + strconv.Itoa(j.PayloadVersion)
		if j.FixKind == "edit" {
			words += ", edited"
		}
	}
	return words + " (" + component.Bytes(j.PayloadSize) + ")"
}

func replayWarnings(j dlq.DetailJob, t *jobtype.Type) (warnings []string) {
	if j.IdempotencyKey == "" && t != nil && t.HasEffect() {
		warnings = append(warnings, "This job has no idempotency key: Redrive can't tell whether its effect happened in another way.")
	}
	if j.Effect == "unknown" {
		warnings = append(warnings, "Nobody knows whether the last attempt had its effect. The provider deduplicates the key, so a second one is refused there.")
	}
	return warnings
}
