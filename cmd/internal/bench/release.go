package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/redrive-dlq/redrive/dlq/replay"
)

const (
	releaseRounds = 3
	releaseEach   = 2000 // replays of a type in one run
	firstTries    = 7
)

// releases compares the release loop with a bare claim: SKIP LOCKED on the same
// rows with the same indexes, and the same hand-over, with nothing judged or
// limited. Processes are goroutines with a pool and a service each; all share
// the machine's cores with PostgreSQL as processes would. Runs are interleaved.
func (b *bench) releases(ctx context.Context) error {
	w, err := b.releaseWorld(ctx)
	if err != nil {
		return err
	}
	defer w.end()
	if err := w.warm(ctx); err != nil {
		return err
	}
	rates := map[string][]time.Duration{}
	for range releaseRounds {
		for _, n := range []int{1, 2, 4} {
			for what, run := range map[string]func(context.Context, int) (time.Duration, error){"release": w.release, "claim": w.claim} {
				took, err := run(ctx, n)
				if err != nil {
					return err
				}
				rates[fmt.Sprint(what, n)] = append(rates[fmt.Sprint(what, n)], took)
			}
		}
	}
	per := func(name string) float64 { return releaseTypes * releaseEach / median(rates[name]) }
	for _, n := range []int{1, 2, 4} {
		b.print(fmt.Sprintf("release_per_s_%d", n), per(fmt.Sprint("release", n)))
		b.print(fmt.Sprintf("claim_per_s_%d", n), per(fmt.Sprint("claim", n)))
		b.print(fmt.Sprintf("release_vs_claim_%d", n), per(fmt.Sprint("release", n))/per(fmt.Sprint("claim", n)))
	}
	b.print("release_scale_2", per("release2")/per("release1"))
	return errors.Join(b.rateError(ctx, w), b.firstRelease(ctx, w))
}

// warm fills and empties the tables once, so that plans and caches are as in
// use.
func (w *releaseWorld) warm(ctx context.Context) error {
	if _, err := w.release(ctx, 1); err != nil {
		return err
	}
	_, err := w.claim(ctx, 1)
	return err
}

// stock fills one batch a type and takes statistics.
func (w *releaseWorld) stock(ctx context.Context, run bool) (batches []int64, err error) {
	for i := range releaseTypes {
		id, err := w.fill(ctx, i, releaseEach, time.Now(), run)
		if err != nil {
			return nil, err
		}
		batches = append(batches, id)
	}
	_, err = w.pool.Exec(ctx, `VACUUM ANALYZE redrive.replays, redrive.dead_jobs, redrive.payloads, redrive.runs, redrive.batches, redrive.batch_deltas`)
	return batches, err
}

// parallel lets n workers work until all is done, and says how long it took.
func parallel(n int, want int64, work func(i int) (int, error)) (time.Duration, error) {
	var done atomic.Int64
	var wg sync.WaitGroup
	errs := make([]error, n)
	began := time.Now()
	for i := range n {
		wg.Go(func() {
			for errs[i] == nil && done.Load() < want {
				var k int
				k, errs[i] = work(i)
				done.Add(int64(k))
			}
		})
	}
	wg.Wait()
	return time.Since(began), errors.Join(errs...)
}

// release times the release of all that is stocked, by n processes.
func (w *releaseWorld) release(ctx context.Context, n int) (time.Duration, error) {
	if _, err := w.stock(ctx, true); err != nil {
		return 0, err
	}
	var all []*replay.Service
	for range n {
		s, err := w.process(ctx)
		if err != nil {
			return 0, err
		}
		if err := s.Pool.Ping(ctx); err != nil {
			return 0, err
		}
		all = append(all, s)
	}
	took, err := parallel(n, releaseTypes*releaseEach, func(i int) (int, error) { return all[i].ReleaseDue(ctx) })
	if err != nil {
		return 0, err
	}
	// Their batches end, as those of replays with outcomes do.
	_, err = w.pool.Exec(ctx, `DELETE FROM redrive.runs`)
	return took, err
}

