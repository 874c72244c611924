package web

import (
	"context"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"
)

// Paths of the health checks.
const (
	pathHealthz = "/healthz"
	pathReadyz  = "/readyz"
)

func (s *Server) probeRoutes() []Route {
	return []Route{
		{Method: http.MethodGet, Path: pathHealthz, Name: "healthz", Audience: Probe, Policy: Public(), Handle: s.healthz},
		{Method: http.MethodGet, Path: pathReadyz, Name: "readyz", Audience: Probe, Policy: Public(), Timeout: 5 * time.Second, Handle: s.readyz},
		s.staticRoute(),
	}
}

// healthz says that the process lives; it asks nobody else.
func (s *Server) healthz(c echo.Context) error { return c.String(http.StatusOK, "ok\n") }

// readyz says whether requests can be served: not while stopping, and not
// without the database. It never says why; the log does.
func (s *Server) readyz(c echo.Context) error {
	select {
	case <-s.draining:
		return c.String(http.StatusServiceUnavailable, "stopping\n")
	default:
	}
	ready := s.config.Ready
	if ready == nil {
		ready = func(ctx context.Context) error { return s.config.Pool.Ping(ctx) }
	}
	if err := ready(c.Request().Context()); err != nil {
		s.logFailure(c, answer{status: http.StatusServiceUnavailable, code: "unavailable"}, err)
		return c.String(http.StatusServiceUnavailable, "not ready\n")
	}
	return c.String(http.StatusOK, "ready\n")
}
