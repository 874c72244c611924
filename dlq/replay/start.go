package replay

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/dlq/ledger"
	"github.com/redrive-dlq/redrive/dlq/problem"
)

const (
	// startChunk is how many jobs are taken in one transaction.
	startChunk = 500
	// startPause is how long a start waits for jobs that workers hold.
	startPause = 200 * time.Millisecond
	// learnFrom is how large a batch is that the planner has to know of.
	learnFrom = 5000
)

// starting is a confirmed batch while its jobs are taken.
type starting struct {
	batchRow
	due      time.Time
	cursor   int64 // below 0: the canary isn't taken yet
	allowOld bool
	ahead    map[int64]Verdict // by replay: what was found out of its payload
	ran      map[int64]bool    // jobs of which another replay failed since the plan
}

// doStart takes a part of a confirmed batch: its eligible jobs are replaying
// from then on. The canary comes first; the release may begin with it.
func (s *Service) doStart(ctx context.Context, batch int64) (done bool, err error) {
	var waits bool
	ahead, err := s.lookAhead(ctx, batch)
	if err != nil {
		return false, err
	}
	err = pgx.BeginFunc(ctx, s.Pool, func(tx pgx.Tx) error {
		if err := ledger.GiveWay(ctx, tx); err != nil {
			return err
		}
		st, ok, err := s.toStart(ctx, tx, batch, "FOR UPDATE")
		if err != nil || !ok {
			done = true
			return err
		}
		st.ahead = ahead
		items, last, err := s.nextToStart(ctx, tx, st, "FOR UPDATE OF r SKIP LOCKED")
		if err != nil {
			return err
		}
		if err := s.take(ctx, tx, st, items); err != nil {
			return err
		}
		done, waits, err = s.afterChunk(ctx, tx, st, len(items), last)
		return err
	})
	if ledger.IsBusy(err) { // a worker's transaction is in the way of one of them
		err, waits = nil, true
	}
	if waits {
		wait(ctx, startPause)
	}
	if done && err == nil {
		s.learn(ctx, batch)
	}
	return done && err == nil, err
}

// toStart holds the batch, so that no command and no other worker is half-way;
// ok is false when there is nothing to take (any more).
func (s *Service) toStart(ctx context.Context, tx pgx.Tx, batch int64, lock string) (st *starting, ok bool, err error) {
	b, err := readBatch(ctx, tx, batch, lock)
	if problem.Is(err, problem.NotFound) {
		return nil, false, nil
	}
	if err != nil || (b.State != "scheduled" && b.State != "running" && b.State != "paused") || b.DueAt == nil {
		return nil, false, err
	}
	st = &starting{batchRow: b, due: *b.DueAt}
	err = tx.QueryRow(ctx, `
		SELECT u.start_cursor, b.allow_old <> ''
		FROM redrive.batches b
		JOIN redrive.runs u ON u.batch_id = b.id
		WHERE b.id = $1 AND b.activated_at IS NULL`, batch).Scan(&st.cursor, &st.allowOld)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("replay: start: %w", err)
	}
	return st, true, nil
}

// nextToStart are the next replays whose jobs are to be taken: first the canary,
// all at once, then by id.
func (s *Service) nextToStart(ctx context.Context, tx pgx.Tx, st *starting, lock string) (items []Item, last int64, err error) {
	if st.cursor < 0 && st.Canary > 0 {
		if lock != "" {
			_, err := tx.Exec(ctx, `
				UPDATE redrive.replays
				SET wave = 0
				WHERE batch_id = $1 AND canary_rank <= $2 AND state = 'planned' AND verdict = 'eligible' AND wave <> 0`, st.ID, st.Canary)
			if err != nil {
				return nil, 0, fmt.Errorf("replay: mark canary: %w", err)
			}
		}
		items, err = s.items(ctx, tx, `
			WHERE r.batch_id = @batch AND r.canary_rank <= @canary AND r.state = 'planned' AND r.verdict = 'eligible'
			ORDER BY r.id
			`+lock, pgx.NamedArgs{"batch": st.ID, "canary": st.Canary})
		if err != nil || len(items) > 0 {
			return items, 0, err
		}
	}
	items, err = s.items(ctx, tx, `
		WHERE r.batch_id = @batch AND r.verdict = 'eligible' AND r.id > @after AND r.state = 'planned'
		ORDER BY r.id
		LIMIT @chunk
		`+lock, pgx.NamedArgs{"batch": st.ID, "after": st.cursor, "chunk": startChunk})
	if len(items) > 0 {
		last = items[len(items)-1].ReplayID
	}
	return items, last, err
}

// afterChunk notes how far the start is. At the end it begins again for those
// that were held by somebody; when none is left, the batch is activated.
func (s *Service) afterChunk(ctx context.Context, tx pgx.Tx, st *starting, n int, last int64) (done, waits bool, err error) {
	if n > 0 {
		_, err := tx.Exec(ctx, `UPDATE redrive.runs SET start_cursor = $2 WHERE batch_id = $1`, st.ID, last)
		if err != nil {
			return false, false, fmt.Errorf("replay: start: %w", err)
		}
		return false, false, nil
	}
	var rest bool
	err = tx.QueryRow(ctx, `
		SELECT EXISTS (SELECT FROM redrive.replays WHERE batch_id = $1 AND verdict = 'eligible' AND state = 'planned')`, st.ID).Scan(&rest)
	if err != nil {
		return false, false, fmt.Errorf("replay: start: %w", err)
	}
	if rest {
		_, err := tx.Exec(ctx, `UPDATE redrive.runs SET start_cursor = 0 WHERE batch_id = $1`, st.ID)
		return false, true, err
	}
	_, err = tx.Exec(ctx, `UPDATE redrive.batches SET activated_at = $2 WHERE id = $1`, st.ID, s.now())
	if err != nil {
		return false, false, fmt.Errorf("replay: activate: %w", err)
	}
	return true, false, endBatch(ctx, tx, st.ID)
}

// learn tells the planner of a large batch before the release asks for its
// items; without, it may read all of them each time. A failure costs only time.
func (s *Service) learn(ctx context.Context, batch int64) {
	err := pgx.BeginFunc(ctx, s.Pool, func(tx pgx.Tx) error {
		var large bool
		err := tx.QueryRow(ctx, `
			SELECT eligible >= $2 AND state IN ('scheduled', 'running', 'paused') FROM redrive.batches WHERE id = $1`, batch, learnFrom).Scan(&large)
		if err != nil || !large {
			return err
		}
		_, err = tx.Exec(ctx, `SET LOCAL lock_timeout = '1s'`)
		if err == nil {
			_, err = tx.Exec(ctx, `ANALYZE redrive.replays`)
		}
		return err
	})
	if err != nil && ctx.Err() == nil {
		s.log().InfoContext(ctx, "statistics of a large batch not taken", "batch", batch, "error", err)
	}
}

func wait(ctx context.Context, pause time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(pause):
	}
}
