package dlq

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// column makes an array parameter of one value per row.
func column[R, T any](rows []R, of func(R) T) []T {
	out := make([]T, len(rows))
	for i, r := range rows {
		out[i] = of(r)
	}
	return out
}

// jobArgs are the columns that a death sets in dead_jobs.
func jobArgs(rows []*death, now time.Time) pgx.NamedArgs {
	text := func(of func(*death) string) []string { return column(rows, of) }
	return pgx.NamedArgs{
		"now":             now,
		"environment":     text(func(d *death) string { return d.doc.Environment }),
		"source":          text(func(d *death) string { return d.doc.Source }),
		"job_id":          text(func(d *death) string { return d.doc.JobID }),
		"job_type":        text(func(d *death) string { return d.doc.JobType }),
		"queue":           text(func(d *death) string { return d.doc.Queue }),
		"tenant":          text(func(d *death) string { return d.doc.Tenant }),
		"entity":          text(func(d *death) string { return d.doc.Entity }),
		"event":           text(func(d *death) string { return d.doc.Event }),
		"destination":     text(func(d *death) string { return d.destination }),
		"key_scope":       text(func(d *death) string { return d.scope }),
		"idempotency_key": text(func(d *death) string { return d.doc.IdempotencyKey }),
		"effect":          text(func(d *death) string { return d.effect }),
		"effect_id":       text(func(d *death) string { return d.doc.EffectID }),
		"maybe":           column(rows, func(d *death) bool { return d.maybeEffect }),
		"category":        text(func(d *death) string { return d.failure.category }),
		"category_by":     text(func(d *death) string { return d.failure.categoryBy }),
		"reason_code":     text(func(d *death) string { return d.reasonCode }),
		"reason_text":     text(func(d *death) string { return d.reasonText }),
		"gave_up":         text(func(d *death) string { return d.doc.GaveUp }),
		"error_class":     text(func(d *death) string { return d.failure.class }),
		"error_message":   text(func(d *death) string { return d.failure.message }),
		"status_code":     column(rows, func(d *death) int32 { return int32(d.failure.status) }),
		"fingerprint":     text(func(d *death) string { return d.failure.fingerprint }),
		"attempt_count":   column(rows, func(d *death) int32 { return int32(d.attempt) }),
		"max_attempts":    column(rows, func(d *death) int32 { return int32(d.doc.MaxAttempts) }),
		"worker_version":  text(func(d *death) string { return d.workerVersion }),
		"schema_version":  column(rows, func(d *death) int32 { return int32(max(d.doc.PayloadVersion, 1)) }),
		"payload_version": column(rows, func(d *death) int32 { return int32(d.payloadVersion) }),
		"payload_size":    column(rows, func(d *death) int64 { return int64(len(d.doc.Payload)) }),
		"payload_kind":    text(func(d *death) string { return d.kind }),
		"enqueued_at":     column(rows, func(d *death) *time.Time { return d.times.enqueued }),
		"first_failed_at": column(rows, func(d *death) *time.Time { return d.times.firstFailed }),
		"died_at":         column(rows, func(d *death) time.Time { return d.times.died }),
		"died_at_note":    text(func(d *death) string { return d.times.note }),
		"last_death_at":   column(rows, func(d *death) *time.Time { return d.times.told }),
		"source_ref":      text(func(d *death) string { return d.sourceRef }),
	}
}

// jobsTable reads jobArgs as a table u with, beside it, the ledger's row of
// each job's key. An empty key matches no row.
const jobsTable = `
	FROM unnest(
		@environment::text[], @source::text[], @job_id::text[], @job_type::text[], @queue::text[], @tenant::text[],
		@entity::text[], @event::text[], @destination::text[], @key_scope::text[], @idempotency_key::text[],
		@effect::text[], @effect_id::text[], @maybe::boolean[], @category::text[], @category_by::text[],
		@reason_code::text[], @reason_text::text[], @gave_up::text[], @error_class::text[], @error_message::text[],
		@status_code::integer[], @fingerprint::text[], @attempt_count::integer[], @max_attempts::integer[],
		@worker_version::text[], @schema_version::integer[], @payload_version::integer[], @payload_size::bigint[],
		@payload_kind::text[], @enqueued_at::timestamptz[], @first_failed_at::timestamptz[], @died_at::timestamptz[],
		@died_at_note::text[], @last_death_at::timestamptz[], @source_ref::text[])
	WITH ORDINALITY AS u(
		environment, source, job_id, job_type, queue, tenant,
		entity, event, destination, key_scope, idempotency_key,
		effect, effect_id, maybe, category, category_by,
		reason_code, reason_text, gave_up, error_class, error_message,
		status_code, fingerprint, attempt_count, max_attempts,
		worker_version, schema_version, payload_version, payload_size,
		payload_kind, enqueued_at, first_failed_at, died_at,
		died_at_note, last_death_at, source_ref, position)
	LEFT JOIN redrive.ledger l
		ON u.idempotency_key <> ''
		AND l.environment = u.environment
		AND l.scope = u.key_scope
		AND l.key = u.idempotency_key`

