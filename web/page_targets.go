package web

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/redrive-dlq/redrive/dlq/board"
	"github.com/redrive-dlq/redrive/rbac"
	"github.com/redrive-dlq/redrive/views/component"
	"github.com/redrive-dlq/redrive/views/layout"
	"github.com/redrive-dlq/redrive/views/targets"
)

// targetsPage shows where replays go in each environment, and how they fare.
func (s *Server) targetsPage(c echo.Context) error {
	p, chosen := s.principal(c), s.environment(c)
	flows, err := board.Flows(c.Request().Context(), s.config.Pool, p, chosen, s.people.Now())
	if err != nil {
		return err
	}
	props := targets.Props{}
	rows := s.targetRows(p, chosen)
	for _, row := range rows {
		for _, f := range flows {
			for _, name := range row.Types {
				if f.Environment == row.Environment && f.JobType == name {
					row.add(f)
				}
			}
		}
		row.judge()
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
				row = &targetRow{Row: targets.Row{Name: destinationWords(target), Environment: environment, Kind: "River", Within: target.OutcomeWithin}}
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
