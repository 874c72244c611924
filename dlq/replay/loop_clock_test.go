package replay_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/dlq/replay"
)

// failing is a target that fails as a whole a few times.
type failing struct {
	*departures
	times atomic.Int32
}

func (f *failing) Release(ctx context.Context, tx pgx.Tx, items []replay.Item) ([]replay.Released, error) {
	if f.times.Add(-1) >= 0 {
		return nil, errors.New("the test says so")
	}
	return f.departures.Release(ctx, tx, items)
}

// TestJumpWhileARoundFails: the round that notices a jump of the clock fails, and
// the next one, which notices none, must not take the jump for time.
func TestJumpWhileARoundFails(t *testing.T) {
	t.Parallel()
	l := loopSetup(t, `{per_minute: 60, burst: 50}`, 1000)
	target := &failing{departures: l.out}
	l.svc.Targets["http"] = target
	l.batch(t, members{n: 200})
	began := time.Now()
	var ran, offset time.Duration
	l.svc.Now = func() time.Time { return began.Add(ran + offset) }
	l.svc.Ran = func() time.Duration { return ran }
	for range 40 { // one second's rate in a round
		l.release(t)
	}
	before := len(l.out.list())
	ran, offset = ran+2*time.Second, time.Hour
	target.times.Store(1)
	for range 60 {
		l.release(t)
	}
	if n := len(l.out.list()) - before; n < 10 || n > 13 {
		t.Fatalf("%d left of the 10 that the bucket held, in two seconds in which the clock jumped by an hour; the rate is 1 a second", n)
	}
}

// TestSmallBucketsOutliveAJump: the caps of tenants and of slower batches hold,
// too, whichever way the clock jumps.
func TestSmallBucketsOutliveAJump(t *testing.T) {
	t.Parallel()
	for _, jump := range []time.Duration{time.Hour, -time.Hour} {
		for what, m := range map[string]members{"tenant": {n: 20, tenant: `'t'`}, "batch": {n: 20, rate: 60}} {
			t.Run(name(what, " ", jump), func(t *testing.T) {
				t.Parallel()
				l := loopSetup(t, `{per_minute: 1000000, burst: 1000000, per_tenant_per_minute: 60}`, 1000)
				m.n = 20
				l.batch(t, m)
				l.exec(t, `UPDATE redrive.runs SET due_at = due_at - interval '1 day'`)
				l.exec(t, `UPDATE redrive.replays SET due_at = due_at - interval '1 day'`)
				began := time.Now()
				var ran, offset time.Duration
				l.svc.Now = func() time.Time { return began.Add(ran + offset) }
				l.svc.Ran = func() time.Duration { return ran }
				for range 5 {
					l.release(t)
				}
				ran, offset = ran+100*time.Millisecond, jump
				for range 5 {
					l.release(t)
				}
				if n := len(l.out.list()); n != 1 {
					t.Fatalf("%d left within a tenth of a second, at 1 a second", n)
				}
				ran += time.Second
				if l.release(t); len(l.out.list()) != 2 {
					t.Fatalf("%d left a second later", len(l.out.list()))
				}
			})
		}
	}
}

// TestBreakerOutlivesAJump: a breaker that opened while the clock was an hour
// ahead tries again after its pause, and with no more than its few.
func TestBreakerOutlivesAJump(t *testing.T) {
	t.Parallel()
	l := loopSetup(t, fast, 30)
	typ, _ := l.cat.Type("sync")
	typ.Batch.StopAtFailurePct = 100
	l.batch(t, members{n: 200})
	now := time.Now().Add(time.Hour)
	l.svc.Now = func() time.Time { return now }
	l.release(t)
	for _, d := range l.out.list()[:5] {
		l.record(t, d.ReplayID, failed503)
	}
	l.release(t)
	now = now.Add(-time.Hour)
	if n := l.release(t); n != 0 {
		t.Fatalf("%d left through an open breaker", n)
	}
	now = now.Add(16 * time.Second)
	left := 0
	for range 4 {
		left += l.release(t)
		now = now.Add(time.Second)
	}
	if left != 3 {
		t.Fatalf("%d left after the pause, want 3", left)
	}
}

// TestHalfOpenKeepsTheConcurrency: what is still out from before the outage
// counts, and so do tries of which nobody heard.
func TestHalfOpenKeepsTheConcurrency(t *testing.T) {
	t.Parallel()
	const most = 30
	l := loopSetup(t, fast, most)
	typ, _ := l.cat.Type("sync")
	typ.Batch.StopAtFailurePct = 100
	l.batch(t, members{n: 200})
	now := time.Now()
	l.svc.Now = func() time.Time { return now }
	l.release(t)
	for i, d := range l.out.list()[:5] {
		if i == 3 {
			l.release(t) // full again
		}
		l.record(t, d.ReplayID, failed503)
	}
	for range 5 { // pauses
		now = now.Add(2 * time.Second)
		l.release(t)
		if n := l.count(t, `SELECT count(*) FROM redrive.replays WHERE state = 'released'`); n > most {
			t.Fatalf("%d are out, more than %d", n, most)
		}
		now = now.Add(10 * time.Minute)
		l.svc.Now = func() time.Time { return now }
		l.release(t)
		if n := l.count(t, `SELECT count(*) FROM redrive.replays WHERE state = 'released'`); n > most {
			t.Fatalf("%d are out while the breaker is half open, more than %d", n, most)
		}
		all := l.out.list()
		now = now.Add(time.Second)
		l.record(t, all[len(all)-1].ReplayID, failed503)
	}
}

// TestExpiryGoesByTheSharedClock: a process whose own clock is wrong ends what is
// overdue, and nothing else.
func TestExpiryGoesByTheSharedClock(t *testing.T) {
	t.Parallel()
	l := loopSetup(t, fast, 1000)
	l.batch(t, members{n: 2})
	l.release(t)
	late := l.out.list()[0].ReplayID
	l.exec(t, `UPDATE redrive.replays SET deadline_at = now() - interval '1 minute' WHERE id = $1`, late)
	synctest.Test(t, func(t *testing.T) { // in the year 2000
		if n, err := l.svc.Expire(context.Background()); n != 1 || err != nil {
			t.Fatalf("%d ended, want the overdue one: %v", n, err)
		}
	})
	if _, outcome, _ := l.outcome(t, late); outcome != replay.Unconfirmed {
		t.Fatal(outcome)
	}
}
