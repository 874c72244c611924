package web

import (
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/redrive-dlq/redrive/dlq/board"
	"github.com/redrive-dlq/redrive/rbac"
	"github.com/redrive-dlq/redrive/views/component"
	"github.com/redrive-dlq/redrive/views/layout"
	"github.com/redrive-dlq/redrive/views/targets"
)

// targetsPage shows where replays go in each environment, and how they fare.
func (s *Server) targetsPage(c echo.Context) error {
	p, chosen, now := s.principal(c), s.environment(c), s.people.Now()
	flows, err := board.Flows(c.Request().Context(), s.config.Pool, p, chosen, now)
	if err != nil {
		return err
	}
	health, err := board.ReadHealth(c.Request().Context(), s.config.Pool, p, chosen, now)
	if err != nil {
		return err
	}
	props := targets.Props{}
	rows := s.targetRows(p, chosen)
	for _, row := range rows {
		row.addAll(flows)
		row.meet(health, now)
		s.offerTargetHold(c, row)
		props.Rows = append(props.Rows, row.Row)
	}
	title := s.environmentTitle(c, "Replays go to "+component.Plural(len(rows), "destination", "destinations"))
	if props.Page, err = s.page(c, title, layout.SectionTargets); err != nil {
		return err
	}
	return s.render(c, http.StatusOK, targets.View(props))
}

// targetRow is a row that is being counted.
type targetRow struct {
	targets.Row
	destination string
	unconfirmed int
}

// targetRows are the destinations that the catalogue names, by environment, of
// the types that the reader may see.
func (s *Server) targetRows(p *rbac.Principal, chosen string) []*targetRow {
	catalogue := s.config.Types()
	var rows []*targetRow
	for _, environment := range catalogue.Environments {
		if chosen != "" && chosen != environment {
			continue
		}
		known := map[string]*targetRow{}
		for _, t := range catalogue.Types() {
			target, ok := t.Target(environment)
			if !ok || !p.Can(rbac.Read, environment, t.Name) {
				continue
			}
			row := known[target.Destination()]
			if row == nil {
				row = &targetRow{destination: target.Destination(), Row: targets.Row{Name: destinationWords(target), Environment: environment, Kind: "River",
					Within: target.OutcomeWithin, Limit: target.InFlight()}}
				if target.HTTP != nil {
					row.Kind = "HTTP"
				}
				known[target.Destination()] = row
				rows = append(rows, row)
			}
			row.Types = append(row.Types, t.Name)
			row.Within = max(row.Within, target.OutcomeWithin)
		}
	}
	return rows
}

// addAll adds what went there of the row's types.
func (r *targetRow) addAll(flows []board.Flow) {
	for _, f := range flows {
		for _, name := range r.Types {
			if f.Environment == r.Environment && f.JobType == name {
				r.add(f)
			}
		}
	}
	r.judge()
}

func (r *targetRow) add(f board.Flow) {
	r.InFlight += f.InFlight
	r.Succeeded += f.Succeeded
	r.Failed += f.Failed
	r.unconfirmed += f.Unconfirmed
	if at := when(f.LastSentAt); at.After(r.LastSent) {
		r.LastSent = at
	}
}

// judge says how the destination fares by the replays of the last 24 hours.
func (r *targetRow) judge() {
	ended := r.Succeeded + r.Failed + r.unconfirmed
	switch {
	case ended == 0:
		r.Health, r.Text = "unknown", "no replay ended there in 24 h"
	case r.Succeeded == 0:
		r.Health, r.Text = "failing", "none of "+component.Plural(ended, "replay", "replays")+" succeeded in 24 h"
	case r.unconfirmed > 0:
		r.Health, r.Text = "degraded", component.Plural(r.unconfirmed, "replay has", "replays have")+" no known outcome in 24 h"
	default:
		r.Health = "healthy"
	}
}

// meet adds what is known of the destination itself: its breaker, which says
// more than the last day, what is out, and the holds on it.
func (r *targetRow) meet(h board.Health, now time.Time) {
	for _, d := range h.Destinations {
		if d.Environment != r.Environment || d.Name != r.destination {
			continue
		}
		r.InFlight, r.Undelivered = d.Out, d.Undelivered
		if words := breakerWords(d.Destination, now); words != "" {
			r.Health, r.Text = "failing", words
			if d.Breaker == "half_open" {
				r.Health = "degraded"
			}
		}
	}
	for _, held := range h.Holds {
		if held.Environment == r.Environment && (held.Destination == r.destination || held.Destination == "" && held.JobType == "") {
			r.Held = byWords(held)
		}
		if held.Environment == r.Environment && held.JobType != "" {
			for _, name := range r.Types {
				if name == held.JobType {
					r.HeldTypes = append(r.HeldTypes, name)
				}
			}
		}
	}
}

// breakerWords says that the breaker keeps replays back; empty when it doesn't.
func breakerWords(d board.Destination, now time.Time) string {
	var words string
	switch d.Breaker {
	case "open":
		words = "replays wait: it fails"
		if d.FailingSince != nil {
			words += " since " + timeOfDay(*d.FailingSince, now)
		}
		if d.RetryAt != nil {
			words += "; a few try again at " + timeOfDay(*d.RetryAt, now)
		}
	case "half_open":
		words = "it failed, and a few replays try it now"
	default:
		return ""
	}
	return words + orEmpty("; ", d.Why)
}

func orEmpty(before, s string) string {
	if s == "" {
		return ""
	}
	return before + s
}
