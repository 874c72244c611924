package replay_test

import (
	"testing"
	"time"

	"github.com/redrive-dlq/redrive/dlq/jobtype"
	"github.com/redrive-dlq/redrive/dlq/ledger"
	"github.com/redrive-dlq/redrive/dlq/replay"
)

func (l *loop) audited(t *testing.T, action string) int {
	t.Helper()
	return l.count(t, `SELECT count(*) FROM redrive.audit_entries WHERE action = $1`, action)
}

// TestCanaryGoesFirstAndPasses: nothing else leaves before all of it is judged.
func TestCanaryGoesFirstAndPasses(t *testing.T) {
	t.Parallel()
	l := loopSetup(t, fast, 1000)
	id := l.batch(t, members{n: 50, canary: 10})
	for range 3 {
		l.release(t)
	}
	if n := len(l.out.list()); n != 10 {
		t.Fatalf("%d left before the canary was judged", n)
	}
	for i, d := range l.out.list() {
		e := succeeded
		if i == 8 {
			e = failed422
		}
		if i == 9 {
			break
		}
		l.record(t, d.ReplayID, e)
	}
	l.release(t)
	if n := len(l.out.list()); n != 10 {
		t.Fatalf("%d left before the last of the canary was judged", n)
	}
	l.record(t, l.out.list()[9].ReplayID, succeeded)
	l.release(t)
	if n := len(l.out.list()); n != 50 || l.audited(t, "batch.canary_passed") != 1 {
		t.Fatalf("%d left after the canary passed, %d entries", n, l.audited(t, "batch.canary_passed"))
	}
	l.end(t, succeeded)
	if s := l.state(t, id); s != "done" {
		t.Fatal(s)
	}
}

// TestCanaryStopsTheBatch, and only a reason and a new canary let it go on.
func TestCanaryStopsTheBatch(t *testing.T) {
	t.Parallel()
	l := loopSetup(t, fast, 1000)
	id := l.batch(t, members{n: 50, canary: 4})
	l.release(t)
	l.record(t, l.out.list()[0].ReplayID, failed422)
	for _, d := range l.out.list()[1:] {
		l.record(t, d.ReplayID, succeeded)
	}
	if n := l.release(t); n != 0 {
		t.Fatalf("%d left behind a canary of which a quarter failed", n)
	}
	if s := l.state(t, id); s != "paused failures 1 of 4 failed (limit 20 %)" || l.audited(t, "batch.stop") != 1 {
		t.Fatal(s, l.audited(t, "batch.stop"))
	}
	if err := l.svc.Resume(t.Context(), l.oncall, id, ""); err == nil {
		t.Fatal("resumed without a reason")
	}
	if err := l.svc.Resume(t.Context(), l.oncall, id, "the provider is back"); err != nil {
		t.Fatal(err)
	}
	if n := l.release(t); n != 4 {
		t.Fatalf("%d left as the new canary", n)
	}
	l.end(t, succeeded)
	l.release(t)
	if n := l.end(t, succeeded); n != 42 {
		t.Fatalf("%d left after the new canary passed", n)
	}
	if s := l.state(t, id); s != "done" {
		t.Fatal(s)
	}
}

// TestOldOutcomesDontCountAfterResume: what was out when a person let the batch
// go on says nothing of what changed since.
func TestOldOutcomesDontCountAfterResume(t *testing.T) {
	t.Parallel()
	l := loopSetup(t, fast, 20)
	id := l.batch(t, members{n: 100})
	l.release(t)
	out := l.out.list()
	for _, d := range out[:5] {
		l.record(t, d.ReplayID, failed422)
	}
	l.release(t)
	if s := l.state(t, id); s != "paused failures 5 of 5 failed (limit 20 %)" {
		t.Fatal(s)
	}
	if err := l.svc.Resume(t.Context(), l.oncall, id, "fixed since"); err != nil {
		t.Fatal(err)
	}
	for _, d := range out[5:] { // released before
		l.record(t, d.ReplayID, failed422)
	}
	if n := l.release(t); n != 10 {
		t.Fatalf("%d left, want a canary of 10", n)
	}
	l.end(t, succeeded)
	l.release(t)
	if s := l.state(t, id); s != "running" {
		t.Fatal(s)
	}
	if n := len(l.out.list()); n != 20+10+20 {
		t.Fatalf("%d left", n)
	}
}

