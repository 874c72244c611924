// Package api is the JSON face of the console for machines: bearer tokens,
// problem details for errors, one handler file per resource.
package api

import (
	"log/slog"
	"net/http"
	"time"

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
	People   *rbac.Service
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

// planBody bounds a plan: it may name 10,000 jobs.
const planBody = 256 << 10

// reportTimeout is how long an export of a batch may stream.
const reportTimeout = 10 * time.Minute

// Routes is the API's part of the route table.
func (a *API) Routes() []web.Route {
	route := func(method, path, name string, p web.Policy, limit int64, h echo.HandlerFunc) web.Route {
		return web.Route{Method: method, Path: "/api/v1" + path, Name: "api." + name, Audience: web.API, Policy: p, BodyLimit: limit, Handle: h}
	}
	capture := route(http.MethodPost, "/dead-jobs", "capture", web.Needs(rbac.Capture), maxStream, a.capture)
	capture.Timeout = captureTimeout
	report := route(http.MethodGet, "/batches/:id/report", "batch.report", may(rbac.Read), 0, a.reportBatch)
	report.Timeout = reportTimeout
	return []web.Route{
		capture,
		route(http.MethodGet, "/dead-jobs", "jobs", web.Needs(rbac.Read), 0, a.list),
		route(http.MethodGet, "/dead-jobs/:id", "job", web.Needs(rbac.Read), 0, a.detail),
		route(http.MethodPost, "/dead-jobs/:id/replay", "replay", web.Needs(rbac.Read).AsOrder(), smallBody, a.replay),
		route(http.MethodGet, "/replays/:id", "replay.show", web.Needs(rbac.Read), 0, a.showReplay),
		route(http.MethodPost, "/replays/:id/outcome", "replay.outcome", web.SignedIn(), smallBody, a.outcome),
		route(http.MethodPost, "/effects/begin", "effect.begin", web.SignedIn(), smallBody, a.beginEffect),
		route(http.MethodPost, "/effects/finish", "effect.finish", web.SignedIn(), smallBody, a.finishEffect),
		route(http.MethodPost, "/batches", "batch.plan", may(rbac.PlanBatch).AsOrder(), planBody, a.planBatches),
		route(http.MethodGet, "/batches", "batches", may(rbac.Read), 0, a.listBatches),
		route(http.MethodGet, "/batches/:id", "batch", may(rbac.Read), 0, a.showBatch),
		route(http.MethodGet, "/batches/:id/items", "batch.items", may(rbac.Read), 0, a.listItems),
		report,
		route(http.MethodPost, "/batches/:id/fixes", "batch.fix", may(rbac.DeclareFix).AsOrder(), smallBody, a.fixBatch),
		route(http.MethodPost, "/batches/:id/rejudge", "batch.rejudge", may(rbac.PlanBatch).AsOrder(), smallBody, a.rejudgeBatch),
		route(http.MethodPost, "/batches/:id/allow-old", "batch.allow_old", may(rbac.RunBatch).AsOrder(), smallBody, a.withReason(a.Replays.AllowOld)),
		route(http.MethodPost, "/batches/:id/review", "batch.review", may(rbac.RunBatch), smallBody, a.reviewBatch),
		route(http.MethodPost, "/batches/:id/confirm", "batch.confirm", may(rbac.RunBatch).WithStepUp().AsOrder(), smallBody, a.confirmBatch),
		route(http.MethodPost, "/batches/:id/approve", "batch.approve", may(rbac.ApproveBatch).WithStepUp().AsOrder(), smallBody, a.approveBatch),
		route(http.MethodPost, "/batches/:id/pause", "batch.pause", may(rbac.RunBatch), smallBody, a.withReason(a.Replays.Pause)),
		route(http.MethodPost, "/batches/:id/resume", "batch.resume", may(rbac.RunBatch), smallBody, a.resumeBatch),
		route(http.MethodPost, "/batches/:id/rate", "batch.rate", may(rbac.RunBatch), smallBody, a.slowBatch),
		route(http.MethodPost, "/batches/:id/cancel", "batch.cancel", may(rbac.Read), smallBody, a.cancelBatch),
		route(http.MethodPost, "/batches/:id/plan-failed", "batch.plan_failed", may(rbac.PlanBatch).AsOrder(), smallBody, a.planFailed),
		route(http.MethodGet, "/holds", "holds", may(rbac.Read), 0, a.listHolds),
		route(http.MethodPost, "/holds", "hold.place", may(rbac.HoldReplays), smallBody, a.placeHold),
		route(http.MethodPost, "/holds/:id/reason", "hold.reason", may(rbac.HoldReplays), smallBody, a.explainHold),
		route(http.MethodPost, "/holds/:id/lift", "hold.lift", may(rbac.HoldReplays), smallBody, a.liftHold),
		route(http.MethodGet, "/openapi.json", "openapi", web.Public(), 0, a.openAPI),
	}
}

// notAWorker refuses one who may not speak for an environment's workers: that
// is for tokens that capture there and for people who run replays there.
func notAWorker(environment string) error {
	return problem.New(problem.Forbidden, "This token may not tell effects or outcomes in %q: that needs a capture token of this environment, or the right %q.", environment, string(rbac.RunBatch))
}
