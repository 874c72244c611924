package web

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/labstack/echo/v4"

	"github.com/redrive-dlq/redrive/dlq"
	"github.com/redrive-dlq/redrive/dlq/board"
	"github.com/redrive-dlq/redrive/dlq/filter"
	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/dlq/redact"
	"github.com/redrive-dlq/redrive/rbac"
	"github.com/redrive-dlq/redrive/views/component"
	"github.com/redrive-dlq/redrive/views/jobs"
	"github.com/redrive-dlq/redrive/views/layout"
	"github.com/redrive-dlq/redrive/views/route"
)

// jobsPage lists dead jobs. A filter with a mistake shows no list rather than
// a wrong one, with the status of the mistake.
func (s *Server) jobsPage(c echo.Context) error {
	word, done, err := s.search(c)
	if done {
		return err
	}
	values := jobsValues(c.QueryParams())
	var f filter.Filter
	if err == nil {
		f, err = filter.FromValues(values)
	}
	if err == nil {
		err = f.CheckShareable()
	}
	if word != "" && !misspelt(err) {
		return s.jobsUnnamed(c, word)
	}
	var found dlq.ListPage
	if err == nil {
		found, err = dlq.List(c.Request().Context(), s.config.Pool, s.principal(c),
			dlq.ListQuery{Filter: f, Cursor: c.QueryParam(route.ParamCursor), Now: s.people.Now()})
	}
	a := answer{status: http.StatusOK}
	if err != nil {
		if !problem.Is(err, problem.Invalid) {
			return err
		}
		a = s.explain(err)
		hideSecrets(c)
	}
	props, err := s.jobsProps(c, f, found, a, err)
	if err != nil {
		return err
	}
	return s.render(c, a.status, jobs.List(props))
}

// misspelt tells a word that was meant for the filter's language from a name.
func misspelt(err error) bool {
	var at *filter.SyntaxError
	return errors.As(err, &at) && at.Suggestion != ""
}

// jobsUnnamed is the list after a search for a name that no job bears.
func (s *Server) jobsUnnamed(c echo.Context, word string) error {
	props, err := s.jobsProps(c, filter.Filter{}, dlq.ListPage{}, answer{}, nil)
	if err != nil {
		return err
	}
	props.Page.Title = s.environmentTitle(c, "No dead job is named "+component.Cut(word, 60))
	props.Unnamed, props.Elsewhere = component.Cut(word, 200), s.elsewhere(c)
	return s.render(c, http.StatusOK, jobs.List(props))
}

// jobsValues is the list's filter as the address has it. Without a status it
// means open jobs, unless they are asked for by name.
func jobsValues(query url.Values) url.Values {
	values := url.Values{}
	for name, v := range query {
		values[name] = slices.Clone(v)
	}
	_, said := values[route.ParamStatus]
	if !said && values.Get(route.ParamQuery) == "" && values.Get(route.ParamJob) == "" && values.Get(route.ParamKey) == "" {
		values.Set(route.ParamStatus, "open")
	}
	if values.Get(route.ParamStatus) == route.AnyStatus {
		values.Del(route.ParamStatus)
	}
	return values
}

// jobsProps fills the page; a is what went wrong with the filter, cause why.
func (s *Server) jobsProps(c echo.Context, f filter.Filter, found dlq.ListPage, a answer, cause error) (jobs.Props, error) {
	ctx := c.Request().Context()
	props := jobs.Props{Filter: shownFilter(c.Request().URL.Query()), Problem: a.text, Total: int(found.Total.N), More: found.Total.More,
		Pages: pages(c, found.Next, found.Prev)}
	title := jobsTitle(f, found.Total)
	if a.text != "" {
		title, props.ProblemAt = "This filter has a mistake", wordOf(c.QueryParam(route.ParamQuery), cause)
	}
	var err error
	if props.Page, err = s.page(c, title, layout.SectionJobs); err != nil {
		return props, err
	}
	if props.Types, err = s.typeNames(c); err != nil {
		return props, err
	}
	props.Types = andAlso(props.Types, props.Filter.Type)
	props.Environments = andAlso(slices.Clone(s.config.Environments), props.Filter.Environment)
	for _, r := range found.Rows {
		props.Rows = append(props.Rows, jobsRow(r))
	}
	if s.config.Replays != nil && s.principal(c).Can(rbac.PlanBatch, "", "") {
		props.CanPlan, props.Canonical = true, f.String()
	}
	if len(props.Rows) == 0 && a.text == "" {
		some, err := board.Captured(ctx, s.config.Pool)
		if err != nil {
			return props, err
		}
		props.NothingCaptured = !some
	}
	return props, nil
}

// andAlso is the list with the value in force, so that a form keeps it.
func andAlso(list []string, value string) []string {
	if value == "" || slices.Contains(list, value) {
		return list
	}
	return append(list, value)
}

func jobsRow(r dlq.ListRow) jobs.Row {
	return jobs.Row{
		ID: strconv.FormatInt(r.ID, 10), JobID: r.JobID, Type: r.JobType, Environment: r.Environment, Source: r.Source,
		Status: r.Status, Effect: r.Effect, Category: r.Category, ErrorClass: r.ErrorClass, Error: r.ErrorMessage,
		Entity: r.Entity, Tenant: r.Tenant, Attempts: r.AttemptCount, MaxAttempts: r.MaxAttempts, Generation: r.Generation,
		DiedAt: r.DiedAt, Implausible: r.DiedAtNote != "",
	}
}

// shownFilter is the filter as the form and the chips show it.
func shownFilter(query url.Values) jobs.Filter {
	f := jobs.FilterFrom(jobsValues(query))
	if f.Status == "" && query.Get(route.ParamQuery) == "" {
		f.Status = route.AnyStatus
	}
	return f
}

// wordOf is the word of a query that its mistake points at; nothing that looks
// like a secret is repeated.
func wordOf(q string, err error) string {
	var at *filter.SyntaxError
	if !errors.As(err, &at) || at.Offset < 0 || at.Length <= 0 || at.Offset+at.Length > len(q) {
		return ""
	}
	word := q[at.Offset : at.Offset+at.Length]
	if redact.LooksSecret(word) {
		return ""
	}
	return component.Cut(word, 80)
}
