package web

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"github.com/labstack/echo/v4"

	"github.com/redrive-dlq/redrive/dlq/board"
	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/rbac"
	"github.com/redrive-dlq/redrive/views/batches"
	"github.com/redrive-dlq/redrive/views/layout"
	"github.com/redrive-dlq/redrive/views/route"
)

// runForm is what the forms of the commands on a batch send.
type runForm struct {
	Reason    string `form:"reason"`
	PerMinute string `form:"per_minute"`

	// What was wrong with it: the field of the form, and the message.
	at, wrong string
}

func (f runForm) errorAt(field string) string {
	if f.at == field {
		return f.wrong
	}
	return ""
}

// runDone is what a command did, in words, and where one goes on; empty: to the
// batch.
type runDone struct{ text, next string }

// runAct is one command on an ordered batch: a page that asks, and what its
// form does.
type runAct struct {
	pattern string
	name    string // of the route
	states  []string
	refusal string // where the state isn't one of them
	may     func(s *Server, p *rbac.Principal, b board.Batch) error
	stepUp  func(b board.Batch) bool
	view    func(s *Server, b board.Batch, f runForm) batches.CommandProps
	do      func(ctx context.Context, s *Server, p *rbac.Principal, b board.Batch, f runForm) (runDone, error)
}

// runRoutes are the pages and forms of the commands. Any reader may ask; who
// may do it is decided for the batch, since a plan, a request and a run differ
// in who may withdraw them.
func (s *Server) runRoutes() []Route {
	var routes []Route
	for _, a := range append(runActs, planFailedAct) {
		r := Route{Path: a.pattern, Audience: Browser, Policy: Needs(rbac.Read)}
		if a.name == planFailedAct.name {
			r.Policy = r.Policy.AsOrder() // the others are brakes: they have no limit
		}
		form, submit := r, r
		form.Method, form.Name, form.Handle = http.MethodGet, "batch."+a.name, s.runPage(a)
		submit.Method, submit.Name, submit.Handle = http.MethodPost, "batch."+a.name+".submit", s.runSubmit(a)
		routes = append(routes, form, submit)
	}
	return routes
}

// runBatch reads the batch of the address for somebody who may do this to it.
func (s *Server) runBatch(c echo.Context, a runAct) (board.Batch, error) {
	if s.config.Replays == nil {
		return board.Batch{}, errNoReplays
	}
	id, err := idParam(c, "id")
	if err != nil {
		return board.Batch{}, err
	}
	b, err := board.BatchOf(c.Request().Context(), s.config.Pool, s.principal(c), id)
	if err != nil {
		return b, err
	}
	if err := a.may(s, s.principal(c), b); err != nil {
		return b, err
	}
	if a.stepUp != nil && a.stepUp(b) {
		return b, s.people.RequireStepUp(s.principal(c))
	}
	return b, nil
}

func (s *Server) runPage(a runAct) handler {
	return func(c echo.Context) error {
		b, err := s.runBatch(c, a)
		if err != nil {
			return err
		}
		if !slices.Contains(a.states, b.State) {
			return s.renderRunRefused(c, a, b, a.refusal)
		}
		return s.renderRun(c, http.StatusOK, a, b, runForm{})
	}
}

func (s *Server) runSubmit(a runAct) handler {
	return func(c echo.Context) error {
		b, err := s.runBatch(c, a)
		if err != nil {
			return err
		}
		form, err := bind[runForm](c)
		if err != nil {
			return err
		}
		done, err := a.do(c.Request().Context(), s, s.principal(c), b, form)
		var p *problem.Error
		switch {
		case err == nil:
			if done.next == "" {
				done.next = route.Batch(formatID(b.ID))
			}
			return s.redirectWithFlash(c, done.next, layout.Flash{Tone: "success", Text: done.text})
		case !errors.As(err, &p):
			return err
		case p.Code == problem.Invalid:
			form.at, form.wrong = p.Field, p.Message
			return s.renderRun(c, http.StatusUnprocessableEntity, a, b, form)
		case p.Code == problem.Conflict:
			if now, err := board.BatchOf(c.Request().Context(), s.config.Pool, s.principal(c), b.ID); err == nil {
				b = now // another command may have come between
			}
			return s.renderRunRefused(c, a, b, p.Message)
		}
		return err
	}
}
