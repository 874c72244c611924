package api

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/redrive-dlq/redrive/dlq/board"
	"github.com/redrive-dlq/redrive/dlq/filter"
	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/dlq/redact"
	"github.com/redrive-dlq/redrive/dlq/replay"
	"github.com/redrive-dlq/redrive/rbac"
	"github.com/redrive-dlq/redrive/web"
)

// planRequest plans the replay of what a filter matches, or of ids.
type planRequest struct {
	Q      string  `json:"q"`
	IDs    []int64 `json:"ids"` // of dead jobs
	Reason string  `json:"reason"`
}

// plannedBatch is one batch that a plan made.
type plannedBatch struct {
	ID          int64  `json:"id"`
	Environment string `json:"environment"`
	JobType     string `json:"job_type"`
}

// planBatches answers POST /batches: one batch for each environment and type
// that the selection touches.
func (a *API) planBatches(c echo.Context) error {
	req, err := body[planRequest](c)
	if err != nil {
		return err
	}
	if redact.LooksSecret(req.Q) {
		return problem.At(problem.Invalid, "/q", "This filter holds what looks like a secret or personal data, and a plan keeps its filter. Select by job id, key or entity.")
	}
	sel := replay.Selection{IDs: req.IDs}
	if sel.Filter, err = filter.Parse(req.Q); err != nil {
		return atPointer(err)
	}
	ctx, p := c.Request().Context(), web.Principal(c)
	ids, err := a.Replays.Plan(ctx, p, sel, req.Reason)
	if err != nil {
		return atPointer(err)
	}
	return a.planned(c, ids)
}

// planned answers with the batches that a plan made.
func (a *API) planned(c echo.Context, ids []int64) error {
	ctx, p := c.Request().Context(), web.Principal(c)
	made := make([]plannedBatch, 0, len(ids))
	for _, id := range ids {
		b, err := board.BatchOf(ctx, a.Pool, p, id)
		if err != nil {
			return err
		}
		made = append(made, plannedBatch{ID: b.ID, Environment: b.Environment, JobType: b.JobType})
	}
	if len(made) == 1 {
		c.Response().Header().Set(echo.HeaderLocation, batchURL(made[0].ID))
	}
	return c.JSON(http.StatusAccepted, map[string]any{"batches": made})
}

func batchURL(id int64) string { return "/api/v1/batches/" + strconv.FormatInt(id, 10) }

// batchPage is one page of batches, newest first.
type batchPage struct {
	Items []batchView `json:"items"`
	Next  string      `json:"next"` // empty on the last page
}

// batchStates are those that the list can be narrowed to.
var batchStates = map[string]bool{"planning": true, "planned": true, "waiting": true, "scheduled": true, "running": true,
	"paused": true, "cancelling": true, "done": true, "cancelled": true}

// listBatches answers GET /batches?environment=E&state=S&cursor=C.
func (a *API) listBatches(c echo.Context) error {
	q := board.BatchQuery{Environment: c.QueryParam("environment"), Cursor: c.QueryParam("cursor")}
	if known := a.Replays.Types().Environments; q.Environment != "" && !slices.Contains(known, q.Environment) {
		return problem.At(problem.Invalid, "environment", "There is no environment of this name.")
	}
	if s := c.QueryParam("state"); s != "" {
		if !batchStates[s] {
			return problem.At(problem.Invalid, "state", "A batch is planning, planned, waiting, scheduled, running, paused, cancelling, done or cancelled.")
		}
		q.States = []string{s}
	}
	found, err := board.BatchesIn(c.Request().Context(), a.Pool, web.Principal(c), q)
	if err != nil {
		return err
	}
	out := batchPage{Items: make([]batchView, 0, len(found.Rows)), Next: found.Next}
	for _, b := range found.Rows {
		out.Items = append(out.Items, viewBatch(b))
	}
	return c.JSON(http.StatusOK, out)
}

// showBatch answers GET /batches/:id.
func (a *API) showBatch(c echo.Context) error {
	b, err := a.batch(c)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, viewBatch(b))
}

func (a *API) batch(c echo.Context) (board.Batch, error) {
	id, err := pathID(c, "batch")
	if err != nil {
		return board.Batch{}, err
	}
	return board.BatchOf(c.Request().Context(), a.Pool, web.Principal(c), id)
}

// reviewRequest is the first confirmation of a batch.
type reviewRequest struct {
	PlanHash      string `json:"plan_hash"`
	Reason        string `json:"reason"`
	StartAfter    *int   `json:"start_after_seconds"` // null: five minutes
	StartAt       string `json:"start_at"`            // RFC 3339; empty: start_after_seconds counts
	RatePerMinute int    `json:"rate_per_minute"`     // 0: the type's limit
	Canary        *int   `json:"canary"`              // null: the type's; 0: none
	AcceptRepeat  bool   `json:"accept_repeat"`
}

// maxSeconds is longer than any batch may wait for its start.
const maxSeconds = 366 * 24 * 3600

// reviewBatch answers POST /batches/:id/review.
func (a *API) reviewBatch(c echo.Context) error {
	b, err := a.batch(c)
	if err != nil {
		return err
	}
	req, err := body[reviewRequest](c)
	if err != nil {
		return err
	}
	o := replay.ReviewOrder{Batch: b.ID, PlanHash: req.PlanHash, Reason: req.Reason, StartAfter: replay.DefaultStartAfter,
		RatePerMinute: req.RatePerMinute, AcceptRepeat: req.AcceptRepeat}
	if t, ok := a.Replays.Types().Type(b.JobType); ok {
		o.Canary = replay.ReviewDefaults(t, b.Eligible).Canary
	}
	if req.Canary != nil {
		o.Canary = *req.Canary
	}
	if req.StartAfter != nil {
		if *req.StartAfter < 0 || *req.StartAfter > maxSeconds {
			return problem.At(problem.Invalid, "/start_after_seconds", "A batch starts at most 30 days after its confirmation.")
		}
		o.StartAfter = time.Duration(*req.StartAfter) * time.Second
	}
	if req.StartAt != "" {
		// Year 1 is how clients write "no time": it is neither soon nor later.
		if o.StartAt, err = time.Parse(time.RFC3339, req.StartAt); err != nil || o.StartAt.IsZero() {
			return problem.At(problem.Invalid, "/start_at", "/start_at must be a time with its zone, such as 2026-05-04T03:02:01Z (RFC 3339).")
		}
	}
	if _, err := a.Replays.Review(c.Request().Context(), web.Principal(c), o); err != nil {
		return atPointer(err)
	}
	return a.showBatch(c)
}

// confirmRequest is the second confirmation, or the approval.
type confirmRequest struct {
	PlanHash   string `json:"plan_hash"`
	ReviewHash string `json:"review_hash"`
	Phrase     string `json:"phrase"`
}

func (a *API) confirmBatch(c echo.Context) error { return a.agree(c, a.Replays.Confirm) }
func (a *API) approveBatch(c echo.Context) error { return a.agree(c, a.Replays.Approve) }

// reasonRequest is the body of acts that take a reason alone.
type reasonRequest struct {
	Reason string `json:"reason"`
}

// may is the right without which nobody gets as far as the domain's own checks.
func may(p rbac.Permission) web.Policy { return web.Needs(p) }
