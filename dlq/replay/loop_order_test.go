package replay_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redrive-dlq/redrive/dlq/replay"
)

// finish releases and ends what is out until nothing is left, or the time is up.
func (l *loop) finish(t *testing.T, batches ...int64) {
	t.Helper()
	until(t, "all batches end", func() bool {
		l.release(t)
		l.end(t, succeeded)
		if _, err := l.svc.Unblock(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := l.svc.EndBatches(t.Context()); err != nil {
			t.Fatal(err)
		}
		return l.count(t, `SELECT count(*) FROM redrive.batches WHERE id = ANY($1) AND state = 'done'`, batches) == len(batches)
	})
}

// inOrder expects that of each entity the oldest left first, none before the one
// before it had ended.
func (l *loop) inOrder(t *testing.T) {
	t.Helper()
	n := l.count(t, `
		SELECT count(*)
		FROM redrive.replays a
		JOIN redrive.replays b ON b.environment = a.environment AND b.entity = a.entity AND b.batch_id = a.batch_id AND a.entity <> ''
		WHERE (a.order_at, a.id) < (b.order_at, b.id) AND b.released_at < coalesce(a.outcome_at, 'infinity')`)
	if n != 0 {
		t.Errorf("%d left before an older one of their entity had ended", n)
	}
}

// TestOrderOfEntities: of an entity one leaves at a time, the oldest first.
func TestOrderOfEntities(t *testing.T) {
	t.Parallel()
	l := loopSetup(t, fast, 1000)
	id := l.batch(t, members{n: 120, entity: `'order:' || i % 12`, canary: 5, tenant: `'t' || i % 3`})
	l.release(t)
	if n := len(l.out.list()); n != 5 {
		t.Fatalf("%d left as a canary", n)
	}
	l.finish(t, id)
	l.inOrder(t)
	if n := len(l.out.list()); n != 120 {
		t.Fatalf("%d of 120 left", n)
	}
}

// TestCrossingBatches: two batches that cross in entities and keys, canaries
// included, stand in each other's way and both end.
func TestCrossingBatches(t *testing.T) {
	t.Parallel()
	l := loopSetup(t, fast, 1000)
	a := l.batch(t, members{n: 60, entity: `'order:' || i % 10`, key: `'k' || i % 30`, canary: 4})
	b := l.batch(t, members{n: 60, entity: `'order:' || (60 - i) % 10`, key: `'k' || (60 - i) % 30`, canary: 4})
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for range 3 {
		s := l.service(l.pool)
		wg.Go(func() {
			for ctx.Err() == nil {
				if _, err := s.ReleaseDue(ctx); err != nil && ctx.Err() == nil {
					t.Error(err)
				}
			}
		})
	}
	until(t, "both end", func() bool {
		rows := l.count(t, `SELECT coalesce(min(id), 0) FROM redrive.replays WHERE state = 'released'`)
		if rows != 0 {
			if _, err := l.svc.Record(t.Context(), int64(rows), succeeded); err != nil && !isLockTimeout(err) {
				t.Fatal(err)
			}
		} else if _, err := l.svc.Unblock(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := l.svc.EndBatches(t.Context()); err != nil {
			t.Fatal(err)
		}
		return l.count(t, `SELECT count(*) FROM redrive.batches WHERE id IN ($1, $2) AND state = 'done'`, a, b) == 2
	})
	cancel()
	wg.Wait()
	l.inOrder(t)
	// A key that is done isn't done again.
	if n := l.count(t, `
		SELECT count(*)
		FROM (SELECT idempotency_key FROM redrive.replays WHERE outcome = 'succeeded' AND idempotency_key <> '' GROUP BY 1 HAVING count(*) > 1) k`); n != 0 {
		t.Errorf("%d keys were done more than once", n)
	}
}

// TestPausedItemsCostNothing: many items of a paused batch don't slow another's
// release: they aren't even looked at.
func TestPausedItemsCostNothing(t *testing.T) {
	t.Parallel()
	l := loopSetup(t, fast, 100_000)
	l.batch(t, members{n: 50_000, paused: true, tenant: `'t' || i % 50`})
	l.batch(t, members{n: 2000, tenant: `'t' || i % 50`})
	l.exec(t, `ANALYZE redrive.replays, redrive.dead_jobs, redrive.payloads, redrive.runs`)
	// One connection does all the work, and tells what it read.
	one := l.pool.Config().Copy()
	one.MaxConns = 1
	pool := connect(t, one)
	l.pool.Reset() // what others read is told when they go
	until(t, "only one is left", func() bool {
		var n int
		err := pool.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'client backend'`).Scan(&n)
		return err == nil && n == 1
	})
	read := func() (n int64) {
		for _, sql := range []string{`SELECT pg_stat_force_next_flush()`} {
			if _, err := pool.Exec(t.Context(), sql); err != nil {
				t.Fatal(err)
			}
		}
		err := pool.QueryRow(t.Context(), `
			SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_user_tables WHERE schemaname = 'redrive' AND relname = 'replays'`).Scan(&n)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := read()
	n, err := l.service(pool).ReleaseDue(t.Context())
	if err != nil || n != 2000 {
		t.Fatal(n, err)
	}
	if rows := read() - before; rows > 40_000 { // a few for each that leaves
		t.Fatalf("%d rows read to release 2,000 beside 50,000 that are paused", rows)
	}
}

// TestOneReplayForEachDeath: jobs that die again within a moment of every replay
// are replayed once by one "replay all", not for ever.
func TestOneReplayForEachDeath(t *testing.T) {
	t.Parallel()
	l := loopSetup(t, fast, 1000)
	typ, _ := l.cat.Type("sync")
	typ.Batch.StopAtFailurePct = 100
	id := l.batch(t, members{n: 51, key: `'k' || i`})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	loops := make(chan error, 2)
	for range 2 {
		s := l.service(l.pool)
		go func() { loops <- s.RunRelease(ctx) }()
	}
	until(t, "the batch ends", func() bool {
		for _, d := range l.out.list() {
			if _, err := l.svc.Record(t.Context(), d.ReplayID, failed422); err != nil && !isLockTimeout(err) {
				t.Fatal(err)
			}
		}
		return l.state(t, id) == "done"
	})
	cancel()
	for range 2 {
		if err := <-loops; err != nil {
			t.Fatal(err)
		}
	}
	if n := len(l.out.list()); n != 51 {
		t.Fatalf("%d replays of 51 jobs", n)
	}
	if n := l.count(t, `SELECT count(*) FROM redrive.dead_jobs WHERE status = 'open' AND generation = 2`); n != 51 {
		t.Fatalf("%d jobs are open again", n)
	}
}

// TestFirstLeavesWithinASecond of being due.
func TestFirstLeavesWithinASecond(t *testing.T) {
	t.Parallel()
	l := loopSetup(t, fast, 1000)
	id := l.batch(t, members{n: 5})
	due := time.Now().Add(700 * time.Millisecond)
	l.exec(t, `UPDATE redrive.batches SET state = 'scheduled', started_at = NULL, due_at = $2 WHERE id = $1`, id, due)
	l.exec(t, `UPDATE redrive.runs SET due_at = $2 WHERE batch_id = $1`, id, due)
	l.exec(t, `UPDATE redrive.replays SET due_at = $2 WHERE batch_id = $1`, id, due)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- l.svc.RunRelease(ctx) }()
	until(t, "they leave", func() bool { return l.count(t, `SELECT count(*) FROM redrive.replays WHERE state = 'released'`) == 5 })
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if first := l.out.list()[0].at; first.Before(due) || first.After(due.Add(time.Second)) {
		t.Fatalf("the first left %v after it was due", first.Sub(due))
	}
	if s := l.state(t, id); s != "running" || l.audited(t, "batch.start") != 1 {
		t.Fatal(s)
	}
}

// TestFaultsEndAReplay: what can't be handed over for long doesn't keep its
// batch open for ever.
func TestFaultsEndAReplay(t *testing.T) {
	t.Parallel()
	l := loopSetup(t, fast, 1000)
	broken := &brokenTarget{&countingTarget{left: map[int64]int{}}, map[int64]bool{}}
	l.svc.Targets["http"] = broken
	id := l.batch(t, members{n: 5})
	broken.broken[int64(l.count(t, `SELECT min(dead_job_id) FROM redrive.replays`))] = true
	now := time.Now()
	l.svc.Now = func() time.Time { return now }
	for range 6 {
		l.release(t)
		now = now.Add(31 * time.Second)
	}
	l.end(t, succeeded)
	if n := l.count(t, `SELECT count(*) FROM redrive.replays WHERE outcome = 'skipped' AND outcome_code = 'release_failed'`); n != 1 || l.audited(t, "replay.skipped") != 1 {
		t.Fatalf("%d ended by their faults", n)
	}
	if s := l.state(t, id); s != "done" {
		t.Fatal(s)
	}
}

// TestRecall: what was released and not delivered goes back when its batch is
// paused or held, and ends when it is cancelled.
func TestRecall(t *testing.T) {
	t.Parallel()
	l := loopSetup(t, fast, 1000)
	l.out.delivered = false
	id := l.batch(t, members{n: 3, key: `'k' || i`})
	l.release(t)
	out := l.out.list()
	if err := l.svc.Pause(t.Context(), l.oncall, id, ""); err != nil {
		t.Fatal(err)
	}
	for _, d := range out {
		if _, _, ok, err := l.svc.Claim(t.Context(), d.ReplayID); ok || err != nil {
			t.Fatalf("delivered while paused: %v", err)
		}
		if state, _, _ := l.outcome(t, d.ReplayID); state != "pending" {
			t.Fatal(state)
		}
	}
	if err := l.svc.Resume(t.Context(), l.oncall, id, ""); err != nil {
		t.Fatal(err)
	}
	if n := l.release(t); n != 3 {
		t.Fatalf("%d left again", n)
	}
	hold, err := l.svc.PlaceHold(t.Context(), l.oncall, replay.Hold{Environment: "production"})
	if err != nil {
		t.Fatal(err)
	}
	// Where an earlier try may have delivered it, it isn't taken back.
	if _, _, _, err := l.svc.Undelivered(t.Context(), out[0].ReplayID, true); err != replay.ErrHeld {
		t.Fatal(err)
	}
	if _, _, ok, err := l.svc.Undelivered(t.Context(), out[1].ReplayID, false); ok || err != nil {
		t.Fatalf("delivered while held: %v", err)
	}
	if err := l.svc.LiftHold(t.Context(), l.oncall, hold, "it is back"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := l.svc.Cancel(t.Context(), l.oncall, id, "not any more"); err != nil {
		t.Fatal(err)
	}
	for _, tried := range []struct {
		id    int64
		tried bool
		want  string
	}{{out[0].ReplayID, true, replay.Unconfirmed}, {out[2].ReplayID, false, replay.Cancelled}} {
		if _, _, ok, err := l.svc.Undelivered(t.Context(), tried.id, tried.tried); ok || err != nil {
			t.Fatalf("delivered after the batch was cancelled: %v", err)
		}
		if _, outcome, _ := l.outcome(t, tried.id); outcome != tried.want {
			t.Fatal(outcome)
		}
	}
	work(t, l.svc, replay.WorkCancel, id)
	if _, err := l.svc.EndBatches(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s := l.state(t, id); s != "cancelled" {
		t.Fatal(s)
	}
	if n := l.count(t, `SELECT count(*) FROM redrive.dead_jobs WHERE status = 'replaying'`); n != 0 {
		t.Fatalf("%d jobs stuck", n)
	}
}

// work does background work until it is done.
func work(t *testing.T, s *replay.Service, w replay.Work, batch int64) {
	t.Helper()
	until(t, fmt.Sprint(w, " ", batch), func() bool {
		done, err := s.Do(t.Context(), w, batch)
		if err != nil {
			t.Fatal(err)
		}
		return done
	})
}
