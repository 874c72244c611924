package web

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/redrive-dlq/redrive/dlq"
	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/dlq/redact"
	"github.com/redrive-dlq/redrive/dlq/replay"
	"github.com/redrive-dlq/redrive/rbac"
	"github.com/redrive-dlq/redrive/views/component"
	"github.com/redrive-dlq/redrive/views/job"
	"github.com/redrive-dlq/redrive/views/layout"
	"github.com/redrive-dlq/redrive/views/route"
)

// jobViews are the ways to look at a payload; empty is the one that fits.
var jobViews = []string{"", "tree", "raw", "hex", "base64", "diff"}

// jobPage shows one dead job: what happened, what now, and everything known.
func (s *Server) jobPage(c echo.Context) error {
	id, err := idParam(c, "id")
	if err != nil {
		return err
	}
	version, err := versionParam(c)
	if err != nil {
		return err
	}
	view := c.QueryParam(route.ParamView)
	if !slices.Contains(jobViews, view) {
		return problem.At(problem.Invalid, route.ParamView, "A payload is looked at as tree, raw, hex, base64 or diff.")
	}
	p := s.principal(c)
	d, err := dlq.Detail(c.Request().Context(), s.config.Pool, p, id, dlq.DetailQuery{Version: version, Types: s.config.Types(), Now: s.people.Now()})
	if err != nil {
		return err
	}
	props := s.jobProps(d)
	s.jobNext(c, p, d, &props)
	if props.Payload, err = s.jobPayloadProps(c, p, d, view); err != nil {
		return err
	}
	if props.Page, err = s.pageIn(c, jobTitle(d, s.people.Now()), layout.SectionJobs, d.Job.Environment, route.Jobs); err != nil {
		return err
	}
	props.Page.Live = route.JobEvents(props.ID)
	return s.render(c, http.StatusOK, job.Detail(props))
}

// jobProps are the facts of the page.
func (s *Server) jobProps(d *dlq.Details) job.Props {
	j := d.Job
	props := job.Props{
		Brief:  job.Brief{ID: strconv.FormatInt(j.ID, 10), JobID: j.JobID, Type: j.JobType, Environment: j.Environment, Status: j.Status, Key: j.IdempotencyKey},
		Source: j.Source, Queue: j.Queue, Tenant: j.Tenant, Entity: j.Entity, Event: j.Event, Destination: j.Destination,
		Owner: j.Assignee, Effect: j.Effect, Category: j.Category, CategoryByWorker: j.CategoryBy == "worker", GaveUp: j.GaveUp,
		WorkerReason: j.ReasonText, Fingerprint: j.Fingerprint, GroupSize: 1,
		Generation: j.Generation, Attempts: j.AttemptCount, MaxAttempts: j.MaxAttempts,
		EnqueuedAt: job.Moment{At: when(j.EnqueuedAt)}, DiedAt: job.Moment{At: j.DiedAt, Note: j.DiedAtNote},
		CapturedAt: job.Moment{At: j.CapturedAt}, SnoozedUntil: when(j.SnoozedUntil), Summary: d.Sentence,
		Headers: jobHeaders(d.Headers), Extra: jobExtra(d.Extra), Error: jobError(d), Timeline: jobTimeline(d.Timeline),
		Ledger: jobLedger(d), Trail: entries(d.Entries),
	}
	if j.ReasonCode != "" && j.ReasonCode != j.ReasonText {
		props.WorkerReason = j.ReasonCode + ": " + j.ReasonText
	}
	if t, ok := s.config.Types().Type(j.JobType); ok {
		props.Runbook = t.Runbook
		if props.Owner == "" {
			props.Owner = t.Owner
		} else if t.Owner != "" {
			props.Owner += ", for " + t.Owner
		}
	}
	for _, set := range d.Related {
		if set.By == "group" {
			props.GroupSize = int(set.Total) + 1
		}
		props.Related = append(props.Related, jobRelated(j, set))
	}
	for _, n := range d.Notes {
		props.Notes = append(props.Notes, job.Note{At: n.CreatedAt, By: n.Author, Text: redact.Readable(n.Body)})
	}
	return props
}

// jobNext fills what to do now: the advice of the failure's category, and
// beside it the dry run's word on why a replay is refused.
func (s *Server) jobNext(c echo.Context, p *rbac.Principal, d *dlq.Details, props *job.Props) {
	state := jobState{ID: props.ID, Environment: d.Job.Environment, Type: d.Job.JobType, Status: d.Job.Status, Effect: effectOf(d), PayloadKind: d.Job.PayloadKind}
	v := s.jobVerdict(c, d.Job.ID)
	props.Can = s.jobCan(p, state, v)
	props.Can.Cancel = d.Waiting() != nil && s.mayCancel(p, d.Job)
	props.Blocks = jobBlocks(state, v, props.Can)
	if v.OK() && !props.Can.Replay && p.Can(rbac.ReplayOne, state.Environment, state.Type) {
		props.Blocks = append(props.Blocks, job.Block{Reason: "Replaying " + state.Type + " takes the rights of an on-call engineer.", Lift: "Ask one."})
	}
	props.Advice = job.Advice{Tone: d.Advice.Tone, Title: d.Advice.Title, Text: d.Advice.Text, Primary: primary(d.Advice.Action, v)}
	if d.Ledger != nil && d.Ledger.State == "done" {
		props.Settled = d.Ledger.Result
	}
}

// jobVerdict is the dry run, whoever asks: what stands in the way is shown to
// everybody who may read the job. Its failure doesn't take the page along.
func (s *Server) jobVerdict(c echo.Context, id int64) replay.Verdict {
	if s.config.Replays == nil {
		return replay.Verdict{}
	}
	v, err := s.config.Replays.Judge(c.Request().Context(), nil, id)
	if err != nil {
		s.logFailure(c, answer{status: http.StatusInternalServerError, code: problem.Internal}, err)
		return replay.Verdict{Code: "unchecked", Detail: "Whether it can be replayed could not be checked. The log has the cause under request " + RequestID(c) + "."}
	}
	return v
}

// effectOf is the job's effect as the ledger knows it by now.
func effectOf(d *dlq.Details) string {
	switch {
	case d.Ledger != nil && d.Ledger.State == "done":
		return "done"
	case d.Ledger != nil && d.Ledger.State == "begun" && d.Job.Effect == "none":
		return "unknown"
	}
	return d.Job.Effect
}

// primary is the one emphasised action. A replay that is refused gives its
// place to what lifts the refusal.
func primary(action string, v replay.Verdict) route.Action {
	switch action {
	case dlq.DetailDoEdit:
		return route.Edit
	case dlq.DetailDoDeclareFix:
		return route.Fix
	case dlq.DetailDoSettle:
		return route.Settle
	case dlq.DetailDoReplay:
		if lift, ok := lifts[v.Lift]; ok && !v.OK() {
			return lift.action
		}
		return route.Replay
	}
	return ""
}

// jobTitle is the page's heading.
func jobTitle(d *dlq.Details, now time.Time) string {
	j := d.Job
	is := map[string]string{"open": "is dead", "snoozed": "is put aside", "replaying": "is being replayed",
		"recovered": "has recovered", "resolved": "is resolved", "discarded": "is discarded"}[j.Status]
	if r := d.Waiting(); r != nil {
		is = "waits to be replayed"
		if r.Scheduled(now) {
			is = "has a replay scheduled"
		}
	}
	return component.Cut(j.JobType, 60) + " " + component.Cut(j.JobID, 60) + " " + is + ", " + j.Environment
}
