package replay

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// standing is one replay of batch $1 that has not ended. The order makes it one
// probe of an index, where the last that left stand; without it the planner
// reads what has ended until it meets another.
const standing = `
	SELECT id
	FROM redrive.replays
	WHERE batch_id = $1 AND state IN ('pending', 'ready', 'released')
	ORDER BY state DESC, id DESC
	LIMIT 1`

// endBatch ends a batch of which nothing waits or is out, once all of its plan
// was taken.
func endBatch(ctx context.Context, tx pgx.Tx, batchID int64) error {
	_, err := tx.Exec(ctx, `
		WITH b AS (
			UPDATE redrive.batches
			SET state = 'done', finished_at = now()
			WHERE id = $1 AND state IN ('scheduled', 'running') AND activated_at IS NOT NULL
			  AND (`+standing+`) IS NULL
			RETURNING id)
		DELETE FROM redrive.runs WHERE batch_id IN (SELECT id FROM b)`, batchID)
	if err != nil {
		return fmt.Errorf("replay: end batch: %w", err)
	}
	return nil
}

// EndBatches ends batches whose replays have all ended: two last ones that end
// at the same moment don't see each other, and neither ends their batch. It
// returns how many.
func (s *Service) EndBatches(ctx context.Context) (int64, error) {
	var n int64
	err := s.Pool.QueryRow(ctx, `
		WITH over AS (
			SELECT b.id
			FROM redrive.batches b
			WHERE b.state IN ('scheduled', 'running', 'paused', 'cancelling') AND (b.activated_at IS NOT NULL OR b.state = 'cancelling')
			  AND NOT (b.state = 'cancelling' AND `+untaken("b.id")+`)
			  AND NOT EXISTS (
				SELECT FROM redrive.replays r WHERE r.batch_id = b.id AND r.state IN ('pending', 'ready', 'released'))
			FOR UPDATE SKIP LOCKED),
		b AS (
			UPDATE redrive.batches
			SET state = CASE state WHEN 'cancelling' THEN 'cancelled' ELSE 'done' END, finished_at = now()
			WHERE id IN (SELECT id FROM over)
			RETURNING id),
		gone AS (DELETE FROM redrive.runs WHERE batch_id IN (SELECT id FROM b))
		SELECT count(*) FROM b`).Scan(&n)
	if err != nil {
		return 0, fmt.Errorf("replay: end batches: %w", err)
	}
	return n, s.linkDeaths(ctx)
}