// claim times the bare claim of as many.
func (w *releaseWorld) claim(ctx context.Context, n int) (time.Duration, error) {
	batches, err := w.stock(ctx, false)
	if err != nil {
		return 0, err
	}
	pools, targets := make([]*pgxpool.Pool, n), make([]*handOver, n)
	for i := range n {
		if pools[i], err = w.connect(ctx, w.pool); err != nil {
			return 0, err
		}
		if targets[i], err = newHandOver(pools[i]); err != nil {
			return 0, err
		}
		if err := pools[i].Ping(ctx); err != nil {
			return 0, err
		}
	}
	turns := make([]int, n)
	return parallel(n, releaseTypes*releaseEach, func(i int) (claimed int, err error) {
		turns[i]++
		batch := batches[(i+turns[i])%len(batches)]
		err = pgx.BeginFunc(ctx, pools[i], func(tx pgx.Tx) error {
			rows, err := tx.Query(ctx, bareClaim, batch)
			if err != nil {
				return err
			}
			ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
			if claimed = len(ids); err != nil || claimed == 0 {
				return err
			}
			return targets[i].insert(ctx, tx, ids)
		})
		return claimed, err
	})
}

const bareClaim = `
	WITH c AS (
		SELECT id
		FROM redrive.replays
		WHERE batch_id = $1 AND wave = 1 AND state = 'pending' AND NOT behind
		ORDER BY tenant, id
		LIMIT 200
		FOR UPDATE SKIP LOCKED)
	UPDATE redrive.replays r
	SET state = 'released', released_at = now(), delivered_at = now(), deadline_at = now() + interval '15 minutes'
	FROM c
	WHERE r.id = c.id
	RETURNING r.id`

// rateError lets two processes release at 50 a second and says by how much the
// rate is missed, in percent.
func (b *bench) rateError(ctx context.Context, w *releaseWorld) error {
	const perSecond, seconds = 50, 10
	batch, err := w.fill(ctx, releaseTypes, perSecond*(seconds+5), time.Now(), true)
	if err != nil {
		return err
	}
	err = w.running(ctx, 2, func() error { return wait(ctx, (seconds+2)*time.Second) })
	if err != nil {
		return err
	}
	var n, span float64
	err = w.pool.QueryRow(ctx, `
		SELECT count(*), extract(epoch FROM max(released_at) - min(released_at))
		FROM redrive.replays
		WHERE batch_id = $1 AND state = 'released'`, batch).Scan(&n, &span)
	if err != nil {
		return err
	}
	b.print("rate_error_pct", 100*math.Abs((n-1)/span/perSecond-1))
	_, err = w.pool.Exec(ctx, `UPDATE redrive.runs SET live = false WHERE batch_id = $1`, batch)
	return err
}

// firstRelease says how long after its due time the first replay of a scheduled
// batch left, in milliseconds.
func (b *bench) firstRelease(ctx context.Context, w *releaseWorld) error {
	var late []time.Duration
	err := w.running(ctx, 2, func() error {
		for i := range firstTries {
			batch, err := w.fill(ctx, i%releaseTypes, 100, time.Now().Add(time.Second+rand.N(200*time.Millisecond)), true)
			if err != nil {
				return err
			}
			if err := wait(ctx, 2500*time.Millisecond); err != nil {
				return err
			}
			var ms float64
			err = w.pool.QueryRow(ctx, `
				SELECT 1000 * extract(epoch FROM min(r.released_at) - min(u.due_at))
				FROM redrive.replays r
				JOIN redrive.runs u ON u.batch_id = r.batch_id
				WHERE r.batch_id = $1 AND r.state = 'released'`, batch).Scan(&ms)
			if err != nil {
				return err
			}
			late = append(late, time.Duration(ms*float64(time.Millisecond)))
		}
		return nil
	})
	if err != nil {
		return err
	}
	b.print("first_release_ms", median(late)*1000)
	return nil
}

// running runs n release loops while f works.
func (w *releaseWorld) running(ctx context.Context, n int, f func() error) error {
	loops, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	for range n {
		s, err := w.process(ctx)
		if err != nil {
			stop()
			return err
		}
		wg.Go(func() { _ = s.RunRelease(loops) }) // it ends without error
	}
	err := f()
	stop()
	wg.Wait()
	return err
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
