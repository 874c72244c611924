package web

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/redrive-dlq/redrive/dlq/board"
	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/rbac"
	"github.com/redrive-dlq/redrive/views/batches"
	"github.com/redrive-dlq/redrive/views/component"
	"github.com/redrive-dlq/redrive/views/route"
)

// reportRoutes are the report of a batch and what one takes away from it.
func (s *Server) reportRoutes() []Route {
	read := Needs(rbac.Read)
	return []Route{
		{Method: http.MethodGet, Path: route.BatchReportPattern, Name: "batch.report", Audience: Browser, Policy: read, Handle: s.reportPage},
		{Method: http.MethodPost, Path: route.BatchCSVPattern, Name: "batch.export.csv", Audience: Browser, Policy: read, Timeout: exportTimeout, Handle: s.export("csv", "text/csv; charset=utf-8")},
		{Method: http.MethodPost, Path: route.BatchJSONPattern, Name: "batch.export.json", Audience: Browser, Policy: read, Timeout: exportTimeout, Handle: s.export("json", "application/json; charset=utf-8")},
	}
}

// reportPage is the report of an ordered batch, also before it has ended.
func (s *Server) reportPage(c echo.Context) error {
	id, err := idParam(c, "id")
	if err != nil {
		return err
	}
	b, err := board.BatchOf(c.Request().Context(), s.config.Pool, s.principal(c), id)
	if err != nil {
		return err
	}
	if !ordered(b) && b.State != "cancelled" {
		return problem.New(problem.Conflict, "Batch %d isn't confirmed, so there is no report yet. Its plan stands on its page.", b.ID)
	}
	return s.reportView(c, b)
}

// reportView says what became of every job of the plan.
func (s *Server) reportView(c echo.Context, b board.Batch) error {
	p := s.principal(c)
	props := batches.ReportProps{Final: b.FinishedAt != nil, Planned: b.Planned, Progress: progressOf(b), Sums: reportSums(b), Blocked: batchBlocked(b),
		CanExport: s.config.Replays != nil && b.State != "planning", Who: s.batchWho(b)}
	props.CanPlanFailed = s.config.Replays != nil && props.Final && props.Progress.Failed > 0 && p.Can(rbac.PlanBatch, b.Environment, b.JobType)
	failures, note, err := s.batchFailures(c, b)
	if err != nil {
		return err
	}
	props.Note = note
	for _, f := range failures {
		if f.Same {
			props.SameWay = append(props.SameWay, f)
		} else {
			props.NewWay = append(props.NewWay, f)
		}
	}
	if props.Skips, err = s.batchSkips(c, b); err != nil {
		return err
	}
	if props.Items, err = s.batchItems(c, b); err != nil {
		return err
	}
	if props.Trail, err = s.batchTrail(c, b); err != nil {
		return err
	}
	if props.Head, err = s.batchHead(c, b, reportTitle(b)); err != nil {
		return err
	}
	return s.render(c, http.StatusOK, batches.Report(props))
}

// reportTitle says in words what became of the batch.
func reportTitle(b board.Batch) string {
	p, what := progressOf(b), component.Cut(b.JobType, 60)
	end := ", " + b.Environment
	switch {
	case !ordered(b):
		return "The plan of " + component.Plural(b.Planned, "replay", "replays") + " of " + what + " was withdrawn" + end
	case b.State == "cancelled":
		return "Cancelled: " + component.Count(p.Cancelled) + " of " + component.Plural(p.Total(), "replay", "replays") + " of " + what + " did not leave" + end
	case b.FinishedAt == nil:
		return "Report so far: " + component.Count(p.Ended()) + " of " + component.Plural(p.Total(), "replay", "replays") + " of " + what + " have ended" + end
	}
	title := component.Count(p.Done()) + " of " + component.Count(p.Total()) + " " + what + " are done"
	switch n := p.Failed; n {
	case 0:
		title += ", none failed"
	default:
		title += ", " + component.Count(n) + " failed"
	}
	if p.Unconfirmed > 0 {
		title += ", " + component.Count(p.Unconfirmed) + " without a known outcome"
	}
	return title + end
}

// means says of each line of the totals what it means for the job.
var means = map[string]string{
	"succeeded":    "The replay had its effect.",
	"already_done": "The effect was in place: nothing was done twice.",
	"failed":       "The job is open again, one generation further.",
	"skipped":      "Not sent: something changed since the plan, or an earlier one of its entity failed. The job is as it was.",
	"unconfirmed":  "Sent, and no outcome came: nobody knows whether the effect happened.",
	"cancelled":    "Ended before it left. The job is open again.",
	"released":     "Sent; the outcome is awaited.",
	"ready":        "Still to leave.",
	"blocked":      "The plan found a reason against it. The job is as it was.",
}

// reportSums are lines that add up to all that was planned.
func reportSums(b board.Batch) []batches.Sum {
	p, id := progressOf(b), formatID(b.ID)
	var sums []batches.Sum
	href := func(state string) string {
		if state == "blocked" {
			return "#blocked"
		}
		return route.BatchItems(id, state)
	}
	add := func(state string, n int, always bool) {
		if n > 0 || always {
			sums = append(sums, batches.Sum{State: state, Means: means[state], Count: n, Href: href(state)})
		}
	}
	add("succeeded", p.Succeeded, true)
	add("already_done", p.AlreadyDone, true)
	add("failed", p.Failed, true)
	add("skipped", p.Skipped, true)
	add("unconfirmed", p.Unconfirmed, true)
	add("cancelled", p.Cancelled, true)
	add("released", p.Out, false)
	add("ready", p.Left, false)
	add("blocked", b.Planned-p.Total(), true)
	return sums
}
