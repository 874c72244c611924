package bench

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"
)

const (
	duringIdle   = 15 * time.Second
	duringPause  = 20 * time.Millisecond // between two looks at pages, as a person's, not a load
	duringSlower = 6000                  // releases a minute, after the full speed
	duringDrain  = 5 * time.Second       // what was out at full speed has arrived by then
	planPatience = 10 * time.Minute
)

// looks are how long pages took.
type looks struct{ list, batch []time.Duration }

// during reads the list and the batch's own page as one person does: idle,
// while a large batch is planned, while it runs as fast as the machine lets it,
// and while it runs slowly. Its destination answers on the same cores.
func (b *bench) during(ctx context.Context) error {
	cookie, err := b.signIn(ctx)
	if err != nil {
		return err
	}
	if err := b.fill(ctx, b.Rows); err != nil {
		return err
	}
	if err := b.planned(ctx, "plan_plain", b.Plan); err != nil {
		return err
	}
	if _, err := b.pool.Exec(ctx, `CHECKPOINT`); err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	// The page of a batch that did all it had to: what it takes when nothing moves.
	small, err := b.planSmall(ctx)
	if err != nil {
		return err
	}
	idle, err := b.look(ctx, cookie, small, forAWhile(duringIdle))
	if err != nil {
		return err
	}
	batch, err := b.planOpen(ctx, "plan_plain")
	if err != nil {
		return err
	}
	began := time.Now()
	planning, err := b.look(ctx, cookie, batch, func() (bool, error) {
		state, err := b.stateOf(ctx, batch)
		if err == nil && time.Since(began) > planPatience {
			err = fmt.Errorf("batch %d is %s after %s", batch, state, planPatience)
		}
		return state != "planning", err
	})
	if err != nil {
		return err
	}
	b.print("during_plan_seconds", time.Since(began).Seconds())
	if err := b.confirm(ctx, batch, time.Time{}); err != nil {
		return err
	}
	late, err := b.firstLeft(ctx, batch)
	if err != nil {
		return err
	}
	b.print("first_release_large_ms", late.Seconds()*1000)
	running, err := b.fast(ctx, cookie, batch)
	if err != nil {
		return err
	}
	if err := b.console.Replays().SetRate(ctx, b.person, batch, duringSlower); err != nil {
		return err
	}
	if err := wait(ctx, duringDrain); err != nil {
		return err
	}
	slow, err := b.look(ctx, cookie, batch, forAWhile(b.During/2))
	if err != nil {
		return err
	}
	b.printDuring(idle, planning, running, slow)
	return nil
}

// fast looks at pages while the batch runs at full speed.
func (b *bench) fast(ctx context.Context, cookie string, batch int64) (looks, error) {
	ended := func() (n int64, err error) {
		err = b.pool.QueryRow(ctx, `SELECT count(*) FROM redrive.replays WHERE batch_id = $1 AND outcome IS NOT NULL`, batch).Scan(&n)
		return n, err
	}
	before, err := ended()
	if err != nil {
		return looks{}, err
	}
	began := time.Now()
	l, err := b.look(ctx, cookie, batch, forAWhile(b.During))
	if err != nil {
		return looks{}, err
	}
	took := time.Since(began)
	after, err := ended()
	if err != nil {
		return looks{}, err
	}
	state, err := b.stateOf(ctx, batch)
	if err == nil && state != "running" {
		err = fmt.Errorf("batch %d is %s: it has to run for %s, so it needs more jobs", batch, state, b.During)
	}
	b.print("during_outcomes_per_s", float64(after-before)/took.Seconds())
	return l, err
}

// planSmall plans a few jobs.
func (b *bench) planSmall(ctx context.Context) (int64, error) {
	if err := b.planned(ctx, "first", firstTries*firstJobs+firstJobs); err != nil {
		return 0, err
	}
	batch, err := b.planOpen(ctx, "first")
	if err != nil {
		return 0, err
	}
	return batch, b.await(ctx, batch, "planned")
}

// look reads both pages again and again, until it is done.
func (b *bench) look(ctx context.Context, cookie string, batch int64, done func() (bool, error)) (l looks, err error) {
	for {
		for _, page := range []struct {
			path string
			took *[]time.Duration
		}{{"/jobs?status=open", &l.list}, {fmt.Sprintf("/batches/%d", batch), &l.batch}} {
			d, err := timed(func() error { return b.get(ctx, http.DefaultClient, page.path, cookie) })
			if err != nil {
				return l, err
			}
			*page.took = append(*page.took, d)
			if err := wait(ctx, duringPause); err != nil {
				return l, err
			}
		}
		if end, err := done(); err != nil || end {
			return l, err
		}
	}
}

func forAWhile(d time.Duration) func() (bool, error) {
	began := time.Now()
	return func() (bool, error) { return time.Since(began) > d, nil }
}

// printDuring takes planning and running together, as they follow each other.
func (b *bench) printDuring(idle, planning, running, slow looks) {
	list, page := median(idle.list), median(idle.batch)
	busy := slices.Concat(planning.list, running.list)
	b.print("list_idle_ms", list*1000)
	b.print("list_during_plan", median(planning.list)/list)
	b.print("list_during_run", median(running.list)/list)
	b.print("list_during_run_100_per_s", median(slow.list)/list)
	b.print("list_during_replay", median(busy)/list)
	b.print("list_during_replay_p99_ms", percentile(busy, 99)*1000)
	b.print("progress_page_idle_ms", page*1000)
	b.print("progress_page_ms", median(running.batch)*1000)
	b.print("progress_page_p99_ms", percentile(running.batch, 99)*1000)
	b.print("progress_vs_idle", median(running.batch)/page)
	b.print("progress_vs_list", median(running.batch)/median(running.list))
}

// percentile of durations, in seconds.
func percentile(d []time.Duration, p int) float64 {
	d = slices.Clone(d)
	slices.Sort(d)
	return d[min(len(d)*p/100, len(d)-1)].Seconds()
}
