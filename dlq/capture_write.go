package dlq

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/dlq/redact"
)

// attemptRow is an attempt with the death it belongs to.
type attemptRow struct {
	*deathAttempt
	d   *death
	seq int
	raw []byte
}

// writeDeaths writes what the round decided, in one round trip.
func writeDeaths(ctx context.Context, tx pgx.Tx, round []*death, now time.Time) error {
	var updated, told, current, payloads []*death
	for _, d := range round {
		if d.deathGen >= 0 {
			told = append(told, d)
		}
		if d.outcome == CaptureUpdated {
			updated = append(updated, d)
		}
		if d.current() {
			current = append(current, d)
		}
		if d.newPayload {
			payloads = append(payloads, d)
		}
	}
	batch := &pgx.Batch{}
	if len(updated) > 0 {
		queueUpdates(batch, updated, now)
	}
	if len(told) > 0 {
		queueDeaths(batch, told, now)
	}
	if len(payloads) > 0 {
		queuePayloads(batch, payloads, now)
	}
	if len(current) > 0 {
		queueDocuments(batch, current)
		queueAttempts(batch, current)
	}
	if batch.Len() == 0 {
		return nil
	}
	return tx.SendBatch(ctx, batch).Close()
}

// stillSettled: a run that died after its effect was done leaves nothing to do,
// so a job that was settled stays so.
const stillSettled = `u.ledger_state = 'done' AND d.status IN ('recovered', 'resolved')`

// queueUpdates makes a later death the job's current one: whatever had been
// decided about the one before (its status, its fix) is over.
func queueUpdates(batch *pgx.Batch, rows []*death, now time.Time) {
	args := jobArgs(rows, now)
	args["generation"] = column(rows, func(d *death) int32 { return int32(d.generation) })
	args["id"] = column(rows, func(d *death) int64 { return d.id })
	batch.Queue(`
		UPDATE redrive.dead_jobs d
		SET generation = n.generation, job_type = u.job_type, queue = u.queue, tenant = u.tenant, entity = u.entity,
		    event = u.event, destination = u.destination, key_scope = u.key_scope, idempotency_key = u.idempotency_key,
		    status = CASE WHEN `+stillSettled+` THEN d.status ELSE 'open' END, snoozed_until = NULL,
		    settled_reason = CASE WHEN `+stillSettled+` THEN d.settled_reason ELSE '' END,
		    settled_ref = CASE WHEN `+stillSettled+` THEN d.settled_ref ELSE '' END,
		    settled_by = CASE WHEN `+stillSettled+` THEN d.settled_by ELSE '' END,
		    settled_at = CASE WHEN `+stillSettled+` THEN d.settled_at END,
		    fix_kind = '', fix_ref = '', effect = `+effectKept+`, effect_id = u.effect_id,
		    category = u.category, category_by = u.category_by, reason_code = u.reason_code, reason_text = u.reason_text,
		    gave_up = u.gave_up, error_class = u.error_class, error_message = u.error_message, status_code = u.status_code,
		    fingerprint = u.fingerprint, attempt_count = u.attempt_count, max_attempts = u.max_attempts,
		    worker_version = u.worker_version, schema_version = u.schema_version, payload_version = u.payload_version,
		    payload_size = u.payload_size, payload_kind = u.payload_kind,
		    enqueued_at = coalesce(u.enqueued_at, d.enqueued_at), first_failed_at = least(d.first_failed_at, u.first_failed_at),
		    died_at = u.died_at, died_at_note = u.died_at_note, last_death_attempt = u.attempt_count,
		    last_death_at = coalesce(u.last_death_at, d.last_death_at), updated_at = @now, source_ref = u.source_ref::jsonb
		FROM (
			SELECT u.position, u.job_type, u.queue, u.tenant, u.entity, u.event, u.destination, u.key_scope, u.idempotency_key,
			       `+effectOf+` AS effect, `+effectIDOf+` AS effect_id, u.effect <> '' AS effect_told,
			       l.state AS ledger_state, l.begins AS ledger_begins, u.category, u.category_by, u.reason_code, u.reason_text,
			       u.gave_up, u.error_class, u.error_message, u.status_code, u.fingerprint, u.attempt_count, u.max_attempts,
			       u.worker_version, u.schema_version, u.payload_version, u.payload_size, u.payload_kind, u.enqueued_at,
			       u.first_failed_at, u.died_at, u.died_at_note, u.last_death_at, u.source_ref
			`+jobsTable+`) u
		JOIN unnest(@id::bigint[], @generation::integer[]) WITH ORDINALITY AS n(id, generation, position) USING (position)
		WHERE d.id = n.id`, args)
}

