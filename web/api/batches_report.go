package api

import (
	"cmp"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/redrive-dlq/redrive/dlq/board"
	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/dlq/redact"
	"github.com/redrive-dlq/redrive/dlq/replay"
	"github.com/redrive-dlq/redrive/web"
)

// itemView is one replay of a batch as the API tells it.
type itemView struct {
	Replay          int64      `json:"replay"`
	DeadJob         int64      `json:"dead_job"`
	JobID           string     `json:"job_id"`
	Generation      int        `json:"generation"`
	PayloadRevision int        `json:"payload_revision"`
	Verdict         string     `json:"verdict"`
	VerdictDetail   string     `json:"verdict_detail,omitempty"`
	State           string     `json:"state"`
	Outcome         *string    `json:"outcome"` // null until it ended
	Code            string     `json:"code,omitempty"`
	Detail          string     `json:"detail,omitempty"`
	EffectID        string     `json:"effect_id,omitempty"`
	NextGeneration  int        `json:"next_generation,omitempty"` // which its failure made
	ReleasedAt      *time.Time `json:"released_at"`
	OutcomeAt       *time.Time `json:"outcome_at"`
}

type itemPage struct {
	Items []itemView `json:"items"`
	Next  string     `json:"next"` // empty on the last page
}

// listItems answers GET /batches/:id/items?verdict=V&outcome=O&limit=N&cursor=C;
// state=S instead of an outcome tells where those stand that didn't end yet.
func (a *API) listItems(c echo.Context) error {
	b, err := a.batch(c)
	if err != nil {
		return err
	}
	q := board.ItemQuery{Verdict: c.QueryParam("verdict"), State: cmp.Or(c.QueryParam("outcome"), c.QueryParam("state")), Cursor: c.QueryParam("cursor")}
	if _, known := replay.VerdictOf(q.Verdict); q.Verdict != "" && !known {
		return problem.At(problem.Invalid, "verdict", "There is no verdict of this name.")
	}
	if text := c.QueryParam("limit"); text != "" {
		if q.Limit, err = strconv.Atoi(text); err != nil || q.Limit < 1 {
			return problem.At(problem.Invalid, "limit", "The limit must be a number between 1 and %d.", board.MaxItems)
		}
	}
	found, err := board.Items(c.Request().Context(), a.Pool, b.ID, q)
	if err != nil {
		return err
	}
	out := itemPage{Items: make([]itemView, 0, len(found.Rows)), Next: found.Next}
	for _, r := range found.Rows {
		v := itemView{Replay: r.ID, DeadJob: r.DeadJobID, JobID: r.JobID, Generation: r.Generation, PayloadRevision: r.PayloadVersion,
			Verdict: r.Verdict, VerdictDetail: redact.Readable(r.VerdictDetail), State: r.State, Code: r.OutcomeCode,
			Detail: redact.Readable(r.OutcomeDetail), EffectID: redact.Readable(r.EffectID), NextGeneration: r.NextGeneration,
			ReleasedAt: utc(r.ReleasedAt), OutcomeAt: utc(r.OutcomeAt)}
		if r.Outcome != "" {
			v.Outcome = &r.Outcome
		}
		out.Items = append(out.Items, v)
	}
	return c.JSON(http.StatusOK, out)
}

// reportView is how a batch went. Totals add up to planned.
type reportView struct {
	batchView
	Totals   map[string]int  `json:"totals"`
	Failures []reportFailure `json:"failures"`
	Reasons  []reportReason  `json:"reasons"`
	Partial  bool            `json:"partial"` // failures and reasons are of the first 10,000 each
}

type reportFailure struct {
	Fingerprint string `json:"fingerprint"` // empty: its source hasn't told of it yet
	Same        bool   `json:"same"`        // as the jobs had failed before
	ErrorClass  string `json:"error_class"`
	Message     string `json:"message"` // its varying parts folded
	Count       int    `json:"count"`
	SampleJob   int64  `json:"sample_dead_job"`
}

type reportReason struct {
	Outcome string `json:"outcome"`
	Code    string `json:"code"`
	Detail  string `json:"detail"` // of one of them
	Count   int    `json:"count"`
}

// reportBatch answers GET /batches/:id/report: JSON, or every replay as CSV for
// one who accepts that.
func (a *API) reportBatch(c echo.Context) error {
	b, err := a.batch(c)
	if err != nil {
		return err
	}
	if strings.Contains(c.Request().Header.Get(echo.HeaderAccept), "text/csv") {
		return a.exportBatch(c, b)
	}
	ctx := c.Request().Context()
	out := reportView{batchView: viewBatch(b), Totals: b.Tallies, Failures: []reportFailure{}, Reasons: []reportReason{}}
	failures, more, err := board.Failures(ctx, a.Pool, b.ID)
	if err != nil {
		return err
	}
	out.Partial = more
	for _, f := range failures {
		out.Failures = append(out.Failures, reportFailure{f.Fingerprint, f.Same, f.ErrorClass, redact.Readable(f.Template), f.N, f.SampleJob})
	}
	reasons, more, err := board.Reasons(ctx, a.Pool, b.ID)
	if err != nil {
		return err
	}
	out.Partial = out.Partial || more
	for _, r := range reasons {
		out.Reasons = append(out.Reasons, reportReason{r.Outcome, r.Code, redact.Readable(r.Detail), r.N})
	}
	return c.JSON(http.StatusOK, out)
}

// exportBatch streams every replay as CSV; who took it is written down first.
func (a *API) exportBatch(c echo.Context, b board.Batch) error {
	if b.State == "planning" {
		return problem.New(problem.Conflict, "Batch %d is still being planned. Export it when its plan is complete.", b.ID)
	}
	if err := web.CountExport(c); err != nil {
		return err
	}
	ctx := c.Request().Context()
	if err := a.Replays.Exported(ctx, web.Principal(c), b.ID, "csv"); err != nil {
		return err
	}
	h := c.Response().Header()
	h.Set(echo.HeaderContentType, "text/csv; charset=utf-8")
	h.Set(echo.HeaderContentDisposition, `attachment; filename="batch-`+strconv.FormatInt(b.ID, 10)+`.csv"`)
	c.Response().WriteHeader(http.StatusOK)
	if err := board.ExportCSV(ctx, a.Pool, b.ID, c.Response()); err != nil {
		a.Log.Warn("export cut off", "request_id", web.RequestID(c), "batch", b.ID, "error", redact.Text(err.Error()))
		panic(http.ErrAbortHandler) // a cut connection: half an export must not look whole
	}
	return nil
}
