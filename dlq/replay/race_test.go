package replay_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redrive-dlq/redrive/dlq/ledger"
	"github.com/redrive-dlq/redrive/dlq/replay"
)

// TestClaimOrExpiryNeverBoth: two processes whose clocks differ meet at the
// deadline. What was claimed may have left, so it can't end as never accepted.
func TestClaimOrExpiryNeverBoth(t *testing.T) {
	t.Parallel()
	b := setup(t)
	late := *b.svc
	late.Now = func() time.Time { return time.Now().Add(time.Hour) }
	var replays []int64
	for i := range 24 {
		replays = append(replays, b.out(t, b.job(t, jobOpts{id: fmt.Sprint(i), key: []string{"", fmt.Sprint("k", i)}[i%2]})))
	}
	b.exec(t, `UPDATE redrive.replays SET target_kind = 'http', delivered_at = NULL`)
	claimed := make([]bool, len(replays))
	var wg sync.WaitGroup
	for i, id := range replays {
		wg.Go(func() {
			_, _, ok, err := b.svc.Claim(context.Background(), id)
			if err != nil && !ledger.IsBusy(err) {
				t.Error(err)
			}
			claimed[i] = ok
		})
	}
	for range 4 {
		wg.Go(func() {
			if _, err := late.Expire(context.Background()); err != nil && !ledger.IsBusy(err) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if _, err := late.Expire(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i, id := range replays {
		want := replay.Skipped
		if claimed[i] {
			want = replay.Unconfirmed
		}
		if _, out, code := b.outcome(t, id); out != want {
			t.Errorf("claimed %v: %s %s", claimed[i], out, code)
		}
	}
	if _, _, ok, err := late.Claim(t.Context(), replays[0]); ok || err != nil {
		t.Error("claimed after its end", err)
	}
}

// TestDeathAndOutcomeInBothOrders: a source and the target tell of the same
// failed run.
func TestDeathAndOutcomeInBothOrders(t *testing.T) {
	t.Parallel()
	b := setup(t)
	failed := replay.End{Outcome: replay.Failed, Code: "http_503",
		Failure: &replay.Failure{Class: "HTTP 503", Message: "busy", Category: "transient", Fingerprint: "g", StatusCode: 503}}
	for i, captureFirst := range []bool{true, false} {
		name := fmt.Sprint(i)
		id := b.job(t, jobOpts{id: name, key: name, entity: "e" + name})
		r := b.out(t, id)
		if captureFirst {
			b.diesAgain(t, name, name)
			// While its replay is out, nobody can order another.
			if _, err := b.svc.One(t.Context(), b.oncall, replay.Order{DeadJobID: id, Generation: 2, PayloadVersion: 2, Reason: "again"}); err == nil {
				t.Error("ordered while the replay is out")
			}
		}
		b.record(t, r, failed)
		want := 2
		if !captureFirst {
			b.diesAgain(t, name, name) // another death: later, with a higher attempt
			want = 3
		}
		if n := b.count(t, `SELECT generation FROM redrive.dead_jobs WHERE id = $1`, id); n != want {
			t.Errorf("capture first %v: generation %d, want %d", captureFirst, n, want)
		}
		if s, e, _ := b.status(t, id); s != "open" || e != "none" {
			t.Errorf("capture first %v: %s %s", captureFirst, s, e)
		}
		if state, out, _ := b.outcome(t, r); state != "ended" || out != replay.Failed {
			t.Errorf("capture first %v: %s %s", captureFirst, state, out)
		}
	}
}

// TestOneEffectWhateverMeets runs orders, releases, a worker with its ledger
// and a person who settles against one key, and counts what was allowed.
func TestOneEffectWhateverMeets(t *testing.T) {
	t.Parallel()
	b := setup(t)
	twins := []int64{b.job(t, jobOpts{id: "1", key: "k"}), b.job(t, jobOpts{id: "2", key: "k"}), b.job(t, jobOpts{id: "3", key: "k"})}
	var wg sync.WaitGroup
	var mu sync.Mutex
	effects := 0
	start := time.Now()
	for w := range 6 {
		wg.Go(func() {
			ctx := context.Background()
			tries := 0 // after the effect
			for i := 0; tries < 8 && time.Since(start) < 4*time.Second; i++ {
				mu.Lock()
				if effects > 0 {
					tries++
				}
				mu.Unlock()
				_, _ = b.order(twins[(w+i)%3])
				_, _ = b.svc.ReleaseDue(ctx)
				var out int64
				_ = b.pool.QueryRow(ctx, `SELECT id FROM redrive.replays WHERE state = 'released' LIMIT 1`).Scan(&out)
				if out == 0 {
					continue
				}
				switch i % 3 {
				case 0: // the run fails before its effect
					_, _ = b.svc.Record(ctx, out, replay.End{Outcome: replay.Failed})
				default:
					if a, err := ledger.Begin(ctx, b.pool, welcome("k")); err == nil && a == ledger.Begun {
						mu.Lock()
						effects++
						mu.Unlock()
						if err := ledger.Finish(ctx, b.pool, welcome("k"), nil); err != nil {
							t.Error(err)
						}
						_, _ = b.svc.Record(ctx, out, replay.End{Outcome: replay.Succeeded})
					}
				}
			}
		})
	}
	wg.Wait()
	if effects != 1 {
		t.Fatalf("%d effects of one key", effects)
	}
	b.svc.Now = func() time.Time { return time.Now().Add(time.Hour) }
	if _, err := b.svc.Expire(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, id := range twins {
		if s, e, _ := b.status(t, id); e != "done" || (s != "recovered" && s != "resolved") {
			t.Errorf("job %d is %s, %s", id, s, e)
		}
	}
}
