package web

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"

	"github.com/redrive-dlq/redrive/dlq"
	"github.com/redrive-dlq/redrive/dlq/jobtype"
	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/rbac"
	"github.com/redrive-dlq/redrive/views/component"
	"github.com/redrive-dlq/redrive/views/job"
	"github.com/redrive-dlq/redrive/views/layout"
	"github.com/redrive-dlq/redrive/views/route"
)

type handler = echo.HandlerFunc

// actForm is what the forms of the simple acts send; each uses some of it.
type actForm struct {
	Version   string `form:"version"` // generation of the job when the form was shown
	Reason    string `form:"reason"`
	Reference string `form:"reference"`
	Kind      string `form:"kind"`
	Text      string `form:"text"`
	Assignee  string `form:"assignee"`
	Until     string `form:"until"`
	Ended     string `form:"ended"`
	EffectID  string `form:"effect_id"`

	// What was wrong with it: the field of the form, and the message.
	at, wrong string
}

// errorAt is the message for a field; empty when that isn't what was wrong.
func (f actForm) errorAt(field string) string {
	if f.at == field {
		return f.wrong
	}
	return ""
}

func (f actForm) generation() int {
	n, _ := strconv.Atoi(f.Version) // what is no number was not from our form: no check then
	return n
}

// jobAct is one simple act: a page with a form, and what the form does.
type jobAct struct {
	action route.Action
	perm   rbac.Permission
	name   string // of the domain's act
	title  string // %s is the job's id
	// consequence says what happens, and what doesn't.
	consequence func(j dlq.TriageJob, t *jobtype.Type) string
	view        func(s *Server, j dlq.TriageJob, a job.Act, f actForm) templ.Component
	do          func(ctx context.Context, s *Server, p *rbac.Principal, j dlq.TriageJob, f actForm) error
	done        func(f actForm) string
}

func (s *Server) actPage(a jobAct) handler {
	return func(c echo.Context) error {
		j, err := s.actJob(c, a.perm)
		if err != nil {
			return err
		}
		if err := dlq.TriageCan(j, a.name); err != nil {
			return s.renderRefused(c, j, err)
		}
		return s.renderAct(c, http.StatusOK, a, j, actForm{Version: strconv.Itoa(j.Generation), Assignee: j.Assignee})
	}
}

func (s *Server) actSubmit(a jobAct) handler {
	return func(c echo.Context) error {
		j, err := s.actJob(c, a.perm)
		if err != nil {
			return err
		}
		form, err := bind[actForm](c)
		if err != nil {
			return err
		}
		err = a.do(c.Request().Context(), s, s.principal(c), j, form)
		var p *problem.Error
		switch {
		case err == nil:
			return s.redirectWithFlash(c, route.Job(actID(j)), layout.Flash{Tone: "success", Text: a.done(form)})
		case !errors.As(err, &p):
			return err
		case p.Code == problem.Invalid:
			form.at, form.wrong = p.Field, p.Message
			return s.renderAct(c, http.StatusUnprocessableEntity, a, j, form)
		case p.Code == problem.Conflict:
			return s.renderRefused(c, j, err)
		}
		return err
	}
}

// actJob reads the job of the address for somebody who may do this to it.
func (s *Server) actJob(c echo.Context, perm rbac.Permission) (dlq.TriageJob, error) {
	id, err := idParam(c, "id")
	if err != nil {
		return dlq.TriageJob{}, err
	}
	return dlq.TriageRead(c.Request().Context(), s.config.Pool, s.principal(c), id, perm)
}

func actID(j dlq.TriageJob) string { return strconv.FormatInt(j.ID, 10) }

// act fills what the pages of all actions show.
func (s *Server) act(c echo.Context, j dlq.TriageJob, title string) (job.Act, error) {
	page, err := s.pageIn(c, title, layout.SectionJobs, j.Environment, route.Jobs)
	if err != nil {
		return job.Act{}, err
	}
	return job.Act{Page: page, Version: strconv.Itoa(j.Generation), Brief: job.Brief{
		ID: actID(j), JobID: j.JobID, Type: j.JobType, Environment: j.Environment, Status: j.Status, Key: j.IdempotencyKey}}, nil
}

func (s *Server) renderAct(c echo.Context, status int, a jobAct, j dlq.TriageJob, f actForm) error {
	page, err := s.act(c, j, strings.ReplaceAll(a.title, "%s", component.Cut(j.JobID, 60)))
	if err != nil {
		return err
	}
	t, _ := s.config.Types().Type(j.JobType)
	page.Consequence = a.consequence(j, t)
	page.Version, page.Reason, page.ReasonError = f.Version, f.Reason, f.errorAt(route.FieldReason)
	if f.wrong != "" {
		page.Problem = "Nothing was done. " + f.wrong
	}
	return s.render(c, status, a.view(s, j, page, f))
}

// renderRefused says why the job's state refuses the act, and leads back.
func (s *Server) renderRefused(c echo.Context, j dlq.TriageJob, cause error) error {
	var p *problem.Error
	if !errors.As(cause, &p) {
		return cause
	}
	if now, err := dlq.TriageRead(c.Request().Context(), s.config.Pool, s.principal(c), j.ID, rbac.Read); err == nil {
		j = now // another act may have come between
	}
	page, err := s.act(c, j, "This can't be done to "+component.Cut(j.JobID, 60)+" now")
	if err != nil {
		return err
	}
	page.Problem = p.Message
	href, link := "", ""
	if j.Status == "resolved" || j.Status == "discarded" {
		if s.principal(c).Can(rbac.Triage, j.Environment, j.JobType) && dlq.TriageCan(j, "reopen") == nil {
			href, link = route.JobAction(actID(j), route.Reopen), "Reopen it"
		}
	}
	return s.render(c, http.StatusConflict, job.Refused(page, href, link))
}

// effectsOf says what one run does: "sends one e-mail to the customer".
func effectsOf(t *jobtype.Type) []string {
	if t == nil {
		return nil
	}
	var texts []string
	for _, e := range t.SideEffects {
		if e.Kind != "none" && e.Text != "" {
			texts = append(texts, e.Text)
		}
	}
	return texts
}

// runDoes is a sentence's end: "sends one e-mail to the customer", or what can
// be said of a type that declares nothing.
func runDoes(t *jobtype.Type) string {
	texts := effectsOf(t)
	switch {
	case len(texts) > 0:
		return strings.Join(texts, " and ")
	case t != nil && !t.HasEffect():
		return "changes nothing outside"
	}
	return "does whatever its worker does; the type declares no side effect"
}
