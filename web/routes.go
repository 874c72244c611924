package web

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/redrive-dlq/redrive/rbac"
)

// Audience says who a route talks to, and so how it answers errors.
type Audience int

// The audiences.
const (
	Browser Audience = iota + 1 // pages and their forms: sessions, HTML
	API                         // machines: bearer tokens, JSON, no cookies
	Probe                       // health checks and static files: nobody in particular
)

// Policy says who may use a route. The zero value is no policy: such a route is
// refused when the server is made.
type Policy struct {
	kind   policyKind
	perms  []rbac.Permission
	stepUp bool
	order  bool
}

type policyKind int

const (
	kindPublic policyKind = iota + 1
	kindSignedIn
	kindNeeds
)

// Public lets everybody in.
func Public() Policy { return Policy{kind: kindPublic} }

// SignedIn lets in everybody with a session, or with a token on an API route.
func SignedIn() Policy { return Policy{kind: kindSignedIn} }

// Needs lets in who holds all the permissions somewhere; the domain checks the
// environment and the type of what is acted on.
func Needs(perms ...rbac.Permission) Policy { return Policy{kind: kindNeeds, perms: perms} }

// WithStepUp asks also for a passphrase given just now.
func (p Policy) WithStepUp() Policy {
	p.stepUp = true
	return p
}

// AsOrder counts what is written among the person's orders, which have a limit.
func (p Policy) AsOrder() Policy {
	p.order = true
	return p
}

// String names the policy in a line: "needs run_batch, step-up, order". Tests
// hold the table against what was decided.
func (p Policy) String() string {
	words := map[policyKind]string{0: "none", kindPublic: "public", kindSignedIn: "signed in"}[p.kind]
	if p.kind == kindNeeds {
		words = "needs"
		for _, perm := range p.perms {
			words += " " + string(perm)
		}
	}
	if p.stepUp {
		words += ", step-up"
	}
	if p.order {
		words += ", order"
	}
	return words
}

// Route is one line of the route table; each is declared once.
type Route struct {
	Method   string
	Path     string // Echo's notation: /jobs/:id
	Name     string // unique, for logs
	Audience Audience
	Policy   Policy
	// BodyLimit is the largest body in bytes. 0 means 64 KiB for a browser's
	// form and no body at all for GET.
	BodyLimit int64
	// Timeout of the handler's context; 0 means 30 seconds. Streams have none.
	Timeout time.Duration
	// Stream marks an event stream: no timeout, no compression.
	Stream bool
	Handle echo.HandlerFunc
}

// formLimit is the largest form a browser may send: reasons and edits are small.
const formLimit = 64 << 10

func (r Route) writes() bool { return r.Method != http.MethodGet && r.Method != http.MethodHead }

func (r Route) bodyLimit() int64 {
	if r.BodyLimit == 0 && r.writes() {
		return formLimit
	}
	return r.BodyLimit
}

func (r Route) check() error {
	switch {
	case r.Policy.kind == 0 || (r.Policy.kind == kindNeeds && len(r.Policy.perms) == 0):
		return fmt.Errorf("web: route %s %s has no policy", r.Method, r.Path)
	case r.Name == "" || r.Audience == 0 || r.Handle == nil:
		return fmt.Errorf("web: route %s %s lacks a name, an audience or a handler", r.Method, r.Path)
	case r.Audience == API != strings.HasPrefix(r.Path, apiPrefix):
		return fmt.Errorf("web: route %s %s: what is for machines stands below %s, and nothing else", r.Method, r.Path, apiPrefix)
	case r.Stream && r.Method != http.MethodGet:
		return fmt.Errorf("web: route %s %s: only GET can stream", r.Method, r.Path)
	}
	return nil
}

// apiPrefix starts the paths that answer machines.
const apiPrefix = "/api/"

// table is every route of the console. A page's file has a function that
// returns its routes; it is named here.
func (s *Server) table() []Route {
	return slices.Concat(
		s.probeRoutes(),
		s.loginRoutes(),
		s.accountRoutes(),
		s.adminRoutes(),
		s.actionRoutes(),
		s.planRoutes(),
		s.runRoutes(),
		s.reportRoutes(),
		s.holdRoutes(),
		s.pageRoutes(),
		s.config.Routes,
	)
}

// Routes returns the route table, for tests and documents.
func (s *Server) Routes() []Route { return slices.Clone(s.routes) }

// register declares the routes at the router, each behind its guard.
func (s *Server) register(table []Route) error {
	names := map[string]bool{}
	for _, r := range table {
		if err := r.check(); err != nil {
			return err
		}
		key := r.Method + " " + r.Path
		if names[key] || names[r.Name] {
			return fmt.Errorf("web: route %s or its name %q is declared twice", key, r.Name)
		}
		names[key], names[r.Name] = true, true
		handle := s.guard(r)
		s.echo.Add(r.Method, r.Path, handle).Name = r.Name
		if r.Method == http.MethodGet {
			s.pages[r.Path] = true
			if !r.Stream {
				s.echo.Add(http.MethodHead, r.Path, handle).Name = r.Name + ".head"
			}
		}
	}
	s.routes = table
	return nil
}
