package web

import (
	"net/http"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/redrive-dlq/redrive/dlq"
	"github.com/redrive-dlq/redrive/dlq/board"
	"github.com/redrive-dlq/redrive/views/component"
	"github.com/redrive-dlq/redrive/views/layout"
	"github.com/redrive-dlq/redrive/views/overview"
	"github.com/redrive-dlq/redrive/views/route"
)

// overviewGroups is how many groups the overview names.
const overviewGroups = 6

// overviewPage answers whether something is burning.
func (s *Server) overviewPage(c echo.Context) error {
	now := s.people.Now()
	o, err := dlq.ReadOverview(c.Request().Context(), s.config.Pool, s.principal(c), dlq.OverviewQuery{Environment: s.environment(c), Now: now})
	if err != nil {
		return err
	}
	props := overviewProps(o, now)
	top, err := board.TopGroups(c.Request().Context(), s.config.Pool, s.principal(c), s.environment(c), overviewGroups)
	if err != nil {
		return err
	}
	for _, g := range top {
		props.Groups = append(props.Groups, overview.GroupRow{Fingerprint: g.Fingerprint, Type: g.JobType, Class: g.ErrorClass,
			Message: g.Template, Open: g.Open, Last: g.LastSeen})
	}
	if err := s.overviewRuns(c, &props); err != nil {
		return err
	}
	title := s.environmentTitle(c, component.Plural(props.OpenNow, "open dead job", "open dead jobs"))
	if o.Empty {
		title = "No dead job has arrived yet"
	}
	if props.Page, err = s.page(c, title, layout.SectionOverview); err != nil {
		return err
	}
	return s.render(c, http.StatusOK, overview.View(props))
}

func overviewProps(o *dlq.Overview, now time.Time) overview.Props {
	props := overview.Props{
		OpenNow: int(o.Open), EffectUnknown: int(o.EffectUnknown), DiedLastHour: int(o.DiedLastHour), UsualPerHour: o.UsualPerHour,
		InFlight: int(o.InFlight), Succeeded: int(o.Succeeded), Ended: int(o.Ended), ChartStart: o.ChartStart,
		Deaths: map[string][]int{}, Empty: o.Empty, Waiting: int(o.Waiting),
	}
	if o.Oldest != nil {
		props.OldestOpen, props.OldestID = o.Oldest.DiedAt, strconv.FormatInt(o.Oldest.ID, 10)
	}
	for category, counts := range o.Deaths {
		props.Deaths[category] = ints(counts)
	}
	for _, t := range o.Types {
		props.ByType = append(props.ByType, overview.TypeRow{Type: t.JobType, Open: int(t.Open), Daily: ints(t.Daily), Oldest: t.Oldest})
	}
	for _, r := range o.Replays {
		props.Replays = append(props.Replays, overviewReplay(r, now))
	}
	for _, r := range o.UnderWay {
		props.UnderWay = append(props.UnderWay, overviewReplay(r, now))
	}
	for _, one := range o.Unhealthy {
		props.Unhealthy = append(props.Unhealthy, overviewSource(one, now))
	}
	return props
}

func overviewReplay(r dlq.OverviewReplay, now time.Time) overview.ReplayRow {
	row := overview.ReplayRow{JobID: strconv.FormatInt(r.DeadJobID, 10), Type: r.JobType, Environment: r.Environment,
		Label: r.JobID, State: r.State, By: r.By, At: r.At}
	if r.State == "pending" && r.At.After(now) {
		row.State = "scheduled"
	}
	return row
}

func overviewSource(one dlq.OverviewSource, now time.Time) overview.Health {
	h := overview.Health{Name: one.Name, State: "failing", Text: one.LastError, Href: route.Sources}
	if one.LastError == "" {
		h.State, h.Text = "unknown", "not read yet"
		if one.LastSeenAt != nil {
			h.State, h.Text = "degraded", "not read for "+component.Duration(now.Sub(*one.LastSeenAt))
		}
	}
	return h
}

func ints(list []int64) []int {
	out := make([]int, len(list))
	for i, n := range list {
		out[i] = int(n)
	}
	return out
}
