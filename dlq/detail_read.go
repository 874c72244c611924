package dlq

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/redrive-dlq/redrive/audit"
	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/dlq/redact"
	"github.com/redrive-dlq/redrive/rbac"
)

const detailColumns = `id, environment, source, job_id, generation, job_type, queue, tenant, entity, event, destination, key_scope,
       idempotency_key, status, effect, effect_id, category, category_by, reason_code, reason_text, gave_up, error_class,
       error_message, status_code, fingerprint, attempt_count, max_attempts, worker_version, payload_version, schema_version,
       payload_size, payload_kind, enqueued_at, first_failed_at, died_at, died_at_note, captured_at, updated_at, assignee,
       snoozed_until, settled_reason, settled_ref, settled_by, settled_at, fix_kind, fix_ref,
       coalesce(source_ref ->> 'gone', '') = 'true' AS source_gone`

// Detail reads a dead job as one consistent picture. Errors: NotFound, also
// for a job outside the principal's scope and for a payload version that
// isn't there.
func Detail(ctx context.Context, pool *pgxpool.Pool, p *rbac.Principal, id int64, q DetailQuery) (*Details, error) {
	if q.Now.IsZero() {
		q.Now = time.Now()
	}
	d := &Details{now: q.Now}
	err := pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		return d.read(ctx, tx, p, id, q)
	})
	if err != nil {
		return nil, err
	}
	d.link()
	d.timeline()
	t := detailType(q.Types, d.Job.JobType)
	d.Sentence = d.sentence()
	d.Advice = d.advise(t)
	return d, nil
}

// DetailHead reads only the job's row. Errors: NotFound as Detail's.
func DetailHead(ctx context.Context, db DB, p *rbac.Principal, id int64) (DetailJob, error) {
	rows, err := db.Query(ctx, `SELECT `+detailColumns+` FROM redrive.dead_jobs WHERE id = $1`, id)
	if err != nil {
		return DetailJob{}, fmt.Errorf("dlq: detail: %w", err)
	}
	j, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[DetailJob])
	if errors.Is(err, pgx.ErrNoRows) || (err == nil && !p.Can(rbac.Read, j.Environment, j.JobType)) {
		return DetailJob{}, listNotFound(id)
	}
	if err != nil {
		return DetailJob{}, fmt.Errorf("dlq: detail: %w", err)
	}
	return j, nil
}

func (d *Details) read(ctx context.Context, tx pgx.Tx, p *rbac.Principal, id int64, q DetailQuery) (err error) {
	if d.Job, err = DetailHead(ctx, tx, p, id); err != nil {
		return err
	}
	if q.Version == 0 {
		q.Version = d.Job.PayloadVersion
	}
	batch := &pgx.Batch{}
	d.queuePayload(batch, q.Version, p.Can(rbac.Reveal, d.Job.Environment, d.Job.JobType))
	d.queueHistory(batch)
	d.queueLedger(batch)
	d.queueRelated(batch, p)
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		if problem.Is(err, problem.NotFound) {
			return err
		}
		return fmt.Errorf("dlq: detail: %w", err)
	}
	d.Entries, err = audit.OfJob(ctx, tx, id, detailEntries)
	if !p.Can(rbac.Reveal, d.Job.Environment, d.Job.JobType) {
		hideHashes(d.Entries)
	}
	return err
}

// hideHashes removes hashes of payloads: who sees all of a payload but one
// masked address could find the address by trying.
func hideHashes(entries []audit.Record) {
	for _, e := range entries {
		maps.DeleteFunc(e.Details, func(name string, _ any) bool { return strings.Contains(name, "sha256") })
	}
}

// queueRows queues a statement whose rows end in to, by name.
func queueRows[T any](batch *pgx.Batch, to *[]T, sql string, args ...any) {
	batch.Queue(sql, args...).Query(func(rows pgx.Rows) (err error) {
		*to, err = pgx.CollectRows(rows, pgx.RowToStructByName[T])
		return err
	})
}

func (d *Details) queuePayload(batch *pgx.Batch, version int, reveal bool) {
	queueRows(batch, &d.Versions, `
		SELECT version, origin, size, created_by, reason, created_at
		FROM redrive.payloads
		WHERE dead_job_id = $1
		ORDER BY version`, d.Job.ID)
	batch.Queue(`
		SELECT substring(redacted FROM 1 FOR $3), octet_length(redacted), size, encoding, hidden, bytes IS NULL, sha256
		FROM redrive.payloads
		WHERE dead_job_id = $1 AND version = $2`, d.Job.ID, version, DetailPayloadBytes).QueryRow(func(row pgx.Row) error {
		pl := DetailPayload{Version: version, Kind: d.Job.PayloadKind}
		var gone bool
		var sum []byte
		err := row.Scan(&pl.Text, &pl.ShownSize, &pl.Size, &pl.Encoding, &pl.Hidden, &gone, &sum)
		if errors.Is(err, pgx.ErrNoRows) {
			return problem.New(problem.NotFound, "This job has no payload version %d.", version)
		}
		if err != nil {
			return err
		}
		if gone && pl.Encoding != EncodingNone {
			pl.Kind = "gone"
		}
		if pl.Truncated = pl.ShownSize > int64(len(pl.Text)); pl.Truncated && (pl.Kind == "json" || pl.Kind == "text") {
			pl.Text = wholeRunes(pl.Text)
		}
		if reveal {
			pl.SHA256 = hex.EncodeToString(sum)
		}
		d.Payload = pl
		return nil
	})
	batch.Queue(`
		SELECT headers, extra
		FROM redrive.documents
		WHERE dead_job_id = $1
		ORDER BY generation DESC
		LIMIT 1`, d.Job.ID).QueryRow(func(row pgx.Row) error {
		var headers, extra string
		err := row.Scan(&headers, &extra)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		d.Extra = json.RawMessage(extra)
		return json.Unmarshal([]byte(headers), &d.Headers)
	})
}

