package replay_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/dlq/ledger"
	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/dlq/replay"
)

// brokenTarget can't release some of the jobs, whatever is tried.
type brokenTarget struct {
	*countingTarget
	broken map[int64]bool
}

func (b *brokenTarget) Release(ctx context.Context, tx pgx.Tx, items []replay.Item) ([]replay.Released, error) {
	out := make([]replay.Released, len(items))
	for i, it := range items {
		if b.broken[it.DeadJobID] {
			out[i].Err = errors.New("the test says so")
			continue
		}
		one, err := b.countingTarget.Release(ctx, tx, []replay.Item{it})
		if err != nil {
			return nil, err
		}
		out[i] = one[0]
	}
	return out, nil
}

// TestBrokenItemsDontStandInTheWay fills more than a whole chunk with replays
// that can't leave and expects that the one behind them does.
func TestBrokenItemsDontStandInTheWay(t *testing.T) {
	t.Parallel()
	b := setup(t)
	broken := &brokenTarget{b.target, map[int64]bool{}}
	b.svc.Targets["http"] = broken
	for i := range 25 {
		id := b.job(t, jobOpts{id: fmt.Sprint("broken", i)})
		broken.broken[id] = true
		if _, err := b.order(id); err != nil {
			t.Fatal(err)
		}
	}
	good := b.job(t, jobOpts{id: "good"})
	if _, err := b.order(good); err != nil {
		t.Fatal(err)
	}
	left := 0
	for range 3 {
		left += b.release(t)
	}
	if left != 1 {
		t.Fatalf("%d left behind 25 broken ones, want 1", left)
	}
	if n := b.count(t, `SELECT count(*) FROM redrive.replays WHERE state = 'ready'`); n != 25 {
		t.Fatalf("%d are tried again, want 25", n)
	}
	// What was broken for a while leaves later.
	clear(broken.broken)
	b.svc.Now = func() time.Time { return time.Now().Add(time.Hour) }
	if n := b.release(t) + b.release(t); n != 25 {
		t.Fatalf("%d left after the fault was gone, want 25", n)
	}
}

// TestBusyKeysDontStandInTheWay holds the locks of a whole chunk of keys, as
// long transactions of workers do.
func TestBusyKeysDontStandInTheWay(t *testing.T) {
	t.Parallel()
	b := setup(t)
	tx, err := b.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }()
	for i := range 25 {
		key := fmt.Sprint("busy", i)
		if _, err := b.order(b.job(t, jobOpts{id: key, key: key})); err != nil {
			t.Fatal(err)
		}
		if err := ledger.Lock(t.Context(), tx, ledger.Key{Environment: "production", Scope: "welcome", Key: key}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := b.order(b.job(t, jobOpts{id: "good", key: "good"})); err != nil {
		t.Fatal(err)
	}
	if n := b.release(t) + b.release(t); n != 1 {
		t.Fatalf("%d left behind 25 busy ones, want 1", n)
	}
}

// TestGoneJobOrPayloadEndsTheReplay: what can never leave ends, and says why.
func TestGoneJobOrPayloadEndsTheReplay(t *testing.T) {
	t.Parallel()
	b := setup(t)
	job, payload := b.job(t, jobOpts{id: "1"}), b.job(t, jobOpts{id: "2"})
	one, err := b.order(job)
	if err != nil {
		t.Fatal(err)
	}
	two, err := b.order(payload)
	if err != nil {
		t.Fatal(err)
	}
	b.exec(t, `DELETE FROM redrive.dead_jobs WHERE id = $1`, job)
	b.exec(t, `UPDATE redrive.payloads SET bytes = NULL WHERE dead_job_id = $1`, payload)
	if n := b.release(t); n != 0 {
		t.Fatalf("%d left", n)
	}
	if _, out, code := b.outcome(t, one.ReplayID); out != replay.Skipped || code != "job_gone" {
		t.Errorf("a purged job's replay: %q %q", out, code)
	}
	if _, out, code := b.outcome(t, two.ReplayID); out != replay.Skipped || code != replay.PayloadMissing {
		t.Errorf("a shredded payload's replay: %q %q", out, code)
	}
	if s, _, _ := b.status(t, payload); s != "open" {
		t.Errorf("the job is %s", s)
	}
}

// TestOneBusyKeyDoesntStopExpiry: an outcome that has to wait for a worker's
// transaction harms no other.
func TestOneBusyKeyDoesntStopExpiry(t *testing.T) {
	t.Parallel()
	b := setup(t)
	now := time.Now()
	b.svc.Now = func() time.Time { return now }
	var replays []int64
	for _, key := range []string{"busy", "free"} {
		o, err := b.order(b.job(t, jobOpts{id: key, key: key}))
		if err != nil {
			t.Fatal(err)
		}
		b.release(t)
		now = now.Add(time.Second)
		replays = append(replays, o.ReplayID)
	}
	tx, err := b.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }()
	if err := ledger.Lock(t.Context(), tx, ledger.Key{Environment: "production", Scope: "welcome", Key: "busy"}); err != nil {
		t.Fatal(err)
	}
	now = now.Add(time.Hour)
	if n, err := b.svc.Expire(t.Context()); n != 1 || !isLockTimeout(err) {
		t.Fatalf("expired %d, %v, want 1 and the lock's timeout", n, err)
	}
	if state, _, _ := b.outcome(t, replays[1]); state != "ended" {
		t.Fatal("the free one didn't expire")
	}
}

