package web

import (
	"compress/gzip"
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"

	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/rbac"
)

// guard wraps a route's handler in what its line of the table says: time and
// body limits, who may come in, compression.
func (s *Server) guard(r Route) echo.HandlerFunc {
	handle := r.Handle
	if !r.Stream && r.Audience != Probe {
		handle = middleware.GzipWithConfig(middleware.GzipConfig{Level: gzip.BestSpeed, MinLength: 1024})(handle)
	}
	timeout := r.Timeout
	if timeout == 0 {
		timeout = handlerTimeout
	}
	return func(c echo.Context) error {
		c.Set(keyRoute, r)
		c.Set(keyServer, s)
		deadlines := http.NewResponseController(c.Response().Writer) // writers of tests have none
		if r.Stream {
			// The server's read timeout would end the stream's context, an
			// earlier answer's deadline its writes.
			_ = deadlines.SetReadDeadline(time.Time{})
			_ = deadlines.SetWriteDeadline(time.Time{})
		} else {
			ctx, cancel := context.WithTimeout(c.Request().Context(), timeout)
			defer cancel()
			c.SetRequest(c.Request().WithContext(ctx))
			_ = deadlines.SetWriteDeadline(time.Now().Add(timeout + 30*time.Second))
		}
		if err := limitBody(c, r); err != nil {
			return err
		}
		if err := s.admit(c, r); err != nil {
			return err
		}
		c.Response().Writer = clientWriter{c.Response().Writer}
		return handle(c)
	}
}

// limitBody refuses a body that is announced as too large, and cuts off one
// that turns out to be.
func limitBody(c echo.Context, r Route) error {
	req := c.Request()
	limit := r.bodyLimit()
	if req.ContentLength > limit {
		return tooLarge(limit)
	}
	if req.Body != nil {
		req.Body = http.MaxBytesReader(c.Response().Writer, req.Body, limit)
	}
	if r.writes() && r.Audience == Browser && req.ContentLength != 0 {
		kind, _, _ := strings.Cut(req.Header.Get("Content-Type"), ";")
		if !strings.EqualFold(strings.TrimSpace(kind), "application/x-www-form-urlencoded") {
			return problem.New(problem.Unsupported, "A form was expected here (application/x-www-form-urlencoded). Nothing was done.")
		}
	}
	return nil
}

func tooLarge(limit int64) error {
	return problem.New(problem.TooLarge, "The request is larger than the %s that this address takes. Nothing was done.", bytesInWords(limit))
}

// admit finds out who asks and compares that with the route's policy.
func (s *Server) admit(c echo.Context, r Route) error {
	if r.Policy.kind == kindPublic {
		return nil
	}
	p, err := s.identify(c, r.Audience)
	if err != nil {
		return err
	}
	if p == nil {
		return problem.New(problem.Unauthorized, "Sign in first.")
	}
	if err := p.Require("", "", r.Policy.perms...); err != nil {
		return err
	}
	if r.Policy.stepUp {
		if err := s.people.RequireStepUp(p); err != nil {
			return err
		}
	}
	if r.Policy.order && r.writes() {
		return s.orders.take(p.UserID, s.people.Now())
	}
	return nil
}

// identify returns who makes the request, nil when nobody is signed in. Pages
// know sessions only, the API tokens only.
func (s *Server) identify(c echo.Context, audience Audience) (*rbac.Principal, error) {
	if p := Principal(c); p != nil {
		return p, nil
	}
	var p *rbac.Principal
	if audience == API {
		secret := rbac.BearerToken(c.Request().Header.Get(echo.HeaderAuthorization))
		if secret == "" {
			return nil, problem.New(problem.Unauthorized, "Send an API token: Authorization: Bearer TOKEN.")
		}
		var err error
		if p, err = s.people.Bearer(c.Request().Context(), secret); err != nil {
			return nil, err
		}
	} else {
		x, err := s.session(c)
		if err != nil || x == nil {
			return nil, err
		}
		if p, err = s.people.Person(c.Request().Context(), x); err != nil || p == nil {
			return nil, err
		}
	}
	p.IP, p.RequestID = c.RealIP(), RequestID(c)
	c.Set(keyPrincipal, p)
	return p, nil
}

// Principal is who makes the request; nil on public routes and before the guard.
func Principal(c echo.Context) *rbac.Principal {
	p, _ := c.Get(keyPrincipal).(*rbac.Principal)
	return p
}
