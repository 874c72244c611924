package replay

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// facts are all that a verdict on a job is made from, besides its payload:
// read for many jobs in one statement, so that a plan, an order and a release
// judge by the same.
type facts struct {
	job
	Fingerprint string
	DiedAt      time.Time
	OrderAt     time.Time // of its entity the oldest leaves first
	PayloadSize int64     // bytes

	LedgerState    string // of its key; empty: no row
	LedgerEffectID string
	LedgerBegins   int
	TwinID         int64 // another job of its key that says most of the effect; 0: none
	TwinDone       bool
	TwinEffectID   string
	InFlight       int64 // another job's replay of its key under way; 0: none
	Fixed          bool  // a fix was declared for it, its group or a batch of it, after it died
	Superseded     int64 // a newer job of its entity and type that ran; 0: none
	Stored         bool  // the payload's bytes are there
}

func (f facts) twin() twin { return twin{ID: f.TwinID, Done: f.TwinDone, EffectID: f.TwinEffectID} }

// keyInFlight finds another job's replay of the key under way.
const keyInFlight = `LEFT JOIN LATERAL (
			SELECT min(r.id) AS id
			FROM (SELECT id
			      FROM redrive.replays
			      WHERE environment = d.environment AND key_scope = d.key_scope AND idempotency_key = d.idempotency_key
			        AND idempotency_key <> '' AND dead_job_id <> d.id AND state IN ('pending', 'ready')
			      UNION ALL
			      SELECT id
			      FROM redrive.replays
			      WHERE environment = d.environment AND key_scope = d.key_scope AND idempotency_key = d.idempotency_key
			        AND idempotency_key <> '' AND dead_job_id <> d.id AND state IN ('ready', 'released')) r -- each part has an index of its own
			) a ON d.idempotency_key <> ''`

// factsOf reads the facts of jobs, by id; jobs that aren't there (or, with a
// lock that skips, are held by somebody) are left out. lock is empty or the
// rest of the statement; it names d.
func factsOf(ctx context.Context, db querier, ids []int64, lock string) ([]facts, error) {
	return readFacts(ctx, db, ids, identity, keyInFlight, lock)
}

// identity are the columns that name a job; a replay has them, too.
const identity = `d.environment, d.source, d.job_id, d.job_type, d.tenant, d.entity, d.key_scope, d.idempotency_key, d.schema_version,
		       d.fingerprint, d.payload_size, coalesce(d.enqueued_at, d.first_failed_at, d.died_at) AS order_at,
		       `

// factsOfTaken is factsOf for jobs whose own replays are on their way, which
// looks for no others: the slots of job, key and entity keep them apart. What
// the replays say themselves isn't read again. It locks the jobs and leaves out
// those that somebody holds.
func factsOfTaken(ctx context.Context, db querier, ids []int64) ([]facts, error) {
	return readFacts(ctx, db, ids, "", `CROSS JOIN (VALUES (0::bigint)) AS a (id)`, "FOR UPDATE OF d SKIP LOCKED")
}

func readFacts(ctx context.Context, db querier, ids []int64, columns, inFlight, lock string) ([]facts, error) {
	rows, err := db.Query(ctx, `
		SELECT `+columns+`d.id, d.generation, d.queue, d.status, d.effect, d.effect_id, d.category, d.payload_version,
		       d.payload_kind, d.fix_kind, d.attempt_count, d.source_ref, d.died_at,
		       coalesce(l.state, '') AS ledger_state, coalesce(l.effect_id, '') AS ledger_effect_id,
		       coalesce(l.begins, 0) AS ledger_begins,
		       coalesce(w.id, 0) AS twin_id, coalesce(w.done, false) AS twin_done, coalesce(w.effect_id, '') AS twin_effect_id,
		       coalesce(a.id, 0) AS in_flight,
		       d.fix_kind <> '' OR (d.category IN ('invalid_input', 'auth') AND (
		           EXISTS (
		               SELECT FROM redrive.fixes x
		               WHERE x.environment = d.environment AND x.fingerprint = d.fingerprint AND x.fingerprint <> ''
		                 AND x.job_type = d.job_type AND x.declared_at >= d.died_at)
		           OR EXISTS (
		               SELECT FROM redrive.replays r
		               JOIN redrive.fixes x ON x.batch_id = r.batch_id
		               WHERE r.dead_job_id = d.id AND r.generation = d.generation AND x.declared_at >= d.died_at))) AS fixed,
		       coalesce(n.id, 0) AS superseded,
		       EXISTS (
		           SELECT FROM redrive.payloads p
		           WHERE p.dead_job_id = d.id AND p.version = d.payload_version AND p.bytes IS NOT NULL AND p.encoding <> 'none') AS stored
		FROM redrive.dead_jobs d
		LEFT JOIN redrive.ledger l
		       ON l.environment = d.environment AND l.scope = d.key_scope AND l.key = d.idempotency_key AND d.idempotency_key <> ''
		LEFT JOIN LATERAL (
			SELECT o.id, o.effect = 'done' OR o.status = 'recovered' AS done, o.effect_id
			FROM redrive.dead_jobs o
			WHERE o.environment = d.environment AND o.key_scope = d.key_scope AND o.idempotency_key = d.idempotency_key
			  AND o.idempotency_key <> '' AND o.id <> d.id AND (o.effect IN ('done', 'unknown') OR o.status = 'recovered')
			ORDER BY done DESC, o.id
			LIMIT 1) w ON d.idempotency_key <> ''
		`+inFlight+`
		LEFT JOIN LATERAL (
			SELECT o.id
			FROM redrive.dead_jobs o
			WHERE o.environment = d.environment AND o.entity = d.entity AND o.entity <> '' AND o.job_type = d.job_type
			  AND o.status = 'recovered' AND o.id <> d.id
			  AND coalesce(o.enqueued_at, o.first_failed_at, o.died_at) > coalesce(d.enqueued_at, d.first_failed_at, d.died_at)
			ORDER BY coalesce(o.enqueued_at, o.first_failed_at, o.died_at) DESC
			LIMIT 1) n ON d.entity <> ''
		WHERE d.id = ANY($1)
		ORDER BY d.id `+lock, ids)
	if err != nil {
		return nil, fmt.Errorf("replay: facts: %w", err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByNameLax[facts])
	if err != nil {
		return nil, fmt.Errorf("replay: facts: %w", err)
	}
	return found, nil
}
