package river

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/redrive-dlq/redrive/dlq/source"
)

const (
	countEvery = 10 * time.Second
	pruneEvery = time.Hour
	maxBackoff = 30 * time.Second
)

// Run reads the source until ctx ends, then returns nil when the step at hand is
// committed or rolled back. Failures are shown at the source's row and tried
// again ever more slowly; they never end Run. Each source has its own Run, so
// that one that is down holds up no other.
func (r *Reader) Run(ctx context.Context) error {
	var group sync.WaitGroup
	group.Go(func() { r.every(ctx, "poll", r.cfg.PollEvery, r.Poll) })
	group.Go(func() { r.every(ctx, "pass", r.cfg.CompleteEvery, r.CompletePass) })
	group.Go(func() { r.every(ctx, "counts", countEvery, r.count) })
	group.Go(func() { r.every(ctx, "prune", pruneEvery, r.prune) })
	group.Wait()
	return nil
}

// every calls step, waits, and calls it again; after failures it waits longer.
func (r *Reader) every(ctx context.Context, what string, interval time.Duration, step func(context.Context) error) {
	failures := 0
	for {
		err := r.health.register(ctx)
		if err == nil {
			err = step(ctx)
		}
		if ctx.Err() != nil {
			return
		}
		r.health.report(ctx, what, err)
		wait := jitter(interval)
		failures++
		if err == nil {
			failures = 0
		} else {
			wait = backoff(r.cfg.PollEvery, failures)
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
	}
}

// backoff doubles from base to maxBackoff, with jitter, so that processes don't
// return to a recovering database all at once.
func backoff(base time.Duration, failures int) time.Duration {
	wait := base
	for range failures {
		wait = min(2*wait, maxBackoff)
	}
	return jitter(wait)
}

// jitter varies a wait by a tenth: several processes read one source at
// different moments.
func jitter(d time.Duration) time.Duration {
	return d - d/10 + rand.N(d/5+1)
}

// count tells the console how many jobs wait to be retried and are worked. The
// counts stop at a million: more than that is only "many", and costs time.
func (r *Reader) count(ctx context.Context) error {
	ctx, cancel := r.bounded(ctx)
	defer cancel()
	var waiting, working int64
	err := r.from.QueryRow(ctx, `
		SELECT (SELECT count(*) FROM (SELECT FROM `+r.table+` WHERE state = 'retryable' LIMIT 1000000) w),
		       (SELECT count(*) FROM (SELECT FROM `+r.table+` WHERE state = 'running' LIMIT 1000000) f)`).
		Scan(&waiting, &working)
	if err != nil {
		return err
	}
	return source.SetLive(ctx, r.store, r.id, waiting, working)
}
