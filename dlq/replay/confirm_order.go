package replay

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/audit"
)

// due is when the batch starts, confirmed for the last time at the given time.
func (b batchRow) due(confirmed time.Time) time.Time {
	switch {
	case b.StartAt == nil:
		return confirmed.Add(time.Duration(b.StartAfterS) * time.Second)
	case b.StartAt.Before(confirmed): // the approval came later than the start
		return confirmed
	}
	return *b.StartAt
}

// order lets the batch run from its due time on, by the entry that ordered it.
func (s *Service) order(ctx context.Context, tx pgx.Tx, b batchRow, entry int64, due time.Time) (string, error) {
	now, state := s.now(), "scheduled"
	if !due.After(now) {
		state = "running"
	}
	_, err := tx.Exec(ctx, `
		UPDATE redrive.batches
		SET state = $2, due_at = $3, order_entry = $4, started_at = CASE WHEN $2 = 'running' THEN $5::timestamptz END
		WHERE id = $1`, b.ID, state, due, entry, now)
	if err != nil {
		return "", fmt.Errorf("replay: order batch: %w", err)
	}
	if err := startRun(ctx, tx, b.ID); err != nil {
		return "", err
	}
	if state == "running" {
		if err := s.writeStart(ctx, tx, b, "it was confirmed to start at once"); err != nil {
			return "", err
		}
	}
	return state, s.enqueue(ctx, tx, WorkStart, b.ID)
}

// writeStart writes down that the batch's first releases are allowed from now
// on: once for each batch, whichever way it began.
func (s *Service) writeStart(ctx context.Context, tx pgx.Tx, b batchRow, why string) error {
	_, err := audit.Append(ctx, tx, audit.SystemActor(), b.entry("batch.start", why, nil, s.now()))
	return err
}

// ensureBucket makes the row that the releases of a type lock.
func ensureBucket(ctx context.Context, tx pgx.Tx, environment, jobType string) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO redrive.release_buckets (environment, job_type) VALUES ($1, $2)
		ON CONFLICT DO NOTHING`, environment, jobType)
	if err != nil {
		return fmt.Errorf("replay: bucket: %w", err)
	}
	return nil
}
