package replay

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// newCanary makes up to n of the replays that have not left a new canary of a
// batch that stopped, the first choices of the plan first; outcomes of what is
// released from now on count. It returns how many it is.
func newCanary(ctx context.Context, tx pgx.Tx, batchID int64, n int, now time.Time) (int64, error) {
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
		return 0, fmt.Errorf("replay: new canary: %w", err)
	}
	_, err = tx.Exec(ctx, `
		UPDATE redrive.runs
		SET wave = CASE WHEN $2 > 0 THEN 0 ELSE 1 END, watch_from = $3
		WHERE batch_id = $1`, batchID, tag.RowsAffected(), now)
	if err != nil {
		return 0, fmt.Errorf("replay: new canary: %w", err)
	}
	return tag.RowsAffected(), nil
}
