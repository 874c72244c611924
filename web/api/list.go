package api

import (
	"net/http"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/redrive-dlq/redrive/dlq"
	"github.com/redrive-dlq/redrive/dlq/filter"
	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/dlq/redact"
	"github.com/redrive-dlq/redrive/web"
)

// jobRow is a dead job in the API's list; all texts are redacted.
type jobRow struct {
	ID             int64     `json:"id"`
	Environment    string    `json:"environment"`
	Source         string    `json:"source"`
	JobID          string    `json:"job_id"`
	Generation     int       `json:"generation"`
	JobType        string    `json:"job_type"`
	Tenant         string    `json:"tenant,omitempty"`
	Entity         string    `json:"entity,omitempty"`
	IdempotencyKey string    `json:"idempotency_key"`
	Status         string    `json:"status"`
	Effect         string    `json:"effect"`
	Category       string    `json:"category"`
	ErrorClass     string    `json:"error_class"`
	ErrorMessage   string    `json:"error_message"`
	Fingerprint    string    `json:"fingerprint"`
	AttemptCount   int       `json:"attempt_count"`
	DeadAt         time.Time `json:"dead_at"`
	CapturedAt     time.Time `json:"captured_at"`
	PayloadSize    int64     `json:"payload_size"`
	Assignee       string    `json:"assignee,omitempty"`
}

// jobPage is one page of the list. Total stops at the cap that total_more tells.
type jobPage struct {
	Items     []jobRow `json:"items"`
	Next      string   `json:"next"` // empty on the last page
	Total     int64    `json:"total"`
	TotalMore bool     `json:"total_more,omitempty"`
}

// list answers GET /dead-jobs?q=FILTER&limit=N&cursor=C.
func (a *API) list(c echo.Context) error {
	q := dlq.ListQuery{Cursor: c.QueryParam("cursor"), Now: time.Now()}
	if text := c.QueryParam("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return problem.At(problem.Invalid, "limit", "The limit must be a number between 1 and %d.", dlq.ListMaxLimit)
		}
		q.Limit = n
	}
	text := c.QueryParam("q")
	if redact.LooksSecret(text) {
		return problem.At(problem.Invalid, "q", "This search holds what looks like a secret or personal data, which must not stand in an address. Search by job id, key or entity.")
	}
	var err error
	if q.Filter, err = filter.Parse(text); err != nil {
		return err
	}
	page, err := dlq.List(c.Request().Context(), a.Pool, web.Principal(c), q)
	if err != nil {
		return err
	}
	out := jobPage{Items: make([]jobRow, 0, len(page.Rows)), Next: page.Next, Total: page.Total.N, TotalMore: page.Total.More}
	for _, r := range page.Rows {
		out.Items = append(out.Items, jobRow{ID: r.ID, Environment: r.Environment, Source: r.Source, JobID: r.JobID, Generation: r.Generation,
			JobType: r.JobType, Tenant: r.Tenant, Entity: r.Entity, IdempotencyKey: r.IdempotencyKey, Status: r.Status, Effect: r.Effect,
			Category: r.Category, ErrorClass: r.ErrorClass, ErrorMessage: r.ErrorMessage, Fingerprint: r.Fingerprint,
			AttemptCount: r.AttemptCount, DeadAt: r.DiedAt.UTC(), CapturedAt: r.CapturedAt.UTC(), PayloadSize: r.PayloadSize, Assignee: r.Assignee})
	}
	return c.JSON(http.StatusOK, out)
}
