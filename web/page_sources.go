package web

import (
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/redrive-dlq/redrive/dlq/board"
	"github.com/redrive-dlq/redrive/dlq/redact"
	"github.com/redrive-dlq/redrive/dlq/source"
	"github.com/redrive-dlq/redrive/views/component"
	"github.com/redrive-dlq/redrive/views/layout"
	"github.com/redrive-dlq/redrive/views/sources"
)

// staleAfter is how long a source that we read may stay unread.
const staleAfter = time.Minute

// sourcesPage shows where dead jobs come from, and what could not be read.
func (s *Server) sourcesPage(c echo.Context) error {
	ctx, p, environment := c.Request().Context(), s.principal(c), s.environment(c)
	list, err := board.Sources(ctx, s.config.Pool, p, environment)
	if err != nil {
		return err
	}
	broken, n, err := board.Quarantine(ctx, s.config.Pool, p, environment)
	if err != nil {
		return err
	}
	props := sources.Props{Quarantined: n}
	unhealthy := 0
	for _, one := range list {
		row := sourceRow(one, s.people.Now())
		if row.Health == "failing" || row.Health == "degraded" {
			unhealthy++
		}
		props.Rows = append(props.Rows, row)
	}
	for _, q := range broken {
		name := q.Source
		if name == "" {
			name = kindWords(q.Door)
		}
		props.Quarantine = append(props.Quarantine, sources.Quarantined{At: q.ReceivedAt, Source: name, Problem: redact.Readable(q.Error), Size: q.Size})
	}
	title := s.environmentTitle(c, "Dead jobs come from "+component.Plural(len(list), "source", "sources"))
	if unhealthy > 0 {
		title += ": " + component.Count(unhealthy) + " unhealthy"
	}
	if props.Page, err = s.page(c, title, layout.SectionSources); err != nil {
		return err
	}
	return s.render(c, http.StatusOK, sources.View(props))
}

func sourceRow(one board.Source, now time.Time) sources.Row {
	row := sources.Row{Name: one.Name, Environment: one.Environment, Kind: kindWords(one.Kind), Health: "healthy",
		LastSeen: when(one.LastSeenAt), Jobs: one.Jobs, Promise: "none: it is answered after the commit"}
	if one.Kind == source.KindRiver {
		row.Promise = "none, while Redrive runs within River's retention"
		if one.Trigger {
			row.Promise = "none, by the trigger"
		}
	}
	switch {
	case one.LastError != "":
		row.Health, row.Text = "failing", redact.Readable(one.LastError)
	case one.LastSeenAt == nil && one.Jobs == 0:
		row.Health, row.Text = "unknown", "nothing came from it yet"
	case one.Kind == source.KindRiver && one.LastSeenAt == nil:
		row.Health, row.Text = "unknown", "not read yet"
	case one.Kind == source.KindRiver && now.Sub(*one.LastSeenAt) > staleAfter:
		row.Health, row.Text = "degraded", "not read for "+component.Duration(now.Sub(*one.LastSeenAt))
	}
	return row
}

// kindWords names a kind of source, or a door.
func kindWords(kind string) string {
	switch kind {
	case source.KindRiver:
		return "River"
	case source.KindHTTP:
		return "HTTP API"
	case source.KindSQL:
		return "SQL inbox"
	case source.KindGo:
		return "Go function"
	}
	return "not registered"
}