// TestWeGiveWayToCallers: a caller's transaction holds the job's row and then
// asks for the key. Whatever we do meanwhile, the caller must not be the one
// whom PostgreSQL picks as the deadlock's victim.
func TestWeGiveWayToCallers(t *testing.T) {
	t.Parallel()
	b := setup(t)
	acts := map[string]func(id int64, o replay.Ordered) error{
		"order": func(id int64, _ replay.Ordered) error { _, err := b.order(id); return err },
		"settle": func(id int64, _ replay.Ordered) error {
			return ledger.Settle(context.Background(), b.pool, b.oncall, id, ledger.Settlement{Reason: "looked it up"})
		},
		"cancel": func(_ int64, o replay.Ordered) error {
			return b.svc.CancelOne(context.Background(), b.oncall, o.ReplayID, "changed my mind")
		},
	}
	for name, act := range acts {
		t.Run(name, func(t *testing.T) {
			opts := jobOpts{id: name, key: name}
			if name == "settle" {
				opts.effect = "unknown"
			}
			id := b.job(t, opts)
			var o replay.Ordered
			if name == "cancel" {
				var err error
				o, err = b.svc.One(t.Context(), b.oncall, replay.Order{DeadJobID: id, Generation: 1, PayloadVersion: 1, Reason: "later", At: time.Now().Add(time.Hour)})
				if err != nil {
					t.Fatal(err)
				}
			}
			caller, err := b.pool.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = caller.Rollback(context.Background()) }()
			if _, err := caller.Exec(t.Context(), `SELECT id FROM redrive.dead_jobs WHERE id = $1 FOR NO KEY UPDATE`, id); err != nil {
				t.Fatal(err)
			}
			done := make(chan error, 1)
			go func() { done <- act(id, o) }()
			b.awaitWaiting(t)
			if err := ledger.Finish(t.Context(), caller, ledger.Key{Environment: "production", Scope: "welcome", Key: name}, nil); err != nil {
				t.Fatalf("the caller lost: %v", err)
			}
			if err := caller.Commit(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := <-done; !problem.Is(err, problem.Conflict) {
				t.Fatalf("%s gave %v, want a Conflict that says to try again", name, err)
			}
			if s, e, _ := b.status(t, id); s != "resolved" || e != "done" {
				t.Fatal(s, e)
			}
		})
	}
}

// awaitWaiting returns once a session of this database waits for a row's lock.
func (b *bundle) awaitWaiting(t *testing.T) {
	t.Helper()
	for range 300 {
		if b.count(t, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event IN ('transactionid', 'tuple')`) > 0 {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatal("nobody waits")
}

func (b *bundle) exec(t *testing.T, sql string, args ...any) {
	t.Helper()
	if _, err := b.pool.Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

// A replay is taken back while another of its job and entity is out, and a third
// one waits: the third can't leave yet, and that is no reason to refuse.
func TestCancelWhileTheNextOfItsEntityCantLeave(t *testing.T) {
	t.Parallel()
	b := setup(t)
	now := time.Now()
	b.svc.Now = func() time.Time { return now }
	id := b.job(t, jobOpts{id: "1", entity: "order:1"})
	if _, err := b.order(id); err != nil {
		t.Fatal(err)
	}
	b.release(t)
	var last replay.Ordered
	for generation := 2; generation <= 3; generation++ { // it died again, outside, and was ordered for later
		_, err := b.pool.Exec(t.Context(), `UPDATE redrive.dead_jobs SET generation = $2, status = 'open' WHERE id = $1`, id, generation)
		if err != nil {
			t.Fatal(err)
		}
		if last, err = b.svc.One(t.Context(), b.oncall, replay.Order{DeadJobID: id, Generation: generation, PayloadVersion: 1,
			Reason: "the test says so", At: now.Add(time.Duration(generation) * time.Second)}); err != nil {
			t.Fatal(err)
		}
	}
	now = now.Add(time.Minute)
	if err := b.svc.CancelOne(t.Context(), b.oncall, last.ReplayID, "taken back"); err != nil {
		t.Fatal(err)
	}
	if _, outcome, _ := b.outcome(t, last.ReplayID); outcome != replay.Cancelled {
		t.Fatal(outcome)
	}
}
