package web

import (
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"github.com/redrive-dlq/redrive/audit"
	"github.com/redrive-dlq/redrive/dlq"
	"github.com/redrive-dlq/redrive/dlq/problem"
	auditview "github.com/redrive-dlq/redrive/views/audit"
	"github.com/redrive-dlq/redrive/views/component"
	"github.com/redrive-dlq/redrive/views/layout"
	"github.com/redrive-dlq/redrive/views/route"
)

// auditPage shows the log, newest entry first.
func (s *Server) auditPage(c echo.Context) error {
	props := auditview.Props{Filter: auditview.FilterFrom(c.QueryParams())}
	codes, phrases := audit.Actions()
	for i, code := range codes {
		props.Actions = append(props.Actions, component.Choice{Value: code, Word: phrases[i]})
	}
	q, err := s.auditQuery(c, props.Filter)
	var found audit.Page
	if err == nil {
		found, err = dlq.ListAudit(c.Request().Context(), s.config.Pool, s.principal(c), q)
	}
	status, title := http.StatusOK, s.environmentTitle(c, "Who did what, newest first")
	if err != nil {
		if !problem.Is(err, problem.Invalid) {
			return err
		}
		a := s.explain(err)
		status, title, props.Problem = a.status, "This filter has a mistake", a.text
	}
	props.Entries, props.Pages = entries(found.Records), pages(c, found.Next, found.Prev)
	if props.Page, err = s.page(c, title, layout.SectionAudit); err != nil {
		return err
	}
	return s.render(c, status, auditview.View(props))
}

// auditQuery reads the page's filter. Errors: Invalid, with the parameter.
func (s *Server) auditQuery(c echo.Context, f auditview.Filter) (audit.Query, error) {
	q := audit.Query{Actor: strings.TrimSpace(f.Actor), Action: f.Action, Environment: f.Environment, Cursor: c.QueryParam(route.ParamCursor)}
	for _, text := range []string{f.Actor, f.Action, f.Object, f.Environment} {
		if strings.ContainsRune(text, 0) || !utf8.ValidString(text) || len(text) > 1024 {
			return q, problem.New(problem.Invalid, "A filter of the log is UTF-8 text of at most 1,024 bytes, without NUL.")
		}
	}
	var err error
	if q.From, q.To, err = dates(c.QueryParams()); err != nil {
		return q, err
	}
	q.ObjectKind, q.ObjectID = audit.ParseObject(f.Object)
	number, notNumber := strconv.ParseInt(q.ObjectID, 10, 64)
	switch {
	case q.ObjectID == "" || (q.ObjectKind != "" && q.ObjectKind != "job") || (q.ObjectKind == "" && notNumber == nil):
		return q, nil
	case notNumber == nil:
		// Everything about the job, its replays too, whose entries are on them.
		q.DeadJob, q.ObjectKind, q.ObjectID = number, "", ""
		return q, nil
	}
	// People know a job by its source's id or by its key.
	jobs, keys, err := dlq.AuditNamed(c.Request().Context(), s.config.Pool, s.principal(c), q.ObjectID, q.Environment)
	if err == nil && len(jobs) > 0 {
		q.About, q.Keys, q.ObjectKind, q.ObjectID = jobs, keys, "", ""
	}
	return q, err
}
