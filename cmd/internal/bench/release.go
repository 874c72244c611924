package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/dlq"
)

// releases compares the release loop with a bare claim: SKIP LOCKED on the same
// rows with the same indexes, and the same hand-over, with nothing judged or
// limited. Both take from the same replays that wait; the runs are interleaved.
func (b *bench) releases(ctx context.Context) error {
	w, err := b.releasing(ctx)
	if err != nil {
		return err
	}
	kinds := []sampled{{"release", 1}, {"claim", 1}, {"release", 2}, {"claim", 2}, {"release", mostProcesses}, {"claim", mostProcesses}}
	// So many wait that the last sample still finds Pending.
	each := (b.Pending + b.Sample*len(kinds)*(b.Samples+1)) / releaseTypes
	var batches []int64
	for i := range releaseTypes {
		id, err := w.fill(ctx, filled{jobType: fmt.Sprintf("release_%d", i), n: each, tenants: releaseTenants})
		if err != nil {
			return err
		}
		batches = append(batches, id)
	}
	if err := w.settle(ctx); err != nil {
		return err
	}
	rates := map[sampled][]time.Duration{}
	for round := range b.Samples + 1 {
		rand.Shuffle(len(kinds), func(i, j int) { kinds[i], kinds[j] = kinds[j], kinds[i] })
		for _, k := range kinds {
			each, err := b.sample(ctx, w, k, batches)
			if err != nil {
				return err
			}
			if round > 0 { // the first fills plans and caches, as they are in use
				rates[k] = append(rates[k], each)
			}
		}
	}
	b.print("release_pending", float64(b.Pending))
	per := func(what string, n int) float64 { return 1 / median(rates[sampled{what, n}]) }
	for _, n := range []int{1, 2, mostProcesses} {
		b.print(fmt.Sprintf("release_per_s_%d", n), per("release", n))
		b.print(fmt.Sprintf("claim_per_s_%d", n), per("claim", n))
		b.print(fmt.Sprintf("release_vs_claim_%d", n), per("release", n)/per("claim", n))
	}
	b.print("release_scale_2", per("release", 2)/per("release", 1))
	b.print("claim_scale_2", per("claim", 2)/per("claim", 1))
	return w.empty(ctx, batches)
}

// sampled is a way to take replays, by so many processes.
type sampled struct {
	what      string
	processes int
}

// sample says how long one replay took, of one sample.
func (b *bench) sample(ctx context.Context, w *releaseWorld, k sampled, batches []int64) (each time.Duration, err error) {
	if k.what == "claim" {
		each, err = w.claim(ctx, k.processes, b.Sample, batches)
	} else {
		each, err = w.release(ctx, k.processes, b.Sample, batches)
	}
	if err != nil {
		return 0, err
	}
	return each, w.outcomes(ctx)
}

// release runs n processes until so many have left.
func (w *releaseWorld) release(ctx context.Context, n, want int, batches []int64) (each time.Duration, err error) {
	for _, p := range w.processes {
		if err := p.pool.Ping(ctx); err != nil {
			return 0, err
		}
		p.target.handed.Store(0)
	}
	if err := w.letGo(ctx, batches); err != nil {
		return 0, err
	}
	began := time.Now()
	err = w.running(ctx, n, func() error {
		for {
			var handed int64
			for _, p := range w.processes {
				handed += p.target.handed.Load()
			}
			if handed >= int64(want) {
				return nil
			}
			if err := wait(ctx, 2*time.Millisecond); err != nil {
				return err
			}
		}
	})
	if err != nil {
		return 0, err
	}
	// The rounds under way when it ended came to nothing and don't count.
	var left int64
	var last time.Time
	err = w.pool.QueryRow(ctx, `SELECT count(*), max(released_at) FROM redrive.replays WHERE state = 'released'`).Scan(&left, &last)
	if err != nil {
		return 0, fmt.Errorf("count releases: %w", err)
	}
	return last.Sub(began) / time.Duration(left), w.hold(ctx, batches)
}

// claim lets n connections take as many, batch after batch.
func (w *releaseWorld) claim(ctx context.Context, n, want int, batches []int64) (each time.Duration, err error) {
	var left atomic.Int64
	var wg sync.WaitGroup
	errs := make(chan error, n)
	began := time.Now()
	for i, p := range w.processes[:n] {
		wg.Go(func() {
			for turn := i; left.Load() < int64(want); turn++ {
				claimed, err := p.claim(ctx, batches[turn%len(batches)])
				if err != nil {
					errs <- err
					return
				}
				left.Add(int64(claimed))
			}
		})
	}
	wg.Wait()
	took := time.Since(began)
	close(errs)
	for err := range errs {
		return 0, fmt.Errorf("claim: %w", err)
	}
	return took / time.Duration(left.Load()), nil
}

func (p *process) claim(ctx context.Context, batch int64) (claimed int, err error) {
	err = pgx.BeginFunc(ctx, p.pool, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, bareClaim, batch)
		if err != nil {
			return err
		}
		ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
		if claimed = len(ids); err != nil || claimed == 0 {
			return err
		}
		return p.target.insert(ctx, tx, ids)
	})
	return claimed, err
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

// outcomes ends what is out, so that no limit of concurrency comes near, and
// leaves the next sample nothing to clear up.
func (w *releaseWorld) outcomes(ctx context.Context) error {
	_, err := w.pool.Exec(ctx, `
		UPDATE redrive.replays
		SET state = 'ended', outcome = 'succeeded', outcome_at = now()
		WHERE state = 'released'`)
	if err != nil {
		return fmt.Errorf("outcomes: %w", err)
	}
	_, err = dlq.FoldCounters(ctx, w.pool)
	return err
}

// empty ends batches: what waits of them is of no use to what comes after.
func (w *releaseWorld) empty(ctx context.Context, batches []int64) error {
	_, err := w.pool.Exec(ctx, `UPDATE redrive.batches SET state = 'cancelled' WHERE id = ANY($1)`, batches)
	if err != nil {
		return fmt.Errorf("end batches: %w", err)
	}
	return nil
}
