package web

import (
	"slices"

	"github.com/labstack/echo/v4"

	"github.com/redrive-dlq/redrive/dlq/board"
	"github.com/redrive-dlq/redrive/dlq/replay"
	"github.com/redrive-dlq/redrive/views/component"
	"github.com/redrive-dlq/redrive/views/overview"
	"github.com/redrive-dlq/redrive/views/route"
)

// overviewBatches are how many batches the overview names.
const overviewBatches = 8

// overviewRuns adds the batches that have not ended, the holds and the
// destinations that fail.
func (s *Server) overviewRuns(c echo.Context, props *overview.Props) error {
	ctx, p, chosen := c.Request().Context(), s.principal(c), s.environment(c)
	found, err := board.Unfinished(ctx, s.config.Pool, p, chosen, "waiting", "scheduled", "running", "paused", "cancelling")
	if err != nil {
		return err
	}
	slices.SortStableFunc(found, func(a, b board.Batch) int { return overviewRank(a) - overviewRank(b) })
	for _, b := range found[:min(len(found), overviewBatches)] {
		row := overview.BatchRow{ID: formatID(b.ID), Type: b.JobType, Environment: b.Environment, State: b.State, Ended: b.Ended(), Total: progressOf(b).Total(),
			Asks: b.State == "waiting" && mayApprove(p, b)}
		switch {
		case b.StoppedItself():
			row.Note = "stopped by itself: " + reasonText(b.PauseWhy)
		case b.State == "scheduled":
			row.Note = "starts at " + timeOfDay(when(b.DueAt), s.people.Now())
		}
		row.Note = coolingNote(b, row.Note)
		props.Batches = append(props.Batches, row)
	}
	failing, err := board.FailingDestinations(ctx, s.config.Pool, p, chosen)
	if err != nil {
		return err
	}
	for _, d := range failing {
		props.Unhealthy = append(props.Unhealthy, s.overviewFailing(d))
	}
	held, err := s.holds(c)
	if err != nil {
		return err
	}
	s.overviewHolds(c, props, held)
	return nil
}

// overviewRank puts first what waits for a person.
func overviewRank(b board.Batch) int {
	switch {
	case b.StoppedItself():
		return 0
	case b.State == "waiting":
		return 1
	case b.State == "paused":
		return 2
	}
	return 3
}

func (s *Server) overviewFailing(d board.Failing) overview.Health {
	h := overview.Health{Name: component.Cut(d.Name, 80) + ", " + d.Environment, State: "failing", Text: "fails", Href: route.Targets}
	if d.FailingSince != nil {
		h.Text = "failing for " + component.Duration(s.people.Now().Sub(*d.FailingSince))
	}
	if d.Breaker == "half_open" {
		h.State, h.Text = "degraded", h.Text+"; a few replays try it now"
	} else if d.RetryAt != nil {
		h.Text += "; a few replays try it at " + timeOfDay(*d.RetryAt, s.people.Now())
	}
	if d.Why != "" {
		h.Text += ": " + reasonText(d.Why)
	}
	return h
}

func (s *Server) overviewHolds(c echo.Context, props *overview.Props, held []replay.Hold) {
	p, chosen := s.principal(c), s.environment(c)
	for _, h := range held {
		if chosen == "" || chosen == h.Environment {
			props.Holds = append(props.Holds, overview.HoldRow{What: holdWhat(h), By: h.PlacedBy, Since: h.PlacedAt, Reason: reasonText(h.Reason)})
		}
	}
	if s.config.Replays == nil {
		return
	}
	for _, o := range s.holdOffers(p, chosen, held) {
		if o.All {
			props.MayHold = append(props.MayHold, o.Environment)
		}
	}
}
