package api

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/labstack/echo/v4"

	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/rbac"
	"github.com/redrive-dlq/redrive/web"
)

// jobDetail has the fields of the ingest document, redacted, and what Redrive
// knows besides.
type jobDetail struct {
	ID              int64           `json:"id"`
	Environment     string          `json:"environment"`
	Source          string          `json:"source"`
	JobID           string          `json:"job_id"`
	JobType         string          `json:"job_type"`
	IdempotencyKey  string          `json:"idempotency_key"`
	Queue           string          `json:"queue,omitempty"`
	Tenant          string          `json:"tenant,omitempty"`
	Entity          string          `json:"entity,omitempty"`
	Event           string          `json:"event,omitempty"`
	Destination     string          `json:"destination,omitempty"`
	Status          string          `json:"status"`
	Effect          string          `json:"effect"`
	EffectID        string          `json:"effect_id,omitempty"`
	Category        string          `json:"category"`
	GaveUp          string          `json:"gave_up,omitempty"`
	ReasonCode      string          `json:"reason_code,omitempty"`
	ReasonText      string          `json:"reason_text,omitempty"`
	Fingerprint     string          `json:"fingerprint"`
	Generation      int             `json:"generation"`
	AttemptCount    int             `json:"attempt_count"`
	MaxAttempts     int             `json:"max_attempts,omitempty"`
	SchemaVersion   int             `json:"payload_version"`  // the worker's, as at the ingest door
	Revision        int             `json:"payload_revision"` // ours: an edit adds one
	PayloadSize     int64           `json:"payload_size"`
	PayloadKind     string          `json:"payload_kind"`
	EnqueuedAt      *time.Time      `json:"enqueued_at"`
	DeadAt          time.Time       `json:"dead_at"`
	CapturedAt      time.Time       `json:"captured_at"`
	PayloadRedacted []byte          `json:"-"`
	PayloadSum      []byte          `json:"-"`
	HeadersText     string          `json:"-"`
	ExtraText       string          `json:"-"`
	Payload         json.RawMessage `json:"payload" db:"-"`
	PayloadEncoding string          `json:"payload_encoding,omitempty" db:"-"`
	PayloadSHA256   string          `json:"payload_sha256,omitempty" db:"-"`
	Headers         json.RawMessage `json:"headers" db:"-"`
	Extra           json.RawMessage `json:"extra,omitempty" db:"-"`
	Attempts        []attemptView   `json:"attempts" db:"-"`
	Replays         []replayView    `json:"replays" db:"-"`
}

// attemptView is one try, redacted.
type attemptView struct {
	Generation    int             `json:"generation"`
	At            *time.Time      `json:"at"`
	AtRaw         string          `json:"at_raw,omitempty"`
	AtNote        string          `json:"at_note,omitempty"`
	ErrorClass    string          `json:"error_class"`
	Message       string          `json:"message"`
	Stack         string          `json:"stack"`
	Causes        json.RawMessage `json:"causes"` // outermost first
	Worker        string          `json:"worker,omitempty"`
	WorkerVersion string          `json:"worker_version,omitempty"`
	DurationMS    *int64          `json:"duration_ms,omitempty"`
	SideEffect    string          `json:"side_effect,omitempty"`
	Replay        *int64          `json:"replay,omitempty"`
}

// detail answers GET /dead-jobs/{id}.
func (a *API) detail(c echo.Context) error {
	id, err := pathID(c, "job")
	if err != nil {
		return err
	}
	var d jobDetail
	ctx := c.Request().Context()
	err = pgx.BeginTxFunc(ctx, a.Pool, pgx.TxOptions{AccessMode: pgx.ReadOnly, IsoLevel: pgx.RepeatableRead}, func(tx pgx.Tx) error {
		d, err = readDetail(ctx, tx, id)
		return err
	})
	if err != nil {
		return err
	}
	p := web.Principal(c)
	if !p.Can(rbac.Read, d.Environment, d.JobType) {
		return problem.New(problem.NotFound, "There is no job with this id.")
	}
	d.show(p.Can(rbac.Reveal, d.Environment, d.JobType))
	return c.JSON(http.StatusOK, d)
}

