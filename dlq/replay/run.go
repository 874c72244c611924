package replay

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// startRun makes an ordered batch known to the release loop, from its row: with
// a canary, only the canary's items may leave at first.
func startRun(ctx context.Context, tx pgx.Tx, batchID int64) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO redrive.runs (batch_id, environment, job_type, due_at, wave, rate_per_minute)
		SELECT id, environment, job_type, due_at, CASE WHEN canary > 0 THEN 0 ELSE 1 END, rate_per_minute
		FROM redrive.batches
		WHERE id = $1`, batchID)
	if err != nil {
		return fmt.Errorf("replay: start run: %w", err)
	}
	return nil
}
