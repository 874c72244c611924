package web

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/redrive-dlq/redrive/dlq"
	"github.com/redrive-dlq/redrive/dlq/board"
	"github.com/redrive-dlq/redrive/dlq/filter"
	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/dlq/redact"
	"github.com/redrive-dlq/redrive/views/component"
	"github.com/redrive-dlq/redrive/views/layout"
	"github.com/redrive-dlq/redrive/views/route"
)

// turnTo is the page of the list that begins at a cursor, with all else of the
// address as it is; empty without a cursor.
func turnTo(c echo.Context, cursor string) string {
	if cursor == "" {
		return ""
	}
	return route.Change(c.Request().URL, route.ParamCursor, cursor)
}

// pages are the links of a pager: the first page where there is one before.
func pages(c echo.Context, next, prev string) component.Pages {
	p := component.Pages{Next: turnTo(c, next), Prev: turnTo(c, prev)}
	if prev != "" {
		p.First = route.Change(c.Request().URL)
	}
	return p
}

// hideSecrets takes what looks like a secret out of the request's address, so
// that no link of the page repeats it. Job ids and keys are names.
func hideSecrets(c echo.Context) {
	values := c.Request().URL.Query()
	for name, list := range values {
		if name != route.ParamJob && name != route.ParamKey && slices.ContainsFunc(list, redact.LooksSecret) {
			values.Del(name)
		}
	}
	r := c.Request().Clone(c.Request().Context())
	r.URL.RawQuery = values.Encode()
	c.SetRequest(r)
}

// typeNames are the declared types and those that arrived, sorted.
func (s *Server) typeNames(c echo.Context) ([]string, error) {
	counts, err := board.Types(c.Request().Context(), s.config.Pool, s.principal(c), "")
	if err != nil {
		return nil, err
	}
	var names []string
	for _, t := range s.config.Types().Types() {
		names = append(names, t.Name)
	}
	for _, n := range counts {
		names = append(names, n.JobType)
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// jobsTitle says what the list shows: "1,284 open dead jobs, production".
func jobsTitle(f filter.Filter, total dlq.ListTotal) string {
	words := []string{"dead", "jobs"}
	if total.N == 1 && !total.More {
		words[1] = "job"
	}
	if len(f.Status) > 0 && len(f.Not.Status) == 0 {
		words = append([]string{strings.Join(f.Status, " or ")}, words...)
	}
	title := component.Count(int(total.N)) + " " + strings.Join(words, " ")
	if total.More {
		title = "More than " + title
	}
	if len(f.Types) == 1 {
		title += " of " + component.Cut(f.Types[0], 60)
	}
	if len(f.Environments) == 1 {
		title += ", " + component.Cut(f.Environments[0], 40)
	}
	return title
}

// pageIn is the frame of a page about one thing, in the environment where that
// lives: another environment has its list and not this thing.
func (s *Server) pageIn(c echo.Context, title string, section layout.Section, environment, list string) (layout.Page, error) {
	page, err := s.page(c, title, section)
	if err != nil {
		return page, err
	}
	page.Environment = environment
	page.Environments = layout.EnvironmentLinks(&url.URL{Path: list}, s.config.Environments, environment)
	page.OpenJobs, err = s.config.OpenJobs(c.Request().Context(), s.principal(c), environment)
	return page, err
}

// environmentTitle ends a title with the chosen environment, if there is one.
func (s *Server) environmentTitle(c echo.Context, title string) string {
	if name := s.environment(c); name != "" {
		return title + ", " + name
	}
	return title
}

// dates reads the from and to of an address: UTC dates, both inclusive. Errors:
// Invalid, with the parameter.
func dates(v url.Values) (from, to time.Time, err error) {
	for _, d := range []struct {
		name string
		into *time.Time
		days int
	}{{route.ParamFrom, &from, 0}, {route.ParamTo, &to, 1}} {
		text := v.Get(d.name)
		if text == "" {
			continue
		}
		at, err := time.Parse(time.DateOnly, text)
		if err != nil || at.Year() < 1900 {
			return from, to, problem.At(problem.Invalid, d.name, "%q must be a UTC date like 2026-01-31.", d.name)
		}
		*d.into = at.AddDate(0, 0, d.days)
	}
	return from, to, nil
}

// when is the time behind a pointer, or the zero time.
func when(at *time.Time) time.Time {
	if at == nil {
		return time.Time{}
	}
	return *at
}

// formatID writes an id for a path.
func formatID(id int64) string { return strconv.FormatInt(id, 10) }
