package web

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/redrive-dlq/redrive/static"
)

// staticRoute serves styles and scripts; they bring their own caching and
// compression.
func (s *Server) staticRoute() Route {
	handler := static.Handler()
	return Route{Method: http.MethodGet, Path: static.Prefix + "*", Name: "static", Audience: Probe, Policy: Public(),
		Handle: func(c echo.Context) error {
			handler.ServeHTTP(c.Response(), c.Request())
			return nil
		}}
}
