package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redrive-dlq/redrive/dlq/filter"
	"github.com/redrive-dlq/redrive/dlq/replay"
)

// planOpen plans all open jobs of a type in the console, and returns at once.
func (b *bench) planOpen(ctx context.Context, jobType string) (batch int64, err error) {
	f := filter.Filter{Types: []string{jobType}, Status: []string{"open"}}
	ids, err := b.console.Replays().Plan(ctx, b.person, replay.Selection{Filter: f}, "measured")
	if err != nil {
		return 0, err
	}
	return ids[0], nil
}

// stateOf is the state of a batch.
func (b *bench) stateOf(ctx context.Context, batch int64) (state string, err error) {
	if err := b.pool.QueryRow(ctx, `SELECT state FROM redrive.batches WHERE id = $1`, batch).Scan(&state); err != nil {
		return "", fmt.Errorf("batch %d: %w", batch, err)
	}
	return state, nil
}

// confirm reviews and confirms a planned batch as a person does, to start at the
// given time, or at once when it is zero.
func (b *bench) confirm(ctx context.Context, batch int64, start time.Time) error {
	s := b.console.Replays()
	var hash string
	if err := b.pool.QueryRow(ctx, `SELECT plan_hash FROM redrive.batches WHERE id = $1`, batch).Scan(&hash); err != nil {
		return fmt.Errorf("plan of batch %d: %w", batch, err)
	}
	review, err := s.Review(ctx, b.person, replay.ReviewOrder{Batch: batch, PlanHash: hash, Reason: "measured", StartAt: start, Canary: 10})
	if err != nil {
		return err
	}
	page, err := s.Confirming(ctx, b.person, batch)
	if err != nil {
		return err
	}
	_, err = s.Confirm(ctx, b.person, replay.ConfirmOrder{Batch: batch, PlanHash: hash, ReviewHash: review, Phrase: page.Phrase, Nonce: page.Nonce})
	return err
}

// firstLeft waits for the first release of a batch, and says how long after its
// due time it was.
func (b *bench) firstLeft(ctx context.Context, batch int64) (late time.Duration, err error) {
	const patience = 60 * time.Second
	for began := time.Now(); time.Since(began) < patience; {
		var ms *float64
		err := b.pool.QueryRow(ctx, `
			SELECT 1000 * extract(epoch FROM (
				SELECT min(released_at) FROM redrive.replays WHERE batch_id = $1 AND released_at IS NOT NULL) - due_at)
			FROM redrive.batches
			WHERE id = $1`, batch).Scan(&ms)
		if err != nil {
			return 0, fmt.Errorf("first release: %w", err)
		}
		if ms != nil {
			return time.Duration(*ms * float64(time.Millisecond)), nil
		}
		if state, err := b.stateOf(ctx, batch); err != nil || state == "paused" || state == "cancelled" {
			return 0, errors.Join(err, fmt.Errorf("batch %d is %s before anything left", batch, state))
		}
		if err := wait(ctx, 50*time.Millisecond); err != nil {
			return 0, err
		}
	}
	return 0, fmt.Errorf("batch %d: nothing left within %s of its order", batch, patience)
}
