package replay

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// ranSince are those jobs of which another replay failed since the batch was
// planned: they have changed, although their sources may tell of that death only
// later, and nobody meant the next run of them.
func ranSince(ctx context.Context, tx pgx.Tx, batch int64, items []Item) (map[int64]bool, error) {
	jobs, generations := make([]int64, len(items)), make([]int32, len(items))
	for i, it := range items {
		jobs[i], generations[i] = it.DeadJobID, int32(it.Generation)
	}
	rows, err := tx.Query(ctx, `
		SELECT w.id
		FROM unnest($2::bigint[], $3::integer[]) AS w(id, generation)
		WHERE EXISTS (
			SELECT FROM redrive.replays r
			WHERE r.dead_job_id = w.id AND r.generation = w.generation AND r.outcome = 'failed' AND r.batch_id <> $1
			  AND r.outcome_at >= (SELECT coalesce(planned_at, cutoff) FROM redrive.batches WHERE id = $1))`, batch, jobs, generations)
	if err != nil {
		return nil, fmt.Errorf("replay: look for runs since the plan: %w", err)
	}
	ran := map[int64]bool{}
	var id int64
	_, err = pgx.ForEachRow(rows, []any{&id}, func() error { ran[id] = true; return nil })
	if err != nil {
		return nil, fmt.Errorf("replay: look for runs since the plan: %w", err)
	}
	return ran, nil
}