// The effect at capture: done when the ledger says so; else the worker's word,
// else the ledger's, else unknown where the failure left its end open.
const (
	effectOf = `CASE WHEN l.state = 'done' THEN 'done'
		WHEN u.effect <> '' THEN u.effect
		WHEN l.state = 'begun' THEN 'unknown'
		WHEN l.state = 'failed' THEN 'none'
		WHEN u.maybe THEN 'unknown'
		ELSE 'none' END`
	effectIDOf = `CASE WHEN u.effect = 'done' AND u.effect_id <> '' THEN u.effect_id
		WHEN l.state = 'done' THEN l.effect_id
		ELSE u.effect_id END`
	// effectKept: an effect that may have happened before is still unknown after
	// a death that is clear by itself, unless the worker says otherwise, or the
	// ledger does: with a row that isn't older than a replay whose end is unknown.
	effectKept = `CASE WHEN u.effect = 'none' AND d.effect = 'unknown' AND NOT u.effect_told
			AND d.key_scope = u.key_scope AND d.idempotency_key = u.idempotency_key
			AND (u.ledger_state IS DISTINCT FROM 'failed' OR EXISTS (
				SELECT FROM redrive.replays r
				WHERE r.dead_job_id = d.id AND r.released_at IS NOT NULL AND r.ledger_begins >= u.ledger_begins))
		THEN 'unknown' ELSE u.effect END`
)

// insertJobs inserts the jobs that aren't known yet, in the order of their
// identity, so that callers who bring the same jobs never lock them crosswise.
// Those that were known keep id 0.
func insertJobs(ctx context.Context, tx pgx.Tx, rows []*death, now time.Time) error {
	for _, d := range rows {
		d.payloadVersion = 1
	}
	result, err := tx.Query(ctx, `
		INSERT INTO redrive.dead_jobs (
			environment, source, job_id, job_type, queue, tenant, entity, event, destination, key_scope, idempotency_key,
			effect, effect_id, category, category_by, reason_code, reason_text, gave_up, error_class, error_message,
			status_code, fingerprint, attempt_count, max_attempts, worker_version, schema_version, payload_version,
			payload_size, payload_kind, enqueued_at, first_failed_at, died_at, died_at_note,
			last_death_attempt, last_death_at, captured_at, updated_at, source_ref)
		SELECT
			u.environment, u.source, u.job_id, u.job_type, u.queue, u.tenant, u.entity, u.event, u.destination, u.key_scope, u.idempotency_key,
			`+effectOf+`, `+effectIDOf+`, u.category, u.category_by, u.reason_code, u.reason_text, u.gave_up, u.error_class, u.error_message,
			u.status_code, u.fingerprint, u.attempt_count, u.max_attempts, u.worker_version, u.schema_version, u.payload_version,
			u.payload_size, u.payload_kind, u.enqueued_at, u.first_failed_at, u.died_at, u.died_at_note,
			u.attempt_count, u.last_death_at, @now, @now, u.source_ref::jsonb
		`+jobsTable+`
		ORDER BY u.position
		ON CONFLICT (environment, source, job_id) DO NOTHING
		RETURNING id, environment, source, job_id`, jobArgs(rows, now))
	if err != nil {
		return err
	}
	fresh := make(map[[3]string]int64, len(rows))
	var id int64
	var environment, source, jobID string
	_, err = pgx.ForEachRow(result, []any{&id, &environment, &source, &jobID}, func() error {
		fresh[[3]string{environment, source, jobID}] = id
		return nil
	})
	if err != nil {
		return err
	}
	for _, d := range rows {
		d.id = fresh[[3]string{d.doc.Environment, d.doc.Source, d.doc.JobID}]
		if d.id != 0 {
			d.outcome, d.generation, d.deathGen, d.newPayload = CaptureCreated, 1, 1, true
		}
	}
	return nil
}
