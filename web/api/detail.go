package api

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/labstack/echo/v4"

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
	ReasonCode      string          `json:"-"`
	ReasonText      string          `json:"-"`
	Reason          *reason         `json:"reason,omitempty" db:"-"`
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
	DeadAtNote      string          `json:"dead_at_note,omitempty"` // why it isn't the worker's word
	CapturedAt      time.Time       `json:"captured_at"`
	PayloadRedacted []byte          `json:"-"`
	PayloadSum      []byte          `json:"-"`
	HeadersText     string          `json:"-"`
	ExtraText       string          `json:"-"`
	Payload         json.RawMessage `json:"payload" db:"-"`
	PayloadEncoding string          `json:"payload_encoding" db:"-"`   // json, text, base64 or none
	Printout        string          `json:"printout,omitempty" db:"-"` // all that is known of a payload that can't be sent
	PayloadSHA256   string          `json:"payload_sha256,omitempty" db:"-"`
	Headers         json.RawMessage `json:"headers" db:"-"`
	Extra           json.RawMessage `json:"extra,omitempty" db:"-"`
	Attempts        []attemptView   `json:"attempts" db:"-"`
	Replays         []replayView    `json:"replays" db:"-"`
}

// reason is why the worker gave up, redacted.
type reason struct {
	Code string `json:"code,omitempty"`
	Text string `json:"text,omitempty"`
}

// causeView is one link of a cause chain, as the ingest document has it.
type causeView struct {
	ErrorClass string     `json:"error_class"`
	Message    string     `json:"message"`
	Cause      *causeView `json:"cause,omitempty"`
}

// attemptView is one try, redacted.
type attemptView struct {
	Generation    int        `json:"generation"`
	At            *time.Time `json:"at"`
	AtRaw         string     `json:"at_raw,omitempty"`
	AtNote        string     `json:"at_note,omitempty"`
	ErrorClass    string     `json:"error_class"`
	Message       string     `json:"message"`
	Stack         string     `json:"stack"`
	Cause         *causeView `json:"cause,omitempty"`
	Worker        string     `json:"worker,omitempty"`
	WorkerVersion string     `json:"worker_version,omitempty"`
	DurationMS    *int64     `json:"duration_ms,omitempty"`
	SideEffect    string     `json:"side_effect,omitempty"`
	Replay        *int64     `json:"replay,omitempty"` // the replay that made this attempt
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
		return notFound("job")
	}
	d.show(p.Can(rbac.Reveal, d.Environment, d.JobType))
	return c.JSON(http.StatusOK, d)
}

func readDetail(ctx context.Context, tx pgx.Tx, id int64) (d jobDetail, err error) {
	rows, err := tx.Query(ctx, `
		SELECT d.id, d.environment, d.source, d.job_id, d.job_type, d.idempotency_key, d.queue, d.tenant, d.entity, d.event,
		       d.destination, d.status, d.effect, d.effect_id, d.category, d.gave_up, d.reason_code, d.reason_text, d.fingerprint,
		       d.generation, d.attempt_count, d.max_attempts, d.schema_version, d.payload_version AS revision, d.payload_size,
		       d.payload_kind, d.enqueued_at, d.died_at AS dead_at, d.died_at_note AS dead_at_note, d.captured_at,
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
		return d, notFound("job")
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
	d.Replays, err = pgx.CollectRows(rows, scanReplay)
	return d, err
}

func scanAttempt(r pgx.CollectableRow) (a attemptView, err error) {
	var causes string
	err = r.Scan(&a.Generation, &a.At, &a.AtRaw, &a.AtNote, &a.ErrorClass, &a.Message, &a.Stack, &causes, &a.Worker, &a.WorkerVersion,
		&a.DurationMS, &a.SideEffect, &a.Replay)
	if err != nil {
		return a, err
	}
	a.At = utc(a.At)
	var chain []causeView // stored outermost first
	if err := json.Unmarshal([]byte(causes), &chain); err != nil {
		return a, fmt.Errorf("api: causes: %w", err)
	}
	for i := len(chain) - 1; i >= 0; i-- {
		chain[i].Cause = a.Cause
		a.Cause = &chain[i]
	}
	return a, nil
}

// show turns the stored copies into JSON. A JSON payload stands as it is, with
// every digit; text stands as a string; other bytes, and no bytes, as base64:
// an empty string of JSON would be two bytes.
func (d *jobDetail) show(mayReveal bool) {
	switch {
	case d.PayloadKind == "json" && json.Valid(d.PayloadRedacted):
		d.Payload, d.PayloadEncoding = d.PayloadRedacted, "json"
	case d.PayloadKind == "printout":
		d.Payload, d.PayloadEncoding, d.Printout = json.RawMessage("null"), "none", string(d.PayloadRedacted)
	case d.PayloadKind == "binary" || d.PayloadKind == "empty":
		d.Payload, d.PayloadEncoding = quote(base64.StdEncoding.EncodeToString(d.PayloadRedacted)), "base64"
	default:
		d.Payload, d.PayloadEncoding = quote(string(d.PayloadRedacted)), "text"
	}
	d.Headers, d.Extra = asJSON(d.HeadersText), asJSON(d.ExtraText)
	if d.ReasonCode != "" || d.ReasonText != "" {
		d.Reason = &reason{d.ReasonCode, d.ReasonText}
	}
	if mayReveal && len(d.PayloadSum) > 0 {
		d.PayloadSHA256 = hex.EncodeToString(d.PayloadSum)
	}
	d.EnqueuedAt, d.DeadAt, d.CapturedAt = utc(d.EnqueuedAt), d.DeadAt.UTC(), d.CapturedAt.UTC()
}

// asJSON is stored JSON, or a string of what redaction left of it.
func asJSON(text string) json.RawMessage {
	if !json.Valid([]byte(text)) {
		return quote(text)
	}
	return json.RawMessage(text)
}

func utc(at *time.Time) *time.Time {
	if at == nil {
		return nil
	}
	u := at.UTC()
	return &u
}

// quote makes a JSON string; a string always can be one.
func quote(s string) json.RawMessage {
	b, _ := json.Marshal(s)
	return b
}