// TestSkippedCanaryIsReplaced: a canary of which nothing ran proves nothing.
func TestSkippedCanaryIsReplaced(t *testing.T) {
	t.Parallel()
	l := loopSetup(t, fast, 1000)
	id := l.batch(t, members{n: 30, canary: 3})
	l.exec(t, `
		UPDATE redrive.dead_jobs SET generation = 2, status = 'open'
		WHERE id IN (SELECT dead_job_id FROM redrive.replays WHERE batch_id = $1 AND wave = 0)`, id)
	for range 3 {
		l.release(t)
	}
	if n := len(l.out.list()); n != 3 {
		t.Fatalf("%d left, want a new canary of 3", n)
	}
	if n := l.count(t, `SELECT count(*) FROM redrive.replays WHERE outcome_code = 'changed'`); n != 3 {
		t.Fatalf("%d skipped", n)
	}
	l.end(t, succeeded)
	l.release(t)
	if n := l.end(t, succeeded); n != 24 {
		t.Fatalf("%d left at last", n)
	}
}

// TestBreakerOpensAndCloses: a destination that is down gets nothing for a
// while, then three, whatever process asks; one that comes through closes it.
func TestBreakerOpensAndCloses(t *testing.T) {
	t.Parallel()
	l := loopSetup(t, fast, 30)
	typ, _ := l.cat.Type("sync")
	typ.Batch.StopAtFailurePct = 100 // the breaker alone
	l.batch(t, members{n: 200})
	now := time.Now()
	other := l.service(l.pool)
	clock := func() time.Time { return now }
	l.svc.Now, other.Now = clock, clock
	l.release(t)
	out := l.out.list()
	for _, d := range out[:5] {
		l.record(t, d.ReplayID, failed503)
	}
	state := func() (s string) {
		if err := l.pool.QueryRow(t.Context(), `SELECT breaker FROM redrive.destinations WHERE name = $1`, loopURL).Scan(&s); err != nil {
			t.Fatal(err)
		}
		return s
	}
	if n := l.release(t); n != 0 || state() != "open" || l.audited(t, "breaker.open") != 1 {
		t.Fatalf("%d left, breaker %s", n, state())
	}
	now = now.Add(14 * time.Second)
	if n := l.release(t); n != 0 {
		t.Fatalf("%d left through an open breaker", n)
	}
	now = now.Add(2 * time.Second)
	left := 0
	for range 3 {
		left += l.release(t)
		n, err := other.ReleaseDue(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		left += n
	}
	if left != 3 || state() != "half_open" {
		t.Fatalf("%d left of both through a breaker that is %s", left, state())
	}
	now = now.Add(time.Second)
	all := l.out.list()
	l.record(t, all[len(all)-1].ReplayID, failed503)
	if n := l.release(t); n != 0 || state() != "open" {
		t.Fatalf("%d left after a try failed, breaker %s", n, state())
	}
	now = now.Add(29 * time.Second)
	if n := l.release(t); n != 0 {
		t.Fatal("the second pause isn't longer than the first")
	}
	now = now.Add(2 * time.Second)
	l.release(t)
	all = l.out.list()
	now = now.Add(time.Second)
	l.record(t, all[len(all)-1].ReplayID, succeeded)
	if l.release(t); state() != "closed" || l.audited(t, "breaker.close") != 1 {
		t.Fatal(state())
	}
	if n := l.count(t, `SELECT count(*) FROM redrive.replays WHERE state = 'released'`); n > 30 || n < 20 {
		t.Fatalf("%d are out after it closed", n)
	}
}

// TestRefusedInputOpensNoBreaker: a destination that answers isn't down.
func TestRefusedInputOpensNoBreaker(t *testing.T) {
	t.Parallel()
	l := loopSetup(t, fast, 30)
	typ, _ := l.cat.Type("sync")
	typ.Batch.StopAtFailurePct = 100
	l.batch(t, members{n: 60})
	l.release(t)
	l.end(t, failed422)
	if n := l.release(t); n != 30 {
		t.Fatalf("%d left", n)
	}
}

// TestHoldsActAtOnce, in every process, and end.
func TestHoldsActAtOnce(t *testing.T) {
	t.Parallel()
	l := loopSetup(t, fast, 10)
	l.batch(t, members{n: 30})
	l.release(t)
	for _, h := range []replay.Hold{{Environment: "production"}, {Environment: "production", JobType: "sync"}, {Environment: "production", Destination: loopURL}} {
		id, err := l.svc.PlaceHold(t.Context(), l.oncall, h)
		if err != nil {
			t.Fatal(err)
		}
		l.end(t, succeeded)
		if n := l.release(t); n != 0 {
			t.Fatalf("%d left under %+v", n, h)
		}
		if err := l.svc.LiftHold(t.Context(), l.oncall, id, "it is back"); err != nil {
			t.Fatal(err)
		}
		l.release(t)
	}
	if n := len(l.out.list()); n != 30 {
		t.Fatalf("%d left at last", n)
	}
}

// TestStricterCatalogueActsAtOnce: a lower rate holds from the next round on; a
// type without target pauses its batches.
func TestStricterCatalogueActsAtOnce(t *testing.T) {
	t.Parallel()
	l := loopSetup(t, fast, 1000)
	id := l.batch(t, members{n: 500})
	typ, _ := l.cat.Type("sync")
	l.release(t)
	l.end(t, succeeded)
	typ.Rate = jobtype.Rate{PerMinute: 60, Burst: 5}
	before := len(l.out.list())
	l.batch(t, members{n: 500})
	for range 8 { // one second's rate at a time
		l.release(t)
	}
	if n := len(l.out.list()) - before; n != 5 && n != 6 {
		t.Fatalf("%d left of a bucket of 5", n)
	}
	typ.Targets = map[string]jobtype.Target{}
	if n := l.release(t); n != 0 {
		t.Fatalf("%d left without a target", n)
	}
	if n := l.count(t, `SELECT count(*) FROM redrive.batches WHERE state = 'paused' AND pause_kind = 'catalogue'`); n != 1 || l.audited(t, "batch.stop") != 1 {
		t.Fatalf("%d batches paused", n)
	}
	if s := l.state(t, id); s != "done" {
		t.Fatal(s)
	}
}

// TestWhatNeverRanProvesNothing: of a canary whose effects were done elsewhere
// meanwhile, only what ran counts, and where nothing ran another follows.
func TestWhatNeverRanProvesNothing(t *testing.T) {
	t.Parallel()
	for _, done := range []int{4, 5} {
		t.Run(name(done, " of 5 done"), func(t *testing.T) {
			t.Parallel()
			l := loopSetup(t, fast, 1000)
			id := l.batch(t, members{n: 30, canary: 5, key: `'k' || i`})
			for i := range done {
				if err := ledger.Finish(t.Context(), l.pool, ledger.Key{Environment: "production", Scope: "sync", Key: name("k", i+1)}, nil); err != nil {
					t.Fatal(err)
				}
			}
			for range 3 {
				l.release(t)
			}
			want, state := 1, "paused failures 1 of 1 failed (limit 20 %)"
			if done == 5 {
				want, state = 5, "paused failures 5 of 5 failed (limit 20 %)"
			}
			if n := len(l.out.list()); n != want {
				t.Fatalf("%d left, want %d to try", n, want)
			}
			l.end(t, failed422)
			l.release(t)
			if s := l.state(t, id); s != state {
				t.Fatal(s)
			}
		})
	}
}

// TestDoneElsewhereHidesNoFailures of those that run.
func TestDoneElsewhereHidesNoFailures(t *testing.T) {
	t.Parallel()
	l := loopSetup(t, fast, 5)
	id := l.batch(t, members{n: 60, key: `'k' || i`})
	l.release(t)
	for i := range 40 {
		if err := ledger.Finish(t.Context(), l.pool, ledger.Key{Environment: "production", Scope: "sync", Key: name("k", i+11)}, nil); err != nil {
			t.Fatal(err)
		}
	}
	l.end(t, failed422)
	l.release(t)
	if s := l.state(t, id); s != "paused failures 5 of 5 failed (limit 20 %)" {
		t.Fatal(s)
	}
}

// TestStragglersDoneElsewhereCountOnce: what was out at a resume and never ran
// takes nothing from the new canary.
func TestStragglersDoneElsewhereCountOnce(t *testing.T) {
	t.Parallel()
	l := loopSetup(t, fast, 20)
	l.out.delivered = false
	id := l.batch(t, members{n: 60, key: `'k' || i`})
	l.release(t)
	l.pauseByFailures(t, id)
	l.resume(t, id)
	for i, d := range l.out.list()[5:] {
		if err := ledger.Finish(t.Context(), l.pool, ledger.Key{Environment: "production", Scope: "sync", Key: name("k", i+6)}, nil); err != nil {
			t.Fatal(err)
		}
		if _, _, ok, err := l.svc.Claim(t.Context(), d.ReplayID); ok || err != nil {
			t.Fatal(ok, err)
		}
	}
	if n := l.release(t); n != 10 {
		t.Fatalf("%d left as the canary", n)
	}
	for i, d := range l.out.list()[20:] {
		e := succeeded
		if i == 0 {
			e = failed422
		}
		l.record(t, d.ReplayID, e)
	}
	l.release(t)
	if s := l.state(t, id); s != "running" {
		t.Fatal(s)
	}
	if l.audited(t, "batch.canary_passed") != 1 {
		t.Fatal("the new canary didn't pass")
	}
}
