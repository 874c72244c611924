package replay_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestRateHoldsWhateverTheClockSays lets four processes release of one bucket
// while the wall clock jumps an hour to and fro: no window holds more than burst
// and rate together.
func TestRateHoldsWhateverTheClockSays(t *testing.T) {
	t.Parallel()
	const burst, perSecond = 10, 50
	l := loopSetup(t, `{per_minute: 3000, burst: 10}`, 100_000)
	l.batch(t, members{n: 600})
	var offset atomic.Int64
	began := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
	defer cancel()
	var wg sync.WaitGroup
	for range 4 {
		s := l.service(l.pool)
		s.Now = func() time.Time { return time.Now().Add(time.Duration(offset.Load())) }
		s.Ran = func() time.Duration { return time.Since(began) }
		wg.Go(func() {
			for ctx.Err() == nil {
				if _, err := s.ReleaseDue(ctx); err != nil && ctx.Err() == nil {
					t.Error(err)
				}
				time.Sleep(time.Duration(rand.IntN(20)) * time.Millisecond)
			}
		})
	}
	wg.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			offset.Store(int64([]time.Duration{0, time.Hour, -30 * time.Minute}[i%3]))
			time.Sleep(400 * time.Millisecond)
		}
	})
	wg.Wait()
	all := l.out.list()
	if len(all) < 2*perSecond {
		t.Fatalf("only %d left in 4 s", len(all))
	}
	// A token is counted a moment before its replay is seen to leave.
	const slack = 60 * time.Millisecond
	for i := range all {
		for j := i; j < len(all); j++ {
			w := all[j].at.Sub(all[i].at) + slack
			if n := j - i + 1; float64(n) > burst+perSecond*w.Seconds()+1 {
				t.Fatalf("%d left within %v", n, w)
			}
		}
	}
}

// TestRateIsUsed: what may leave does, within a few percent.
func TestRateIsUsed(t *testing.T) {
	t.Parallel()
	l := loopSetup(t, `{per_minute: 6000, burst: 5}`, 100_000)
	l.batch(t, members{n: 2000})
	now := time.Now()
	l.svc.Now = func() time.Time { return now }
	left := l.release(t)
	for range 50 { // ten seconds
		now = now.Add(200 * time.Millisecond)
		left += l.release(t)
	}
	if want := 5 + 250; left != want { // burst 5: a longer pause between rounds than 50 ms isn't made up for
		t.Fatalf("%d left, want %d", left, want)
	}
}

// TestBatchesOwnRate: a batch may be slower than its type.
func TestBatchesOwnRate(t *testing.T) {
	t.Parallel()
	l := loopSetup(t, fast, 100_000)
	slow := l.batch(t, members{n: 500, rate: 300})
	quick := l.batch(t, members{n: 500})
	now := time.Now()
	l.svc.Now = func() time.Time { return now }
	for range 11 {
		l.release(t)
		now = now.Add(200 * time.Millisecond)
	}
	for batch, want := range map[int64]int{slow: 5 + 10, quick: 500} {
		if n := l.count(t, `SELECT count(*) FROM redrive.replays WHERE batch_id = $1 AND state = 'released'`, batch); n != want {
			t.Errorf("batch %d: %d left, want %d", batch, n, want)
		}
	}
}

// TestTenantsShare: one tenant with very many starves no other.
func TestTenantsShare(t *testing.T) {
	t.Parallel()
	l := loopSetup(t, `{per_minute: 60000, burst: 40}`, 100_000)
	l.batch(t, members{n: 10_200, tenant: `CASE WHEN i <= 10000 THEN 'a big one' ELSE 'small ' || i % 20 END`})
	now := time.Now()
	l.svc.Now = func() time.Time { return now }
	for range 30 {
		l.release(t)
		now = now.Add(40 * time.Millisecond)
	}
	if n := l.count(t, `SELECT count(*) FROM redrive.replays WHERE state = 'pending' AND tenant <> 'a big one'`); n != 0 {
		t.Errorf("%d of the small ones still wait", n)
	}
	if n := l.count(t, `SELECT count(*) FROM redrive.replays WHERE state = 'released' AND tenant = 'a big one'`); n < 500 {
		t.Errorf("only %d of the big one left: what others don't need is its own", n)
	}
}

