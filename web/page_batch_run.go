package web

import (
	"net/http"
	"strconv"

	"github.com/labstack/echo/v4"

	"github.com/redrive-dlq/redrive/dlq/board"
	"github.com/redrive-dlq/redrive/views/batches"
	"github.com/redrive-dlq/redrive/views/component"
	"github.com/redrive-dlq/redrive/views/holds"
)

// runView shows an ordered batch until it has ended. Its numbers come from
// counters: it costs as many queries for ten replays as for a million.
func (s *Server) runView(c echo.Context, b board.Batch) error {
	props := batches.RunProps{Progress: progressOf(b), Can: s.runCan(c, b)}
	steps := []func() error{
		func() (err error) { props.Head, err = s.batchHead(c, b, s.runTitle(b)); return err },
		func() (err error) { props.Waits, err = s.batchWaits(c, b); return err },
		func() (err error) { props.Figures, err = s.runFigures(c, b); return err },
		func() (err error) { props.Failures, props.FailuresNote, err = s.batchFailures(c, b); return err },
		func() (err error) { props.Skips, err = s.batchSkips(c, b); return err },
		func() (err error) { props.Items, err = s.batchItems(c, b); return err },
		func() (err error) { props.Trail, err = s.batchTrail(c, b); return err },
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	props.Who = s.batchWho(b)
	if b.StoppedItself() {
		props.Stopped = &batches.Stopped{Why: reasonText(b.PauseWhy), Canary: min(s.canaryOf(b), props.Progress.Left), Groups: props.Failures[:min(3, len(props.Failures))]}
	}
	return s.render(c, http.StatusOK, batches.Run(props))
}

// runCan is what the person may do with the batch as it is.
func (s *Server) runCan(c echo.Context, b board.Batch) (can batches.Can) {
	if s.config.Replays == nil {
		return can
	}
	p := s.principal(c)
	if s.mayRun(p, b) == nil {
		can.Pause = b.State == "running" || b.State == "scheduled"
		can.Resume = b.State == "paused"
		can.Rate = (can.Pause || can.Resume) && s.rateOf(b) > 1
	}
	can.Cancel = b.State != "cancelling" && s.mayCancelBatch(p, b) == nil
	next := c.Request().URL.Path
	offer := func(t holds.Target, jobType, word string) {
		if mayHold(p, b.Environment, jobType) {
			t.Environment, t.Next = b.Environment, next
			can.Hold = append(can.Hold, batches.HoldOffer{Target: t, Word: word})
		}
	}
	offer(holds.Target{Type: b.JobType}, b.JobType, "Hold all replays of "+component.Cut(b.JobType, 40))
	if b.Destination != "" {
		offer(holds.Target{Destination: b.Destination}, "", "Hold all to "+component.Cut(s.destinationName(b), 60))
	}
	offer(holds.Target{}, "", "Hold all replays in "+b.Environment)
	return can
}

// runTitle says in words how far the batch is.
func (s *Server) runTitle(b board.Batch) string {
	p, what := progressOf(b), component.Cut(b.JobType, 60)
	ended := component.Count(p.Ended()) + " of " + component.Plural(p.Total(), "replay", "replays") + " of " + what
	switch {
	case b.StoppedItself():
		return "Replays of " + what + " stopped by themselves: " + reasonText(b.PauseWhy) + ", " + b.Environment
	case b.State == "paused":
		return "Paused: " + ended + " have ended, " + b.Environment
	case b.State == "cancelling":
		return "Being cancelled: " + ended + " have ended, " + b.Environment
	case b.State == "scheduled":
		return component.Plural(p.Total(), "replay", "replays") + " of " + what + " to start at " + timeOfDay(when(b.DueAt), s.people.Now()) + ", " + b.Environment
	}
	return ended + " have ended, " + b.Environment
}

// runFigures are the numbers beside the bar: how fast, how long, how well.
func (s *Server) runFigures(c echo.Context, b board.Batch) ([]batches.Figure, error) {
	canary, err := board.CanaryOf(c.Request().Context(), s.config.Pool, b.ID)
	if err != nil {
		return nil, err
	}
	figures, err := s.speedFigures(c, b)
	if err != nil {
		return nil, err
	}
	if b.Canary > 0 && canary.Size > 0 {
		figures = append(figures, canaryFigure(b, canary))
	}
	p := progressOf(b)
	failed, judged := p.Failed+p.Unconfirmed, p.Failed+p.Unconfirmed+p.Done()
	share := batches.Figure{Label: "Failed of those judged", Value: "–", Note: "none has an outcome yet; it stops above " + strconv.Itoa(s.stopPct(b)) + " %"}
	if judged > 0 {
		share.Value = percent(failed, judged)
		share.Note = component.Count(failed) + " of " + component.Count(judged) + "; it stops by itself above " + strconv.Itoa(s.stopPct(b)) + " %"
	}
	return append(figures, share), nil
}

func canaryFigure(b board.Batch, canary board.Canary) batches.Figure {
	shown := batches.Canary{Size: canary.Size, Succeeded: canary.Succeeded, Failed: canary.Failed, Other: canary.Other, Awaited: canary.Awaited}
	f := batches.Figure{Label: "Canary of " + component.Count(canary.Size), Value: "waits", Note: shown.Words()}
	switch {
	case b.Wave != nil && *b.Wave > 0 || b.CanaryPassedAt != nil && (b.Wave == nil || *b.Wave > 0):
		f.Value = "passed"
	case b.StoppedItself():
		f.Value = "stopped it"
	case canary.Awaited < canary.Size:
		f.Value = "is out"
	}
	return f
}

// percent is a share in whole percent, never rounded to none or all of it.
func percent(part, whole int) string {
	n := (200*part + whole) / (2 * whole)
	switch {
	case n == 0 && part > 0:
		return "under 1 %"
	case n == 100 && part < whole:
		return "over 99 %"
	}
	return strconv.Itoa(n) + " %"
}