func queueDeaths(batch *pgx.Batch, rows []*death, now time.Time) {
	batch.Queue(`
		INSERT INTO redrive.deaths (
			dead_job_id, generation, attempt, death_key, died_at, environment, job_type, category, fingerprint, template, error_class, captured_at)
		SELECT u.dead_job_id, u.generation, u.attempt, u.death_key, u.died_at, u.environment, u.job_type, u.category, u.fingerprint,
		       u.template, u.error_class, @now
		FROM unnest(@dead_job_id::bigint[], @generation::integer[], @attempt::integer[], @death_key::text[], @died_at::timestamptz[],
		            @environment::text[], @job_type::text[], @category::text[], @fingerprint::text[], @template::text[], @error_class::text[])
		     AS u(dead_job_id, generation, attempt, death_key, died_at, environment, job_type, category, fingerprint, template, error_class)
		ON CONFLICT (dead_job_id, death_key) DO NOTHING`, pgx.NamedArgs{
		"now":         now,
		"dead_job_id": column(rows, func(d *death) int64 { return d.id }),
		"generation":  column(rows, func(d *death) int32 { return int32(d.deathGen) }),
		"attempt":     column(rows, func(d *death) int32 { return int32(d.attempt) }),
		"death_key":   column(rows, func(d *death) string { return d.key }),
		"died_at":     column(rows, func(d *death) time.Time { return d.times.died }),
		"environment": column(rows, func(d *death) string { return d.doc.Environment }),
		"job_type":    column(rows, func(d *death) string { return d.doc.JobType }),
		"category":    column(rows, func(d *death) string { return d.failure.category }),
		"fingerprint": column(rows, func(d *death) string { return d.failure.fingerprint }),
		"template":    column(rows, func(d *death) string { return d.failure.template }),
		"error_class": column(rows, func(d *death) string { return d.failure.class }),
	})
}

func queuePayloads(batch *pgx.Batch, rows []*death, now time.Time) {
	batch.Queue(`
		INSERT INTO redrive.payloads (
			dead_job_id, version, bytes, sealing, encoding, size, sha256, redacted, redact_version, hidden, origin, created_at)
		SELECT u.dead_job_id, u.version, u.bytes, u.sealing, u.encoding, u.size, u.sha256, u.redacted, @redact_version, u.hidden, 'capture', @now
		FROM unnest(@dead_job_id::bigint[], @version::integer[], @bytes::bytea[], @sealing::text[], @encoding::text[], @size::bigint[],
		            @sha256::bytea[], @redacted::bytea[], @hidden::integer[])
		     AS u(dead_job_id, version, bytes, sealing, encoding, size, sha256, redacted, hidden)`, pgx.NamedArgs{
		"now":            now,
		"redact_version": redact.Version,
		"dead_job_id":    column(rows, func(d *death) int64 { return d.id }),
		"version":        column(rows, func(d *death) int32 { return int32(d.payloadVersion) }),
		"bytes":          column(rows, func(d *death) []byte { return d.sealed.payload }),
		"sealing":        column(rows, func(d *death) string { return d.sealed.sealing }),
		"encoding":       column(rows, func(d *death) string { return d.encoding }),
		"size":           column(rows, func(d *death) int64 { return int64(len(d.doc.Payload)) }),
		"sha256":         column(rows, func(d *death) []byte { return d.sha }),
		"redacted":       column(rows, func(d *death) []byte { return d.view.Redacted }),
		"hidden":         column(rows, func(d *death) int32 { return int32(d.view.Hidden) }),
	})
}

