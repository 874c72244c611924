package replay

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	releaseEvery = 200 * time.Millisecond
	soonest      = 20 * time.Millisecond // the shortest pause, for buckets that fill up quickly
	sweepEvery   = 5 * time.Second
	roundsATurn  = 50 // rounds of one type before the others get their turn
)

// RunRelease releases due replays until ctx ends. Every process runs it; any
// may die at any point.
func (s *Service) RunRelease(ctx context.Context) error {
	var wg sync.WaitGroup
	wg.Go(func() { s.runExpiry(ctx) })
	defer wg.Wait()
	tick := time.NewTimer(0)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		_, pause, err := s.releaseDue(ctx)
		if err != nil && ctx.Err() == nil {
			s.log().ErrorContext(ctx, "release round failed", "error", err)
		}
		tick.Reset(pause)
	}
}

// runExpiry ends what is overdue, beside the releases: it may wait for the
// transactions of workers.
func (s *Service) runExpiry(ctx context.Context) {
	tick := time.NewTicker(releaseEvery)
	defer tick.Stop()
	var swept time.Time
	for {
		if _, err := s.Expire(ctx); err != nil && ctx.Err() == nil {
			s.log().ErrorContext(ctx, "expiry round failed", "error", err)
		}
		if time.Since(swept) > sweepEvery {
			swept = time.Now()
			s.sweep(ctx)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// sweep finds what no event tells of.
func (s *Service) sweep(ctx context.Context) {
	for _, part := range []struct {
		what string
		run  func(context.Context) error
	}{
		{"batches not ended", func(ctx context.Context) error { _, err := s.EndBatches(ctx); return err }},
		{"old requests not ended", func(ctx context.Context) error { _, err := s.AgeRequests(ctx); return err }},
		{"replays still wait behind nothing", func(ctx context.Context) error { _, err := s.Unblock(ctx); return err }},
		{"ended runs not forgotten", s.forgetRuns},
	} {
		if err := part.run(ctx); err != nil && ctx.Err() == nil {
			s.log().ErrorContext(ctx, part.what, "error", err)
		}
	}
}

// forgetRuns deletes what the loop knows of batches that ended.
func (s *Service) forgetRuns(ctx context.Context) error {
	_, err := s.Pool.Exec(ctx, `
		DELETE FROM redrive.runs
		WHERE batch_id IN (
			SELECT u.batch_id
			FROM redrive.runs u
			JOIN redrive.batches b ON b.id = u.batch_id
			WHERE b.state IN ('done', 'cancelled')
			FOR UPDATE OF u SKIP LOCKED)`)
	if err != nil {
		return fmt.Errorf("replay: forget runs: %w", err)
	}
	return nil
}

// ReleaseDue releases what is due now and returns how many replays left.
func (s *Service) ReleaseDue(ctx context.Context) (int, error) {
	n, _, err := s.releaseDue(ctx)
	return n, err
}

// releaseDue is ReleaseDue that also says when to look again.
func (s *Service) releaseDue(ctx context.Context) (released int, pause time.Duration, err error) {
	type bucket struct{ environment, jobType string }
	// One probe of an index for each type, however many wait.
	rows, err := s.Pool.Query(ctx, `
		SELECT b.environment, b.job_type
		FROM redrive.release_buckets b
		WHERE EXISTS (
			SELECT FROM redrive.runs u
			WHERE u.environment = b.environment AND u.job_type = b.job_type AND u.live AND u.due_at <= $1)
		ORDER BY 1, 2`, s.now())
	if err != nil {
		return 0, releaseEvery, fmt.Errorf("replay: due buckets: %w", err)
	}
	due, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (b bucket, err error) {
		err = r.Scan(&b.environment, &b.jobType)
		return b, err
	})
	if err != nil {
		return 0, releaseEvery, fmt.Errorf("replay: due buckets: %w", err)
	}
	pause = releaseEvery
	var failed error
	for _, b := range due {
		for range roundsATurn {
			n, full, soon, err := s.releaseBucket(ctx, b.environment, b.jobType)
			released += n
			if soon > 0 {
				pause = min(pause, soon)
			}
			if err != nil {
				failed = errors.Join(failed, fmt.Errorf("%s in %s: %w", b.jobType, b.environment, err))
			}
			if err != nil || !full {
				break
			}
		}
	}
	return released, pause, failed
}
