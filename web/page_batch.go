package web

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/redrive-dlq/redrive/audit"
	"github.com/redrive-dlq/redrive/dlq/board"
	"github.com/redrive-dlq/redrive/dlq/redact"
	"github.com/redrive-dlq/redrive/rbac"
	"github.com/redrive-dlq/redrive/views/batches"
	"github.com/redrive-dlq/redrive/views/layout"
	"github.com/redrive-dlq/redrive/views/route"
)

// trailRows is how many audit entries a page of a job or batch shows.
const trailRows = 50

// batchPage shows one batch, or the report of a single replay.
func (s *Server) batchPage(c echo.Context) error {
	id, err := idParam(c, "id")
	if err != nil {
		return err
	}
	b, err := board.BatchOf(c.Request().Context(), s.config.Pool, s.principal(c), id)
	if err != nil {
		return err
	}
	props, err := s.batchProps(c, s.batchNow(b))
	if err != nil {
		return err
	}
	return s.render(c, http.StatusOK, batches.View(props))
}

func (s *Server) batchProps(c echo.Context, b board.Batch) (batches.Props, error) {
	ctx := c.Request().Context()
	props := batches.Props{Row: batchRow(b), PlanHash: b.PlanHash, EndedAt: when(b.FinishedAt)}
	if due := when(b.DueAt); due.After(b.CreatedAt.Add(time.Minute)) {
		props.ScheduledAt = due
	}
	if t, ok := s.config.Types().Type(b.JobType); ok {
		props.SideEffects = sideEffects(t)
	}
	replays, err := board.Replays(ctx, s.config.Pool, b.ID)
	if err != nil {
		return props, err
	}
	for _, r := range replays {
		props.Items = append(props.Items, batchItem(r))
	}
	totals, err := board.ReplayTotals(ctx, s.config.Pool, b.ID)
	if err != nil {
		return props, err
	}
	for _, t := range totals {
		props.Totals = append(props.Totals, batches.Total{State: t.State, Count: t.N})
	}
	// Whoever may read the batch may read its own entries.
	trail, err := audit.List(ctx, s.config.Pool, audit.Scope{Everywhere: true}, audit.Query{Batch: b.ID, Limit: trailRows})
	if err != nil {
		return props, err
	}
	props.Trail = entries(trail.Records)
	if props.Page, err = s.pageIn(c, batchTitle(b), layout.SectionBatches, b.Environment, route.Batches); err != nil {
		return props, err
	}
	if b.FinishedAt == nil {
		props.Page.Live = route.BatchLive(props.ID)
	}
	return props, nil
}

func batchItem(r board.Replay) batches.Item {
	item := batches.Item{JobID: strconv.FormatInt(r.DeadJobID, 10), Label: r.JobID, State: r.Now(), Result: redact.Readable(r.EffectID),
		Sent: when(r.ReleasedAt), Ended: when(r.OutcomeAt), Version: r.PayloadVersion, Why: redact.Readable(r.OutcomeDetail)}
	if item.Why == "" {
		item.Why = redact.Readable(r.VerdictDetail)
	}
	return item
}

// batchEvents tells an open page that its batch went on.
func (s *Server) batchEvents(c echo.Context) error {
	id, err := idParam(c, "id")
	if err != nil {
		return err
	}
	return s.stream(c, func(ctx context.Context, p *rbac.Principal) (string, error) {
		b, err := board.BatchOf(ctx, s.config.Pool, p, id)
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("%s %d %d", b.State, b.Ended(), b.Failed()), nil
	}, rbac.Read)
}
