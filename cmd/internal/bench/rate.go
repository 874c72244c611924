package bench

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	rateSettle = 3 * time.Second // the burst has left by then
	rateLeast  = 100             // releases that a window holds at least
)

// limited is a type whose rate is measured with so many processes.
type limited struct{ perSecond, processes int }

func (l limited) name() string { return fmt.Sprintf("rate_%d_%d", l.perSecond, l.processes) }

// burst is the type's, which names none.
func (l limited) burst() int { return l.perSecond }

// limits are those of the bar: from 1 to 1,000 a second, with 1 and 4 processes.
func limits() (out []limited) {
	for _, processes := range []int{1, mostProcesses} {
		for _, perSecond := range []int{1, 10, 100, 1000} {
			out = append(out, limited{perSecond, processes})
		}
	}
	return out
}

// span is how long the releases of a rate are watched.
func (b *bench) span(l limited) time.Duration {
	return rateSettle + max(b.Window, time.Duration(float64(rateLeast+1)/float64(l.perSecond)*float64(time.Second))) + 2*time.Second
}

// rates lets types of different rates release at once, first by one process,
// then by all, and says by how much the rate of any window is missed, and by how
// many releases any window of any length passes burst + rate·w.
func (b *bench) rates(ctx context.Context) error {
	w, err := b.releasing(ctx)
	if err != nil {
		return err
	}
	worst, over := 0.0, math.Inf(-1)
	for _, processes := range []int{1, mostProcesses} {
		var of []limited
		var batches []int64
		var span time.Duration
		for _, l := range limits() {
			if l.processes != processes {
				continue
			}
			n := int(b.span(l).Seconds()*float64(l.perSecond)*1.2) + 2*l.burst() + rateLeast
			id, err := w.fill(ctx, filled{jobType: l.name(), n: n, tenants: releaseTenants})
			if err != nil {
				return err
			}
			of, batches, span = append(of, l), append(batches, id), max(span, b.span(l))
		}
		if err := w.settle(ctx); err != nil {
			return err
		}
		if err := w.watch(ctx, processes, batches, span); err != nil {
			return err
		}
		for i, l := range of {
			left, handed, err := w.left(ctx, batches[i])
			if err != nil {
				return err
			}
			e := rateError(left, l.perSecond, b.Window)
			b.print(fmt.Sprintf("rate_error_pct_%d_per_s_%d", l.perSecond, processes), e)
			if math.IsNaN(e) {
				return fmt.Errorf("only %d replays of %s left: no window is full", len(left), l.name())
			}
			worst, over = max(worst, e), max(over, overBurst(left, l.perSecond, l.burst()), overBurst(handed, l.perSecond, l.burst()))
		}
		if err := w.empty(ctx, batches); err != nil {
			return err
		}
	}
	b.print("rate_error_pct", worst)
	b.print("rate_over_burst", over) // releases; at most 0 keeps the promise
	return nil
}

// watch lets batches release for a while.
func (w *releaseWorld) watch(ctx context.Context, processes int, batches []int64, span time.Duration) error {
	for _, p := range w.processes {
		p.target.noting(true)
	}
	if err := w.letGo(ctx, batches); err != nil {
		return err
	}
	return w.running(ctx, processes, func() error { return wait(ctx, span) })
}

// left is when the replays of a batch left: as the release says, and as they
// were handed over.
func (w *releaseWorld) left(ctx context.Context, batch int64) (left, handed []time.Time, err error) {
	rows, err := w.pool.Query(ctx, `SELECT id, released_at FROM redrive.replays WHERE batch_id = $1 AND released_at IS NOT NULL`, batch)
	if err != nil {
		return nil, nil, fmt.Errorf("releases: %w", err)
	}
	var id int64
	var at time.Time
	_, err = pgx.ForEachRow(rows, []any{&id, &at}, func() error {
		left = append(left, at)
		for _, p := range w.processes {
			p.target.mu.Lock()
			if at, ok := p.target.at[id]; ok {
				handed = append(handed, at)
			}
			p.target.mu.Unlock()
		}
		return nil
	})
	if err != nil {
		return nil, nil, fmt.Errorf("releases: %w", err)
	}
	slices.SortFunc(left, time.Time.Compare)
	slices.SortFunc(handed, time.Time.Compare)
	return left, handed, nil
}

// rateError is by how many percent the worst window misses the rate: each begins
// at a release, once the burst has left, and is the shortest that holds enough
// time and releases. Not a number when there is none.
func rateError(at []time.Time, perSecond int, window time.Duration) float64 {
	worst, end := math.NaN(), 0
	for begin := range at {
		if at[begin].Sub(at[0]) < rateSettle {
			continue
		}
		for end = max(end, begin+rateLeast); end < len(at) && at[end].Sub(at[begin]) < window; end++ {
		}
		if end >= len(at) {
			break
		}
		took := at[end].Sub(at[begin]).Seconds()
		e := 100 * math.Abs(float64(end-begin)/took/float64(perSecond)-1)
		if math.IsNaN(worst) || e > worst {
			worst = e
		}
	}
	return worst
}

// overBurst is by how many releases the worst window of any length passes what
// its rate and burst allow; below 0 when none does.
func overBurst(at []time.Time, perSecond, burst int) float64 {
	over, lowest := math.Inf(-1), math.Inf(1)
	for i, t := range at {
		// A window from release k to release i holds i-k+1 of them.
		due := float64(perSecond) * t.Sub(at[0]).Seconds()
		lowest = min(lowest, float64(i)-due)
		over = max(over, float64(i)-due-lowest+1-float64(burst))
	}
	return over
}
