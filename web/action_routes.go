package web

import (
	"net/http"

	"github.com/redrive-dlq/redrive/rbac"
	"github.com/redrive-dlq/redrive/views/route"
)

// editLimit is the largest form of an edit: a place may hold a long text.
const editLimit = 1 << 20

// actionRoutes are the pages and forms of everything that may be done to a job.
// The policy of a route asks for the right anywhere; the domain asks for it in
// the job's environment and type, and calls what is out of scope not found.
func (s *Server) actionRoutes() []Route {
	var routes []Route
	add := func(r Route, action route.Action, get, post func(*Server) handler) {
		r.Path, r.Audience = action.Pattern(), Browser
		form, submit := r, r
		form.Method, form.Name, form.Handle, form.BodyLimit = http.MethodGet, "job."+string(action), get(s), 0
		submit.Method, submit.Name, submit.Handle = http.MethodPost, "job."+string(action)+".submit", post(s)
		routes = append(routes, form, submit)
	}
	for _, a := range jobActs {
		add(Route{Policy: Needs(a.perm)}, a.action,
			func(s *Server) handler { return s.actPage(a) }, func(s *Server) handler { return s.actSubmit(a) })
	}
	add(Route{Policy: Needs(rbac.Edit), BodyLimit: editLimit}, route.Edit,
		func(s *Server) handler { return s.editPage }, func(s *Server) handler { return s.editSubmit })
	// A single replay asks for no passphrase; a type that should would add
	// WithStepUp here, or call RequireStepUp where its policy is known.
	add(Route{Policy: Needs(rbac.ReplayOne).AsOrder()}, route.Replay,
		func(s *Server) handler { return s.replayPage }, func(s *Server) handler { return s.replaySubmit })
	add(Route{Policy: Needs(rbac.ReplayOne)}, route.Cancel,
		func(s *Server) handler { return s.cancelPage }, func(s *Server) handler { return s.cancelSubmit })
	return routes
}