func readDetail(ctx context.Context, tx pgx.Tx, id int64) (d jobDetail, err error) {
	rows, err := tx.Query(ctx, `
		SELECT d.id, d.environment, d.source, d.job_id, d.job_type, d.idempotency_key, d.queue, d.tenant, d.entity, d.event,
		       d.destination, d.status, d.effect, d.effect_id, d.category, d.gave_up, d.reason_code, d.reason_text, d.fingerprint,
		       d.generation, d.attempt_count, d.max_attempts, d.schema_version, d.payload_version AS revision, d.payload_size,
		       d.payload_kind, d.enqueued_at, d.died_at AS dead_at, d.captured_at,
		       coalesce(p.redacted, '') AS payload_redacted, coalesce(p.sha256, '') AS payload_sum,
		       coalesce(o.headers, '[]') AS headers_text, coalesce(o.extra, '{}') AS extra_text
		FROM redrive.dead_jobs d
		LEFT JOIN redrive.payloads p ON p.dead_job_id = d.id AND p.version = d.payload_version
		LEFT JOIN redrive.documents o ON o.dead_job_id = d.id AND o.generation = d.generation
		WHERE d.id = $1`, id)
	if err != nil {
		return d, err
	}
	d, err = pgx.CollectExactlyOneRow(rows, pgx.RowToStructByNameLax[jobDetail])
	if errors.Is(err, pgx.ErrNoRows) {
		return d, problem.New(problem.NotFound, "There is no job with this id.")
	}
	if err != nil {
		return d, err
	}
	if rows, err = tx.Query(ctx, `
		SELECT generation, at, at_raw, at_note, error_class, message, stack, causes::text, worker, worker_version, duration_ms, side_effect, replay_id
		FROM redrive.attempts
		WHERE dead_job_id = $1
		ORDER BY generation, seq`, id); err != nil {
		return d, err
	}
	if d.Attempts, err = pgx.CollectRows(rows, scanAttempt); err != nil {
		return d, err
	}
	if rows, err = tx.Query(ctx, `
		SELECT `+replayColumns+`
		FROM redrive.replays
		WHERE dead_job_id = $1
		ORDER BY id`, id); err != nil {
		return d, err
	}
	d.Replays, err = pgx.CollectRows(rows, pgx.RowToStructByPos[replayView])
	return d, err
}

func scanAttempt(r pgx.CollectableRow) (a attemptView, err error) {
	var causes string
	err = r.Scan(&a.Generation, &a.At, &a.AtRaw, &a.AtNote, &a.ErrorClass, &a.Message, &a.Stack, &causes, &a.Worker, &a.WorkerVersion,
		&a.DurationMS, &a.SideEffect, &a.Replay)
	a.Causes = json.RawMessage(causes)
	return a, err
}

// show turns the stored copies into JSON: a JSON payload stands as it is, with
// every digit; text stands as a string, other bytes as hex.
func (d *jobDetail) show(mayReveal bool) {
	switch {
	case d.PayloadKind == "json" && json.Valid(d.PayloadRedacted):
		d.Payload, d.PayloadEncoding = d.PayloadRedacted, "json"
	case d.PayloadKind == "binary":
		d.Payload, d.PayloadEncoding = quote(hex.EncodeToString(d.PayloadRedacted)), "hex"
	case d.PayloadKind == "printout":
		d.Payload, d.PayloadEncoding = json.RawMessage("null"), "none"
	default:
		d.Payload, d.PayloadEncoding = quote(string(d.PayloadRedacted)), "text"
	}
	d.Headers, d.Extra = json.RawMessage(d.HeadersText), json.RawMessage(d.ExtraText)
	if mayReveal && len(d.PayloadSum) > 0 {
		d.PayloadSHA256 = hex.EncodeToString(d.PayloadSum)
	}
}

// quote makes a JSON string; a string always can be one.
func quote(s string) json.RawMessage {
	b, _ := json.Marshal(s)
	return b
}