// TestTenantsAreCapped: no tenant gets more than its rate, singles included.
func TestTenantsAreCapped(t *testing.T) {
	t.Parallel()
	l := loopSetup(t, `{per_minute: 60000, burst: 1000, per_tenant_per_minute: 120}`, 100_000)
	l.batch(t, members{n: 1000, tenant: `'t' || i % 4`})
	for i := range 30 {
		id := l.job(t, jobOpts{id: name("single", i), jobType: "sync", scope: "sync"})
		l.exec(t, `UPDATE redrive.dead_jobs SET tenant = 't1' WHERE id = $1`, id)
		if _, err := l.order(id); err != nil {
			t.Fatal(err)
		}
	}
	now := time.Now()
	l.svc.Now = func() time.Time { return now }
	for range 26 { // five seconds
		for range 3 {
			l.release(t)
		}
		now = now.Add(200 * time.Millisecond)
	}
	for i := range 4 {
		tenant := name("t", i)
		n := l.count(t, `SELECT count(*) FROM redrive.replays WHERE state = 'released' AND tenant = $1`, tenant)
		if n < 10 || n > 12 {
			t.Errorf("%s: %d left in 5 s at 2 a second", tenant, n)
		}
	}
	if n := l.count(t, `SELECT count(*) FROM redrive.replays r JOIN redrive.batches b ON b.id = r.batch_id WHERE b.kind = 'single' AND r.state = 'released'`); n == 0 {
		t.Error("no single left beside the batch")
	}
}

// TestSinglesOfACappedTenantStandInNobodysWay: what a tenant may not let leave yet
// takes no other's turn.
func TestSinglesOfACappedTenantStandInNobodysWay(t *testing.T) {
	t.Parallel()
	l := loopSetup(t, `{per_minute: 120, burst: 2, per_tenant_per_minute: 6}`, 100_000)
	l.out.delivered = true
	for i := range 6 {
		id := l.job(t, jobOpts{id: name("single", i), jobType: "sync", scope: "sync"})
		l.exec(t, `UPDATE redrive.dead_jobs SET tenant = $2 WHERE id = $1`, id, name("t", i/5))
		if _, err := l.order(id); err != nil {
			t.Fatal(err)
		}
	}
	now := time.Now().Add(time.Second)
	l.svc.Now = func() time.Time { return now }
	for range 3 {
		l.release(t)
		now = now.Add(200 * time.Millisecond)
	}
	if n := l.count(t, `SELECT count(*) FROM redrive.replays WHERE state = 'released' AND tenant = 't1'`); n != 1 {
		t.Fatalf("%d of the other tenant left in half a second", n)
	}
	if n := len(l.out.list()); n != 2 {
		t.Fatalf("%d left, want one of each tenant", n)
	}
}

// TestConcurrencyHoldsAcrossProcesses: eight processes, one destination, five at
// once.
func TestConcurrencyHoldsAcrossProcesses(t *testing.T) {
	t.Parallel()
	l := loopSetup(t, fast, 5)
	l.batch(t, members{n: 120, tenant: `'t' || i % 3`})
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var wg sync.WaitGroup
	var ended atomic.Int32
	for range 8 {
		s := l.service(l.pool)
		wg.Go(func() {
			for ctx.Err() == nil && ended.Load() < 120 {
				if _, err := s.ReleaseDue(ctx); err != nil && ctx.Err() == nil {
					t.Error(err)
				}
				var out, one int64
				err := l.pool.QueryRow(ctx, `SELECT count(*), coalesce(min(id) FILTER (WHERE id % 8 = $1), 0) FROM redrive.replays WHERE state = 'released'`, rand.IntN(8)).Scan(&out, &one)
				if err != nil {
					t.Error(err)
					return
				}
				if out > 5 {
					t.Errorf("%d in flight", out)
				}
				if one == 0 {
					continue
				}
				if first, err := s.Record(ctx, one, succeeded); err == nil && first {
					ended.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if n := l.count(t, `SELECT count(*) FROM redrive.replays WHERE outcome = 'succeeded'`); n != 120 {
		t.Fatalf("%d of 120 succeeded", n)
	}
	seen := map[int64]bool{}
	for _, d := range l.out.list() {
		if seen[d.ReplayID] {
			t.Errorf("replay %d left twice", d.ReplayID)
		}
		seen[d.ReplayID] = true
	}
}

// TestUndeliveredStayUnderASecond: a destination never has more in the hand-over
// than one second's rate, so that a stop acts at once even when workers are down.
func TestUndeliveredStayUnderASecond(t *testing.T) {
	t.Parallel()
	l := loopSetup(t, `{per_minute: 1200, burst: 1000}`, 100_000)
	l.out.delivered = false
	l.batch(t, members{n: 300})
	for range 5 {
		l.release(t)
	}
	out := `SELECT count(*) FROM redrive.replays WHERE state = 'released'`
	if n := l.count(t, out); n != 20 {
		t.Fatalf("%d wait for delivery at 20 a second", n)
	}
	l.exec(t, `UPDATE redrive.replays SET delivered_at = now() WHERE state = 'released'`)
	l.release(t)
	if n := l.count(t, out); n != 40 {
		t.Fatalf("%d are out after the first 20 were delivered", n)
	}
}
