package web

import (
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/redrive-dlq/redrive/dlq/board"
	"github.com/redrive-dlq/redrive/rbac"
	"github.com/redrive-dlq/redrive/views/batches"
	"github.com/redrive-dlq/redrive/views/route"
)

// singleView is the lighter page of a batch of one.
func (s *Server) singleView(c echo.Context, b board.Batch) error {
	ctx := c.Request().Context()
	props := batches.Props{PlanHash: b.PlanHash, EndedAt: when(b.FinishedAt), Progress: progressOf(b)}
	if due := when(b.DueAt); due.After(b.CreatedAt.Add(time.Minute)) {
		props.ScheduledAt = due
	}
	if t, ok := s.config.Types().Type(b.JobType); ok {
		props.SideEffects = sideEffects(t)
	}
	replays, err := board.Replays(ctx, s.config.Pool, b.ID)
	if err != nil {
		return err
	}
	for _, r := range replays {
		props.Items.Rows = append(props.Items.Rows, batchItem(r))
	}
	if b.FinishedAt == nil {
		if props.Waits, err = s.batchWaits(c, b); err != nil {
			return err
		}
	}
	if left(b) > 0 && len(replays) == 1 && s.mayReplay(s.principal(c), b.Environment, b.JobType) && s.principal(c).Can(rbac.ReplayOne, b.Environment, b.JobType) {
		props.CancelHref = route.JobAction(props.Items.Rows[0].JobID, route.Cancel)
	}
	if props.Trail, err = s.batchTrail(c, b); err != nil {
		return err
	}
	if props.Head, err = s.batchHead(c, b, batchTitle(b)); err != nil {
		return err
	}
	return s.render(c, http.StatusOK, batches.View(props))
}
