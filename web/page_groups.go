package web

import (
	"net/http"
	"strconv"

	"github.com/labstack/echo/v4"

	"github.com/redrive-dlq/redrive/dlq"
	"github.com/redrive-dlq/redrive/dlq/board"
	"github.com/redrive-dlq/redrive/dlq/filter"
	"github.com/redrive-dlq/redrive/rbac"
	"github.com/redrive-dlq/redrive/views/component"
	"github.com/redrive-dlq/redrive/views/groups"
	"github.com/redrive-dlq/redrive/views/layout"
	"github.com/redrive-dlq/redrive/views/route"
)

// groupsPage lists failures, last seen first.
func (s *Server) groupsPage(c echo.Context) error {
	found, err := board.Groups(c.Request().Context(), s.config.Pool, s.principal(c), s.environment(c), c.QueryParam(route.ParamCursor))
	if err != nil {
		return err
	}
	props := groups.ListProps{Pages: pages(c, found.Next, found.Prev)}
	for _, g := range found.Rows {
		props.Rows = append(props.Rows, groupRow(g))
	}
	if props.Page, err = s.page(c, s.environmentTitle(c, "Failures that dead jobs share, last seen first"), layout.SectionGroups); err != nil {
		return err
	}
	return s.render(c, http.StatusOK, groups.List(props))
}

func groupRow(g board.Group) groups.Row {
	return groups.Row{Fingerprint: g.Fingerprint, Type: g.JobType, Category: g.Category, Class: g.ErrorClass,
		Template: g.Template, Open: g.Open, Jobs: g.Jobs, First: g.FirstSeen, Last: g.LastSeen}
}

// groupPage shows one failure and the latest of its jobs.
func (s *Server) groupPage(c echo.Context) error {
	ctx, p := c.Request().Context(), s.principal(c)
	g, err := board.GroupOf(ctx, s.config.Pool, p, c.Param("id"))
	if err != nil {
		return err
	}
	counts, err := board.GroupCounts(ctx, s.config.Pool, p, g.Fingerprint)
	if err != nil {
		return err
	}
	latest, err := dlq.List(ctx, s.config.Pool, p, dlq.ListQuery{Limit: 10, SkipTotal: true, Now: s.people.Now(),
		Filter: filter.Filter{Fingerprints: []string{g.Fingerprint}}})
	if err != nil {
		return err
	}
	props := groups.Props{Row: groupRow(g), Diagnosis: diagnosis(g.Category)}
	if t, ok := s.config.Types().Type(g.JobType); ok {
		props.Owner, props.Runbook = t.Owner, t.Runbook
	}
	if s.config.Replays != nil {
		if p.Can(rbac.PlanBatch, "", g.JobType) && g.Open > 0 {
			props.Plan = route.PlanOf(filter.Filter{Fingerprints: []string{g.Fingerprint}, Status: []string{"open"}, Environments: s.inEnvironment(c)}.String())
		}
		if p.Can(rbac.DeclareFix, "", g.JobType) && (g.Category == "invalid_input" || g.Category == "auth") {
			props.Fix = route.GroupFix(g.Fingerprint)
		}
	}
	for _, status := range component.Statuses {
		if counts[status] > 0 {
			props.Statuses = append(props.Statuses, groups.Status{Status: status, Count: counts[status]})
		}
	}
	for _, r := range latest.Rows {
		props.Latest = append(props.Latest, groups.Job{ID: strconv.FormatInt(r.ID, 10), JobID: r.JobID, Environment: r.Environment,
			Status: r.Status, Error: r.ErrorMessage, DiedAt: r.DiedAt})
	}
	title := component.Plural(g.Open, "open job", "open jobs") + " of " + component.Cut(g.JobType, 60) + ": " + component.OneLine(g.Template, 100)
	if props.Page, err = s.page(c, title, layout.SectionGroups); err != nil {
		return err
	}
	return s.render(c, http.StatusOK, groups.View(props))
}

// diagnosis says what a category means for the whole group (see the retry
// literature that dlq/category is made from: what to do depends on the cause).
func diagnosis(category string) string {
	switch category {
	case "transient":
		return "The other side was away or slow. Once it is healthy again, replaying helps."
	case "throttled":
		return "The other side asked for fewer requests. Replay later, slowly."
	case "missing_state":
		return "Something that the job needs isn't there. Create it, or discard the jobs if it never will be."
	case "invalid_input":
		return "A contract problem: the input is refused, so retrying alone will not help. Correct the payloads, or fix the code and declare the fix."
	case "auth":
		return "The credentials were refused. Fix the key first, declare the fix, then replay."
	}
	return "Nobody knows yet what kind of failure this is. Look at one of its jobs before replaying any."
}

// inEnvironment is the environment that is looked at, as a filter takes it.
func (s *Server) inEnvironment(c echo.Context) []string {
	if e := s.environment(c); e != "" {
		return []string{e}
	}
	return nil
}
