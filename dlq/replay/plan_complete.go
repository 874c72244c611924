package replay

import (
	"context"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5"
)

// completion is what is true of the members together. Each step writes only
// what isn't so yet, since a row that changes costs an entry in every index, and
// sorts by bytes, which is several times faster than by words.
var completion = []struct{ what, sql string }{
	{"duplicates", `
		UPDATE redrive.replays r
		SET verdict = '` + Duplicate + `', behind = false,
		    verdict_detail = 'An older job of this batch has the same key: one run is enough. It is job ' || x.first || '.'
		FROM (SELECT id, first_value(dead_job_id) OVER k AS first, row_number() OVER k AS n
		      FROM redrive.replays
		      WHERE batch_id = $1 AND verdict = 'eligible' AND idempotency_key <> ''
		      WINDOW k AS (PARTITION BY idempotency_key COLLATE "C", key_scope COLLATE "C" ORDER BY order_at, id)) x
		WHERE r.id = x.id AND x.n > 1`},
	{"order of entities", `
		UPDATE redrive.replays r
		SET behind = x.n > 1
		FROM (SELECT id, behind, row_number() OVER (PARTITION BY entity COLLATE "C" ORDER BY order_at, id) AS n
		      FROM redrive.replays
		      WHERE batch_id = $1 AND verdict = 'eligible' AND entity <> '') x
		WHERE r.id = x.id AND x.behind <> (x.n > 1)`},
	{"canary", `
		UPDATE redrive.replays r
		SET canary_rank = x.rank
		FROM (SELECT id, c.rank, o.rank AS was
		      FROM (SELECT id, row_number() OVER (ORDER BY turn, hashint8(id), id) AS rank
		            FROM (SELECT id, row_number() OVER (PARTITION BY tenant COLLATE "C", fingerprint COLLATE "C" ORDER BY hashint8(id), id) AS turn
		                  FROM redrive.replays
		                  WHERE batch_id = $1 AND verdict = 'eligible' AND NOT behind) t
		            ORDER BY rank
		            LIMIT ` + strconv.Itoa(MaxCanary) + `) c
		      FULL JOIN (SELECT id, canary_rank AS rank FROM redrive.replays WHERE batch_id = $1 AND canary_rank IS NOT NULL) o USING (id)) x
		WHERE r.id = x.id AND x.rank IS DISTINCT FROM x.was`},
}

// completePlan looks at the members together: duplicates of a key, order of an
// entity, who would be the canary; then it closes the plan under its hash.
func (s *Service) completePlan(ctx context.Context, tx pgx.Tx, b planRow) error {
	for _, step := range completion {
		if _, err := tx.Exec(ctx, step.sql, b.ID); err != nil {
			return fmt.Errorf("replay: complete plan: %s: %w", step.what, err)
		}
	}
	hash, err := hashPlan(ctx, tx, b.ID)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `
		UPDATE redrive.batches b
		SET state = 'planned', plan_hash = $2, plan_revision = plan_revision + 1, planned_at = $3, judging = false,
		    plan_problem = '', plan_problem_at = NULL,
		    verdicts = coalesce(v.all, '{}'), eligible = coalesce((v.all ->> 'eligible')::integer, 0),
		    tenants = (
			SELECT count(*)
			FROM (SELECT DISTINCT tenant FROM redrive.replays WHERE batch_id = $1 AND verdict = 'eligible') t),
		    older_left_out = (
			SELECT count(*)
			FROM (SELECT environment, entity, order_at
			      FROM redrive.replays
			      WHERE batch_id = $1 AND verdict = 'eligible' AND entity <> '' AND NOT behind
			      LIMIT 10000) h -- a warning, not a count that anything rests on
			WHERE EXISTS (
				SELECT
				FROM redrive.dead_jobs o
				WHERE o.environment = h.environment AND o.entity = h.entity AND o.entity <> '' AND o.status = 'open'
				  AND coalesce(o.enqueued_at, o.first_failed_at, o.died_at) < h.order_at
				  AND NOT EXISTS (
					SELECT FROM redrive.replays r
					WHERE r.batch_id = $1 AND r.dead_job_id = o.id AND r.verdict = 'eligible')))
		FROM (SELECT jsonb_object_agg(substr(tally, 6), n) AS all
		      FROM redrive.batch_tallies
		      WHERE batch_id = $1 AND tally LIKE 'plan.%') v
		WHERE b.id = $1`, b.ID, hash, s.now())
	if err != nil {
		return fmt.Errorf("replay: complete plan: %w", err)
	}
	return nil
}

// hashPlan reads the members in order, however many they are.
func hashPlan(ctx context.Context, tx pgx.Tx, batch int64) (string, error) {
	rows, err := tx.Query(ctx, `
		SELECT dead_job_id, generation, payload_version, verdict
		FROM redrive.replays
		WHERE batch_id = $1
		ORDER BY dead_job_id`, batch)
	if err != nil {
		return "", fmt.Errorf("replay: hash plan: %w", err)
	}
	h := NewPlanHash()
	var job int64
	var generation, version int
	var verdict string
	_, err = pgx.ForEachRow(rows, []any{&job, &generation, &version, &verdict}, func() error {
		h.Add(job, generation, version, verdict)
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("replay: hash plan: %w", err)
	}
	return h.String(), nil
}
