package replay

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/audit"
	"github.com/redrive-dlq/redrive/dlq/jobtype"
)

// newCanary makes up to n of the replays that have not left a new canary of a
// batch that stopped, the first choices of the plan first; outcomes of what is
// released from now on count. It returns how many it is: none, where all that is
// left waits behind others, and then it is chosen when they end. The caller
// holds the bucket.
func newCanary(ctx context.Context, tx pgx.Tx, batchID int64, n int, now time.Time) (int64, error) {
	chosen, err := chooseCanary(ctx, tx, batchID, n)
	if err != nil {
		return 0, err
	}
	_, err = tx.Exec(ctx, `
		UPDATE redrive.runs u
		SET wave = 0, watch_from = $2, base_good = c.good, base_bad = c.bad,
		    stragglers = ARRAY(
		        SELECT r.id
		        FROM redrive.replays r
		        JOIN redrive.batches b ON b.id = r.batch_id
		        WHERE r.environment = b.environment AND r.destination = b.destination AND r.state = 'released' AND r.batch_id = $1)
		FROM (SELECT coalesce(sum(n) FILTER (WHERE tally IN ('succeeded', 'already_done')), 0) AS good,
		             coalesce(sum(n) FILTER (WHERE tally IN ('failed', 'unconfirmed')), 0) AS bad
		      FROM redrive.batch_tallies
		      WHERE batch_id = $1) c
		WHERE u.batch_id = $1`, batchID, now)
	if err != nil {
		return 0, fmt.Errorf("replay: new canary: %w", err)
	}
	return chosen, nil
}

// canaryOf is how many a canary of a batch is; one that was confirmed without
// has its type's after it stopped.
func (s *Service) canaryOf(jobType string, confirmed int) int {
	if confirmed > 0 {
		return confirmed
	}
	if t, ok := s.Types().Type(jobType); ok {
		return t.Canary()
	}
	return jobtype.DefaultCanary
}

func chooseCanary(ctx context.Context, tx pgx.Tx, batchID int64, n int) (int64, error) {
	tag, err := tx.Exec(ctx, `
		WITH ranked AS (
			SELECT id
			FROM redrive.replays
			WHERE batch_id = $1 AND canary_rank IS NOT NULL AND state IN ('pending', 'ready') AND NOT behind
			ORDER BY canary_rank
			LIMIT $2
			FOR UPDATE SKIP LOCKED),
		others AS ( -- when the plan's choices are used up
			SELECT id
			FROM redrive.replays
			WHERE batch_id = $1 AND canary_rank IS NULL AND state = 'pending' AND NOT behind
			LIMIT $2 - (SELECT count(*) FROM ranked)
			FOR UPDATE SKIP LOCKED)
		UPDATE redrive.replays
		SET wave = 0
		WHERE id IN (SELECT id FROM ranked UNION ALL SELECT id FROM others)`, batchID, n)
	if err != nil {
		return 0, fmt.Errorf("replay: choose canary: %w", err)
	}
	return tag.RowsAffected(), nil
}

// canaryEnded says whether nothing of the canary waits, is out, or is still to
// be taken.
func (u *run) canaryEnded(ctx context.Context, tx pgx.Tx) (ended bool, err error) {
	err = tx.QueryRow(ctx, `
		SELECT NOT (
			EXISTS (SELECT FROM redrive.replays WHERE batch_id = $1 AND wave = 0 AND state = 'ready')
			OR EXISTS (SELECT FROM redrive.replays WHERE batch_id = $1 AND wave = 0 AND state = 'pending' AND NOT behind)
			OR EXISTS (SELECT FROM redrive.replays WHERE batch_id = $1 AND wave = 0 AND state = 'pending' AND behind)
			OR EXISTS (
				SELECT FROM redrive.replays
				WHERE batch_id = $1 AND wave = 0 AND state = 'planned' AND verdict = 'eligible' AND canary_rank <= $4)
			OR EXISTS (
				SELECT FROM redrive.replays
				WHERE environment = $2 AND destination = $3 AND state = 'released' AND batch_id = $1 AND wave = 0))`,
		u.BatchID, u.environment, u.Destination, u.Canary).Scan(&ended)
	if err != nil {
		return false, fmt.Errorf("replay: canary: %w", err)
	}
	return ended, nil
}

// replaceCanary chooses another canary for one that was never judged: all of
// it was skipped, which says nothing of the rest.
func (s *Service) replaceCanary(ctx context.Context, tx pgx.Tx, b *bucket, u *run) error {
	n, err := chooseCanary(ctx, tx, u.BatchID, s.canaryOf(b.JobType, u.Canary))
	if err != nil || n > 0 {
		return err
	}
	var waits bool
	err = tx.QueryRow(ctx, `
		SELECT EXISTS (SELECT FROM redrive.replays WHERE batch_id = $1 AND state IN ('pending', 'ready', 'released'))`, u.BatchID).Scan(&waits)
	if err != nil {
		return fmt.Errorf("replay: canary: %w", err)
	}
	if waits { // all that is left is behind others: it may come after them
		return nil
	}
	return s.pass(ctx, tx, b, u, 0, 0)
}

// pass lets the rest follow the canary.
func (s *Service) pass(ctx context.Context, tx pgx.Tx, b *bucket, u *run, bad, judged int64) error {
	u.Wave = 1
	_, err := tx.Exec(ctx, `
		WITH r AS (UPDATE redrive.runs SET wave = 1 WHERE batch_id = $1)
		UPDATE redrive.batches SET canary_passed_at = $2 WHERE id = $1`, u.BatchID, s.now())
	if err != nil {
		return fmt.Errorf("replay: pass canary: %w", err)
	}
	why := fmt.Sprintf("%d of %d of the canary failed", bad, judged)
	_, err = audit.Append(ctx, tx, audit.SystemActor(),
		u.batch(b).entry("batch.canary_passed", why, map[string]any{"failed": bad, "judged": judged}, s.now()))
	return err
}
