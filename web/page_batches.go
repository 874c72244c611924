package web

import (
	"net/http"
	"strconv"

	"github.com/labstack/echo/v4"

	"github.com/redrive-dlq/redrive/dlq/board"
	"github.com/redrive-dlq/redrive/views/batches"
	"github.com/redrive-dlq/redrive/views/component"
	"github.com/redrive-dlq/redrive/views/layout"
	"github.com/redrive-dlq/redrive/views/route"
)

// batchesPage lists batches, newest first.
func (s *Server) batchesPage(c echo.Context) error {
	found, err := board.Batches(c.Request().Context(), s.config.Pool, s.principal(c), s.environment(c), c.QueryParam(route.ParamCursor))
	if err != nil {
		return err
	}
	props := batches.ListProps{Pages: pages(c, found.Next, found.Prev)}
	for _, b := range found.Rows {
		props.Rows = append(props.Rows, batchRow(s.batchNow(b)))
	}
	if props.Page, err = s.page(c, s.environmentTitle(c, "Batches of replays, newest first"), layout.SectionBatches); err != nil {
		return err
	}
	return s.render(c, http.StatusOK, batches.List(props))
}

// batchNow calls a batch that is ordered for later what it is until then.
func (s *Server) batchNow(b board.Batch) board.Batch {
	if b.State == "running" && b.Ended() == 0 && when(b.DueAt).After(s.people.Now()) {
		b.State = "scheduled"
	}
	return b
}

// batchRow shows a single replay that has ended by how it ended.
func batchRow(b board.Batch) batches.Row {
	row := batches.Row{ID: strconv.FormatInt(b.ID, 10), Type: b.JobType, Environment: b.Environment, State: b.State,
		Planned: b.Planned, Ended: b.Ended(), Failed: b.Failed(), By: b.CreatedBy, Reason: reasonText(b.Reason), At: b.CreatedAt}
	if b.ConfirmedBy != "" {
		row.By = b.ConfirmedBy
	}
	if b.Outcome != "" {
		row.State = b.Outcome
	}
	return row
}

// batchTitle says in words what became of a batch.
func batchTitle(b board.Batch) string {
	what := component.Plural(b.Planned, "replay", "replays") + " of " + component.Cut(b.JobType, 60)
	if b.Kind == "single" {
		what = "Replay of one " + component.Cut(b.JobType, 60)
	}
	return what + outcomeWords(b) + ", " + b.Environment
}

func outcomeWords(b board.Batch) string {
	switch b.Outcome {
	case "succeeded":
		return " succeeded"
	case "already_done":
		return ": its effect was in place already"
	case "failed":
		return " failed: the job is open again"
	case "skipped":
		return " was not sent"
	case "unconfirmed":
		return ": no outcome came, its effect is unknown"
	case "cancelled":
		return " was cancelled"
	}
	switch b.State {
	case "done":
		return ": " + component.Count(b.Ended()-b.Failed()) + " ended well or were left out, " + component.Count(b.Failed()) + " failed"
	case "scheduled":
		return " is scheduled"
	case "running":
		return " is under way"
	case "paused", "cancelled", "planned":
		return " is " + b.State
	}
	return " is being planned"
}
