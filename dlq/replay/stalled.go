package replay

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// beatEvery is how often work on a batch says that it is alive.
	beatEvery = 2 * time.Second
	// stalledAfter is how long work is silent before it counts as left behind by a
	// process that was killed. Two that work at once do no harm.
	stalledAfter = 10 * time.Second
)

// Stalled is work on a batch that nobody does any more.
type Stalled struct {
	Batch int64
	Work  Work
}

// beat says that somebody works on the batch.
func (s *Service) beat(ctx context.Context, batch int64) error {
	_, err := s.Pool.Exec(ctx, `
		UPDATE redrive.batches
		SET worked_at = clock_timestamp()
		WHERE id = $1 AND coalesce(worked_at, '-infinity') < clock_timestamp() - $2::interval`, batch, beatEvery)
	if err != nil {
		return fmt.Errorf("replay: beat: %w", err)
	}
	return nil
}

// Stalled returns work that was left behind, and counts it as taken up: the
// caller hands it out again, in the same transaction, unless it knows better.
// A batch that somebody holds isn't left behind.
func (s *Service) Stalled(ctx context.Context, tx pgx.Tx) ([]Stalled, error) {
	rows, err := tx.Query(ctx, `
		WITH b AS (
			SELECT id, CASE state WHEN 'planning' THEN 'plan' WHEN 'cancelling' THEN 'cancel' ELSE 'start' END AS work
			FROM redrive.batches
			WHERE state IN ('planning', 'scheduled', 'running', 'paused', 'cancelling')
			  AND (state IN ('planning', 'cancelling') OR (kind = 'batch' AND activated_at IS NULL))
			  AND greatest(worked_at, confirmed_at, created_at) < clock_timestamp() - $1::interval
			ORDER BY id
			LIMIT 20
			FOR UPDATE SKIP LOCKED)
		UPDATE redrive.batches
		SET worked_at = clock_timestamp()
		FROM b
		WHERE batches.id = b.id
		RETURNING batches.id AS batch, b.work`, stalledAfter)
	if err != nil {
		return nil, fmt.Errorf("replay: work left behind: %w", err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByName[Stalled])
	if err != nil {
		return nil, fmt.Errorf("replay: work left behind: %w", err)
	}
	return all, nil
}
