package replay

import (
	"context"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/audit"
)

// skipLater ends what comes after a failure in the order of its entity: a later
// change would rest on one that isn't there. The type may say otherwise.
func (s *Service) skipLater(ctx context.Context, tx pgx.Tx, it Item, e End) error {
	if it.Entity == "" || (e.Outcome != Failed && e.Outcome != Unconfirmed) {
		return nil
	}
	if t, ok := s.Types().Type(it.JobType); ok && t.Batch.ContinueEntity {
		return nil
	}
	detail := "not replayed because replay " + strconv.FormatInt(it.ReplayID, 10) + " of the same entity, which comes before it, " + e.Outcome
	if e.Outcome == Unconfirmed {
		detail = "not replayed because nobody knows how replay " + strconv.FormatInt(it.ReplayID, 10) + " of the same entity, which comes before it, ended"
	}
	later, err := holdLater(ctx, tx, it)
	if err != nil || len(later) == 0 {
		return err
	}
	var n int64
	err = tx.QueryRow(ctx, `
		WITH w AS (
			SELECT id, state AS was
			FROM redrive.replays
			WHERE id = ANY($1)),
		r AS (
			UPDATE redrive.replays
			SET state = 'ended', outcome = 'skipped', outcome_code = 'predecessor_failed', outcome_detail = $2, outcome_at = $3
			FROM w
			WHERE replays.id = w.id
			RETURNING replays.dead_job_id, replays.generation, w.was),
		j AS (
			UPDATE redrive.dead_jobs d
			SET status = 'open', updated_at = $3
			FROM r
			WHERE d.id = r.dead_job_id AND d.generation = r.generation AND d.status = 'replaying' AND r.was = 'pending')
		SELECT count(*) FROM r`, later, detail, s.now()).Scan(&n)
	if err != nil {
		return fmt.Errorf("replay: skip later ones: %w", err)
	}
	_, err = audit.Append(ctx, tx, audit.SystemActor(), audit.Entry{
		Action: "batch.skip", Object: audit.Object{Kind: "batch", ID: strconv.FormatInt(it.BatchID, 10)},
		Environment: it.Environment, JobType: it.JobType, Batch: it.BatchID, Reason: detail,
		Details: map[string]any{"code": "predecessor_failed", "replay": it.ReplayID, "skipped": n}, At: s.now(),
	})
	return err
}

// holdLater locks what of the replay's batch is still to leave of its entity. The
// start may be taking some of them right now: they are waited for in a statement
// of its own, so that the next one sees what became of them.
func holdLater(ctx context.Context, tx pgx.Tx, it Item) ([]int64, error) {
	rows, err := tx.Query(ctx, `
		SELECT id
		FROM redrive.replays
		WHERE batch_id = $1 AND environment = $2 AND entity = $3 AND entity <> ''
		  AND (state = 'pending' OR (state = 'planned' AND verdict = 'eligible'))
		ORDER BY id
		FOR UPDATE`, it.BatchID, it.Environment, it.Entity)
	if err != nil {
		return nil, fmt.Errorf("replay: hold later ones: %w", err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return nil, fmt.Errorf("replay: hold later ones: %w", err)
	}
	return ids, nil
}

// wake lets those try again that waited behind a replay that ended: of its
// entity the oldest in each batch, and those of its key.
func wake(ctx context.Context, tx pgx.Tx, it Item) error {
	if it.Entity != "" {
		_, err := tx.Exec(ctx, `
			WITH RECURSIVE b AS (
				(SELECT batch_id
				 FROM redrive.replays
				 WHERE environment = $1 AND entity = $2 AND entity <> '' AND state = 'pending'
				 ORDER BY batch_id
				 LIMIT 1)
				UNION ALL
				SELECT (SELECT r.batch_id
				        FROM redrive.replays r
				        WHERE r.environment = $1 AND r.entity = $2 AND r.entity <> '' AND r.state = 'pending' AND r.batch_id > b.batch_id
				        ORDER BY r.batch_id
				        LIMIT 1)
				FROM b
				WHERE b.batch_id IS NOT NULL)
			UPDATE redrive.replays
			SET behind = false
			WHERE behind AND id = ANY (ARRAY( -- by their ids, however many rows there are
				SELECT n.id
				FROM b
				JOIN redrive.batches o ON o.id = b.batch_id
				CROSS JOIN LATERAL (
					SELECT r.id, r.order_at
					FROM redrive.replays r
					WHERE r.environment = $1 AND r.entity = $2 AND r.entity <> '' AND r.state = 'pending' AND r.batch_id = b.batch_id
					ORDER BY r.order_at, r.id
					LIMIT 1) n
				WHERE CASE WHEN o.activated_at IS NULL THEN NOT EXISTS ( -- an older one whose job isn't taken yet
					SELECT FROM redrive.replays p
					WHERE p.batch_id = b.batch_id AND p.entity = $2 AND p.entity <> '' AND p.state = 'planned' AND p.verdict = 'eligible'
					  AND (p.order_at, p.id) < (n.order_at, n.id)) ELSE true END))`, it.Environment, it.Entity)
		if err != nil {
			return fmt.Errorf("replay: wake the next of the entity: %w", err)
		}
	}
	if it.Key.Key == "" {
		return nil
	}
	_, err := tx.Exec(ctx, `
		UPDATE redrive.replays
		SET behind = false
		WHERE environment = $1 AND key_scope = $2 AND idempotency_key = $3 AND idempotency_key <> '' AND state = 'pending' AND behind
		  AND entity = ''`, it.Environment, it.Key.Scope, it.Key.Key)
	if err != nil {
		return fmt.Errorf("replay: wake those of the key: %w", err)
	}
	return nil
}
