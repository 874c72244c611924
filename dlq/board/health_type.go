package board

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/dlq"
	"github.com/redrive-dlq/redrive/rbac"
)

// maxPace is how many replays of a destination the pace of the last minute is
// read from: more than any bucket lets through in a minute that people watch.
const maxPace = 100_000

// typesHealth reads how replays fare by type: what waits and is out from the
// tallies of batches that have not ended, the pace from what is out and what
// ended in the last minute.
func typesHealth(ctx context.Context, db dlq.DB, p *rbac.Principal, environment string, now time.Time) ([]TypeHealth, error) {
	where, args, err := scoped(p, "q", environment, pgx.NamedArgs{"since": now.Add(-lately), "cap": maxPace})
	if err != nil {
		return nil, err
	}
	return collect[TypeHealth](ctx, db, "health of types", `
		WITH way AS MATERIALIZED (
			SELECT b.environment, b.job_type, count(*) AS batches, sum(t.waiting)::bigint AS waiting, sum(t.out)::bigint AS out
			FROM redrive.batches b
			CROSS JOIN LATERAL (
				SELECT coalesce(sum(n) FILTER (WHERE tally IN ('plan.eligible', 'pending', 'ready')), 0) AS waiting,
				       coalesce(sum(n) FILTER (WHERE tally = 'released'), 0) AS out
				FROM redrive.batch_tallies
				WHERE batch_id = b.id) t
			WHERE b.state IN ('scheduled', 'running', 'paused', 'cancelling')
			GROUP BY b.environment, b.job_type),
		pace AS MATERIALIZED (
			SELECT r.environment, r.job_type, count(*) AS n
			FROM redrive.destinations d
			CROSS JOIN LATERAL (
				(SELECT environment, job_type, released_at
				 FROM redrive.replays
				 WHERE environment = d.environment AND destination = d.name AND state = 'released'
				 LIMIT @cap)
				UNION ALL
				(SELECT environment, job_type, released_at
				 FROM (`+judgedSQL+`
				         AND outcome_at > @since
				       ORDER BY outcome_at DESC
				       LIMIT @cap) j)) r
			WHERE r.released_at > @since
			GROUP BY r.environment, r.job_type)
		SELECT q.environment, q.job_type, q.tokens, q.refilled_at, coalesce(pace.n, 0) AS per_minute,
		       coalesce(way.waiting, 0) AS waiting, coalesce(way.out, 0) AS out, coalesce(way.batches, 0) AS batches
		FROM redrive.release_buckets q
		LEFT JOIN way USING (environment, job_type)
		LEFT JOIN pace USING (environment, job_type)
		WHERE `+where+`
		ORDER BY q.environment, q.job_type`, args)
}

// LastBatches reads the newest n batches of each type in scope, singles left
// out, newest first. The types are walked along an index, one step each.
func LastBatches(ctx context.Context, db dlq.DB, p *rbac.Principal, environment string, n int) ([]Batch, error) {
	where, args, err := scoped(p, "b", environment, pgx.NamedArgs{"n": n})
	if err != nil {
		return nil, err
	}
	return collect[Batch](ctx, db, "last batches", `
		WITH RECURSIVE seen AS (
			(SELECT environment, job_type
			 FROM redrive.batches
			 WHERE kind = 'batch'
			 ORDER BY environment, job_type
			 LIMIT 1)
			UNION ALL
			SELECT t.environment, t.job_type
			FROM seen s
			CROSS JOIN LATERAL (
				SELECT environment, job_type
				FROM redrive.batches
				WHERE kind = 'batch' AND (environment, job_type) > (s.environment, s.job_type)
				ORDER BY environment, job_type
				LIMIT 1) t),
		last AS MATERIALIZED (
			SELECT l.id
			FROM seen s
			CROSS JOIN LATERAL (
				SELECT id
				FROM redrive.batches
				WHERE kind = 'batch' AND environment = s.environment AND job_type = s.job_type
				ORDER BY id DESC
				LIMIT @n) l)`+batchSQL+where+`
		  AND b.id IN (SELECT id FROM last)
		ORDER BY b.id DESC`, args)
}
