// Package api is the JSON face of the console for machines: bearer tokens,
// problem details for errors, one handler file per resource.
package api

import (
	"log/slog"
	"net/http"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/labstack/echo/v4"

	"github.com/redrive-dlq/redrive/dlq"
	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/dlq/replay"
	"github.com/redrive-dlq/redrive/rbac"
	"github.com/redrive-dlq/redrive/web"
)

// Config is what the API needs.
type Config struct {
	Pool     *pgxpool.Pool
	Capturer *dlq.Capturer
	Replays  *replay.Service
	// Log gets the causes of documents that the database refused; nil: slog.Default.
	Log *slog.Logger
}

// API answers machines. Make it with New.
type API struct {
	Config
	sources seenSources
}

// New returns an API.
func New(c Config) *API {
	if c.Log == nil {
		c.Log = slog.Default()
	}
	return &API{Config: c}
}

// smallBody bounds the bodies of everything but captures, in bytes.
const smallBody = 64 << 10

// Routes is the API's part of the route table.
func (a *API) Routes() []web.Route {
	route := func(method, path, name string, p web.Policy, limit int64, h echo.HandlerFunc) web.Route {
		return web.Route{Method: method, Path: "/api/v1" + path, Name: "api." + name, Audience: web.API, Policy: p, BodyLimit: limit, Handle: h}
	}
	capture := route(http.MethodPost, "/dead-jobs", "capture", web.Needs(rbac.Capture), maxStream, a.capture)
	capture.Timeout = captureTimeout
	return []web.Route{
		capture,
		route(http.MethodGet, "/dead-jobs", "jobs", web.Needs(rbac.Read), 0, a.list),
		route(http.MethodGet, "/dead-jobs/:id", "job", web.Needs(rbac.Read), 0, a.detail),
		route(http.MethodPost, "/dead-jobs/:id/replay", "replay", web.Needs(rbac.Read), smallBody, a.replay),
		route(http.MethodGet, "/replays/:id", "replay.show", web.Needs(rbac.Read), 0, a.showReplay),
		route(http.MethodPost, "/replays/:id/outcome", "replay.outcome", web.SignedIn(), smallBody, a.outcome),
		route(http.MethodPost, "/effects/begin", "effect.begin", web.SignedIn(), smallBody, a.beginEffect),
		route(http.MethodPost, "/effects/finish", "effect.finish", web.SignedIn(), smallBody, a.finishEffect),
		route(http.MethodGet, "/openapi.json", "openapi", web.Public(), 0, a.openAPI),
	}
}

// notAWorker refuses one who may not speak for an environment's workers: that
// is for tokens that capture there and for people who run replays there.
func notAWorker(environment string) error {
	return problem.New(problem.Forbidden, "This token may not tell effects or outcomes in %q: that needs a capture token of this environment, or the right %q.", environment, string(rbac.RunBatch))
}