func queueDocuments(batch *pgx.Batch, rows []*death) {
	batch.Queue(`
		INSERT INTO redrive.documents (dead_job_id, generation, headers_raw, extra_raw, sealing, headers, extra)
		SELECT u.dead_job_id, u.generation, u.headers_raw, u.extra_raw, u.sealing, u.headers, u.extra
		FROM unnest(@dead_job_id::bigint[], @generation::integer[], @headers_raw::bytea[], @extra_raw::bytea[], @sealing::text[],
		            @headers::text[], @extra::text[])
		     AS u(dead_job_id, generation, headers_raw, extra_raw, sealing, headers, extra)`, pgx.NamedArgs{
		"dead_job_id": column(rows, func(d *death) int64 { return d.id }),
		"generation":  column(rows, func(d *death) int32 { return int32(d.generation) }),
		"headers_raw": column(rows, func(d *death) []byte { return d.sealed.headers }),
		"extra_raw":   column(rows, func(d *death) []byte { return d.sealed.extra }),
		"sealing":     column(rows, func(d *death) string { return d.sealed.sealing }),
		"headers":     column(rows, func(d *death) string { return d.headers }),
		"extra":       column(rows, func(d *death) string { return d.extra }),
	})
}

func queueAttempts(batch *pgx.Batch, deaths []*death) {
	var rows []attemptRow
	for _, d := range deaths {
		for i := range d.attempts {
			rows = append(rows, attemptRow{&d.attempts[i], d, i + 1, d.sealed.attempts[i]})
		}
	}
	if len(rows) == 0 {
		return
	}
	text := func(of func(attemptRow) string) []string { return column(rows, of) }
	batch.Queue(`
		WITH sent AS (
			SELECT u.*
			FROM unnest(@dead_job_id::bigint[], @generation::integer[], @seq::integer[], @at::timestamptz[], @at_raw::text[], @at_note::text[],
			            @error_class::text[], @message::text[], @stack::text[], @causes::text[], @worker::text[], @worker_version::text[],
			            @duration_ms::bigint[], @side_effect::text[], @status_code::integer[], @raw::bytea[], @sealing::text[])
			     AS u(dead_job_id, generation, seq, at, at_raw, at_note, error_class, message, stack, causes, worker, worker_version,
			          duration_ms, side_effect, status_code, raw, sealing)),
		kept AS (
			INSERT INTO redrive.attempts (
				dead_job_id, generation, seq, at, at_raw, at_note, error_class, message, stack, causes, worker, worker_version,
				duration_ms, side_effect, status_code)
			SELECT dead_job_id, generation, seq, at, at_raw, at_note, error_class, message, stack, causes, worker, worker_version,
			       duration_ms, side_effect, status_code
			FROM sent
			RETURNING id, dead_job_id, seq)
		INSERT INTO redrive.attempt_raws (attempt_id, raw, sealing)
		SELECT kept.id, sent.raw, sent.sealing
		FROM kept
		JOIN sent USING (dead_job_id, seq)`, pgx.NamedArgs{
		"dead_job_id":    column(rows, func(a attemptRow) int64 { return a.d.id }),
		"generation":     column(rows, func(a attemptRow) int32 { return int32(a.d.generation) }),
		"seq":            column(rows, func(a attemptRow) int32 { return int32(a.seq) }),
		"at":             column(rows, func(a attemptRow) *time.Time { return a.at }),
		"at_raw":         text(func(a attemptRow) string { return a.atRaw }),
		"at_note":        text(func(a attemptRow) string { return a.note }),
		"error_class":    text(func(a attemptRow) string { return a.class }),
		"message":        text(func(a attemptRow) string { return a.message }),
		"stack":          text(func(a attemptRow) string { return a.stack }),
		"causes":         text(func(a attemptRow) string { return a.causes }),
		"worker":         text(func(a attemptRow) string { return a.worker }),
		"worker_version": text(func(a attemptRow) string { return a.workerVersion }),
		"duration_ms":    column(rows, func(a attemptRow) *int64 { return a.durationMS }),
		"side_effect":    text(func(a attemptRow) string { return a.sideEffect }),
		"status_code":    column(rows, func(a attemptRow) int32 { return int32(a.status) }),
		"raw":            column(rows, func(a attemptRow) []byte { return a.raw }),
		"sealing":        text(func(a attemptRow) string { return a.d.sealed.sealing }),
	})
}