// wholeRunes cuts a character that the cap cut through.
func wholeRunes(b []byte) []byte {
	for i := 1; i <= utf8.UTFMax && i <= len(b); i++ {
		if utf8.RuneStart(b[len(b)-i]) {
			if !utf8.FullRune(b[len(b)-i:]) {
				return b[:len(b)-i]
			}
			return b
		}
	}
	return b
}

func (d *Details) queueHistory(batch *pgx.Batch) {
	batch.Queue(`
		SELECT id, generation, seq, at, at_raw, at_note, error_class, message, stack, causes, worker, worker_version,
		       duration_ms, side_effect, status_code, replay_id
		FROM (SELECT *
		      FROM redrive.attempts
		      WHERE dead_job_id = $1
		      ORDER BY generation DESC, seq DESC
		      LIMIT $2) a
		ORDER BY generation, seq`, d.Job.ID, detailAttempts).Query(func(rows pgx.Rows) (err error) {
		d.Attempts, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (a DetailAttempt, err error) {
			var causes string
			err = row.Scan(&a.ID, &a.Generation, &a.Seq, &a.At, &a.AtRaw, &a.AtNote, &a.ErrorClass, &a.Message, &a.Stack, &causes,
				&a.Worker, &a.WorkerVersion, &a.DurationMS, &a.SideEffect, &a.StatusCode, &a.ReplayID)
			if err == nil {
				err = json.Unmarshal([]byte(causes), &a.Causes)
			}
			return a, err
		})
		return err
	})
	queueRows(batch, &d.Deaths, `
		SELECT generation, attempt, died_at, category, error_class, fingerprint, captured_at
		FROM redrive.deaths
		WHERE dead_job_id = $1
		ORDER BY generation, id
		LIMIT 500`, d.Job.ID)
	queueRows(batch, &d.Replays, `
		SELECT r.id, r.batch_id, b.kind = 'single' AS single, r.generation, r.payload_version, r.state, coalesce(r.outcome, '') AS outcome, r.outcome_code,
		       r.outcome_detail, r.effect_id, coalesce(nullif(b.confirmed_by, ''), b.created_by) AS by, b.reason,
		       coalesce(b.confirmed_at, b.created_at) AS ordered_at, r.due_at, r.released_at, r.deadline_at, r.outcome_at,
		       r.next_generation
		FROM redrive.replays r
		JOIN redrive.batches b ON b.id = r.batch_id
		WHERE r.dead_job_id = $1 AND r.state <> 'planned'
		ORDER BY r.id`, d.Job.ID)
	queueRows(batch, &d.late, `
		SELECT l.replay_id, l.at, l.outcome, l.code, l.detail, l.effect_id
		FROM redrive.replays r
		JOIN redrive.late_outcomes l ON l.replay_id = r.id
		WHERE r.dead_job_id = $1
		ORDER BY l.id`, d.Job.ID)
	queueRows(batch, &d.Notes, `
		SELECT id, author, body, created_at
		FROM redrive.notes
		WHERE dead_job_id = $1
		ORDER BY id`, d.Job.ID)
}

func (d *Details) queueLedger(batch *pgx.Batch) {
	if d.Job.IdempotencyKey == "" {
		return
	}
	batch.Queue(`
		SELECT state, result, effect_id, begins, begun_at, finished_at, settled_by
		FROM redrive.ledger
		WHERE environment = $1 AND scope = $2 AND key = $3`, d.Job.Environment, d.Job.KeyScope, d.Job.IdempotencyKey).QueryRow(func(row pgx.Row) error {
		var l DetailLedger
		err := row.Scan(&l.State, &l.Result, &l.EffectID, &l.Begins, &l.BegunAt, &l.FinishedAt, &l.SettledBy)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		l.Result, l.EffectID = readableResult(l.Result), redact.Readable(l.EffectID)
		d.Ledger = &l
		return nil
	})
}

// readableResult redacts what a worker wrote about an effect.
func readableResult(raw string) string {
	if raw == "" || raw == "null" {
		return ""
	}
	view := redact.Payload([]byte(raw))
	return cut(redact.Visible(string(view.Redacted)), 4000)
}
