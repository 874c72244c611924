package web

import (
	"time"

	"github.com/labstack/echo/v4"

	"github.com/redrive-dlq/redrive/dlq/board"
	"github.com/redrive-dlq/redrive/views/batches"
	"github.com/redrive-dlq/redrive/views/component"
	"github.com/redrive-dlq/redrive/views/route"
)

// batchWaits are what keeps a batch's replays back now, gravest first.
func (s *Server) batchWaits(c echo.Context, b board.Batch) ([]batches.Wait, error) {
	var list []batches.Wait
	if w, ok := s.pauseWait(b); ok {
		list = append(list, w)
	}
	if w, ok := coolingWait(b); ok {
		list = append(list, w)
	}
	held, err := s.holds(c)
	if err != nil {
		return nil, err
	}
	for _, h := range held {
		if holdsBack(h, b.Environment, b.JobType, b.Destination) {
			list = append(list, batches.Wait{Tone: "warning", Icon: "pause", Bold: holdWhat(h) + " are held", Href: route.Holds, Link: "See or lift holds",
				Text: "since " + timeOfDay(h.PlacedAt, s.people.Now()) + " by " + h.PlacedBy + ". Nothing of this batch leaves until the hold is lifted."})
		}
	}
	d, err := board.DestinationOf(c.Request().Context(), s.config.Pool, b.Environment, b.Destination)
	if err != nil {
		return nil, err
	}
	if w, ok := s.breakerWait(b, d); ok {
		list = append(list, w)
	}
	if due := when(b.DueAt); b.State == "scheduled" && due.After(s.people.Now()) {
		list = append(list, batches.Wait{Tone: "info", Icon: "clock", Bold: "Starts at " + timeOfDay(due, s.people.Now()) + ",",
			Text: "in " + component.Duration(due.Sub(s.people.Now()).Round(time.Second)) + ". Until then nothing leaves, and it can be cancelled without a trace outside."})
	}
	limits, err := s.limitWaits(c, b)
	return append(list, limits...), err
}

// limitWaits are the limits that a running batch meets besides its own rate.
func (s *Server) limitWaits(c echo.Context, b board.Batch) ([]batches.Wait, error) {
	t, ok := s.config.Types().Type(b.JobType)
	if !ok || b.State != "running" || b.Kind == "single" || left(b) == 0 {
		return nil, nil
	}
	var list []batches.Wait
	if target, ok := t.Target(b.Environment); ok {
		most := target.InFlight()
		n, err := board.OutAt(c.Request().Context(), s.config.Pool, b.Environment, b.Destination, most)
		if err != nil {
			return nil, err
		}
		if n >= most {
			list = append(list, batches.Wait{Tone: "info", Icon: "hourglass", Bold: s.destinationName(b) + " has " + component.Count(most) + " out,",
				Text: "and takes no more at once. The next leaves when one of them ends."})
		}
	}
	way, err := board.WaysUnder(c.Request().Context(), s.config.Pool, s.principal(c))
	if err != nil {
		return nil, err
	}
	others := -1 // this one is among them
	for _, w := range way {
		if w.Environment == b.Environment && w.JobType == b.JobType {
			others += w.N
		}
	}
	if others > 0 {
		list = append(list, batches.Wait{Tone: "info", Icon: "gauge", Bold: "It shares the rate of its type", Text: "(" + component.Count(t.Limit().PerMinute) +
			" a minute) with " + component.Plural(others, "other batch or replay", "other batches or replays") + " under way, turn by turn."})
	}
	return list, nil
}

// pauseWait says who or what paused the batch. A stop by itself has a part of
// the page of its own.
func (s *Server) pauseWait(b board.Batch) (batches.Wait, bool) {
	if b.State == "cancelling" {
		return batches.Wait{Tone: "info", Icon: "hourglass", Bold: "Being cancelled by " + b.CancelledBy + ".",
			Text: "What has not left is ended bit by bit and its jobs are open again; " + out(b) + "."}, true
	}
	if b.State != "paused" || b.PauseKind == "failures" {
		return batches.Wait{}, false
	}
	w := batches.Wait{Tone: "warning", Icon: "pause", Bold: "Paused by " + b.PausedBy, Text: "at " + timeOfDay(when(b.PausedAt), s.people.Now()) + ": nothing leaves until somebody resumes it."}
	if b.PauseKind == "catalogue" {
		w.Bold, w.Text = "Paused by the catalogue.", "Replays of this type can't leave as it stands now. "
		w.Href, w.Link = route.Types, "See the type's policy"
	}
	if why := reasonText(b.PauseWhy); why != "" {
		w.Text += " " + component.Sentence(why)
	}
	return w, true
}

// breakerWait says that the destination fails, and when it is tried again.
func (s *Server) breakerWait(b board.Batch, d board.Destination) (batches.Wait, bool) {
	if d.Breaker != "open" && d.Breaker != "half_open" {
		return batches.Wait{}, false
	}
	w := batches.Wait{Tone: "warning", Icon: "alert", Bold: s.destinationName(b) + " has been failing", Text: "for " + component.Duration(s.people.Now().Sub(when(d.FailingSince)).Round(time.Second)) + ".", Href: route.Targets, Link: "See targets"}
	switch {
	case d.Breaker == "half_open":
		w.Text += " A few replays try it now; one that succeeds lets the others follow."
	case d.RetryAt != nil:
		w.Text += " A few replays try it at " + timeOfDay(*d.RetryAt, s.people.Now()) + "; the rest keep their place."
	}
	if d.Why != "" {
		w.Text += " " + component.Sentence(reasonText(d.Why)) + "."
	}
	return w, true
}

// destinationName is where the batch's replays go, in words.
func (s *Server) destinationName(b board.Batch) string {
	if t, ok := s.config.Types().Type(b.JobType); ok {
		if target, ok := t.Target(b.Environment); ok && target.Destination() == b.Destination {
			return destinationWords(target)
		}
	}
	return b.Destination
}

// timeOfDay is a time in UTC, with its date where that isn't today's.
func timeOfDay(at, now time.Time) string {
	at, now = at.UTC(), now.UTC()
	if at.Year() == now.Year() && at.YearDay() == now.YearDay() {
		return at.Format("15:04") + " UTC"
	}
	return at.Format("2006-01-02 15:04") + " UTC"
}
