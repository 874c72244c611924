package replay_test

import (
	"context"
	"sync"
	"testing"

	"github.com/redrive-dlq/redrive/dlq/ledger"
	"github.com/redrive-dlq/redrive/dlq/replay"
)

// TestStartTakesTheCanaryFirst, and each eligible job once, with two workers at
// it and one that dies in between.
func TestStartTakesTheCanaryFirst(t *testing.T) {
	t.Parallel()
	l := loopSetup(t, fast, 10_000)
	id := l.batch(t, members{n: 1200, state: "planned", canary: 7, entity: `'order:' || i % 300`})
	if done, err := l.svc.Do(t.Context(), replay.WorkStart, id); done || err != nil {
		t.Fatal(done, err)
	}
	if n := l.count(t, `SELECT count(*) FROM redrive.replays WHERE state = 'pending' AND wave = 0`); n != 7 {
		t.Fatalf("%d of the canary are taken first", n)
	}
	if n := l.release(t); n != 7 { // the release begins with it
		t.Fatalf("%d left", n)
	}
	l.end(t, succeeded)
	if l.release(t); l.state(t, id) != "running" {
		t.Fatal("a batch ended before its jobs were taken: ", l.state(t, id))
	}
	ctx, kill := context.WithCancel(t.Context())
	if _, err := l.svc.Do(ctx, replay.WorkStart, id); err != nil {
		t.Fatal(err)
	}
	kill()
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for done := false; !done; {
				var err error
				if done, err = l.svc.Do(t.Context(), replay.WorkStart, id); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	if n := l.count(t, `SELECT count(*) FROM redrive.replays WHERE state = 'planned'`); n != 0 {
		t.Fatalf("%d were never taken", n)
	}
	if n := l.count(t, `SELECT count(*) FROM redrive.dead_jobs WHERE status = 'replaying'`); n != 1193 {
		t.Fatalf("%d jobs are replaying", n)
	}
	l.finish(t, id)
	l.inOrder(t)
	if n := len(l.out.list()); n != 1200 {
		t.Fatalf("%d left", n)
	}
}

// TestStartJudgesAgain: what changed since the confirmation isn't taken along,
// and what another replay holds isn't touched.
func TestStartJudgesAgain(t *testing.T) {
	t.Parallel()
	l := loopSetup(t, fast, 10_000)
	id := l.batch(t, members{n: 6, state: "planned", key: `'k' || i`})
	job := func(i int) int64 {
		return int64(l.count(t, `SELECT dead_job_id FROM redrive.replays WHERE batch_id = $1 ORDER BY id OFFSET $2 LIMIT 1`, id, i))
	}
	jobs := make([]int64, 6)
	for i := range jobs {
		jobs[i] = job(i)
	}
	l.exec(t, `UPDATE redrive.dead_jobs SET generation = 2 WHERE id = $1`, jobs[0])
	l.exec(t, `UPDATE redrive.dead_jobs SET payload_version = 2 WHERE id = $1`, jobs[1])
	if err := ledger.Finish(t.Context(), l.pool, ledger.Key{Environment: "production", Scope: "sync", Key: "k3"}, []byte(`{"id": "r1"}`)); err != nil {
		t.Fatal(err)
	}
	l.exec(t, `UPDATE redrive.dead_jobs SET status = 'replaying' WHERE id = $1`, jobs[3]) // by another replay
	l.exec(t, `DELETE FROM redrive.dead_jobs WHERE id = $1`, jobs[4])
	work(t, l.svc, replay.WorkStart, id)
	want := []string{"changed", "changed", replay.KeyDone, "changed", "job_gone", ""}
	for i, code := range want {
		var got string
		err := l.pool.QueryRow(t.Context(), `SELECT outcome_code FROM redrive.replays WHERE batch_id = $1 AND dead_job_id = $2`, id, jobs[i]).Scan(&got)
		if err != nil || got != code {
			t.Errorf("job %d: %q, want %q (%v)", i, got, code, err)
		}
	}
	if s, _, _ := l.status(t, jobs[3]); s != "replaying" {
		t.Errorf("the other replay's job is %s", s)
	}
	if n := l.audited(t, "replay.skipped"); n != 4 {
		t.Errorf("%d entries of what was left out", n)
	}
	l.finish(t, id)
	if n := len(l.out.list()); n != 1 {
		t.Fatalf("%d left", n)
	}
}

// TestStartWaitsForHeldJobs: a job that a worker holds is taken later; it stops
// no other.
func TestStartWaitsForHeldJobs(t *testing.T) {
	t.Parallel()
	l := loopSetup(t, fast, 10_000)
	id := l.batch(t, members{n: 20, state: "planned"})
	tx, err := l.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }()
	if _, err := tx.Exec(t.Context(), `SELECT FROM redrive.dead_jobs WHERE id = (SELECT min(id) FROM redrive.dead_jobs) FOR UPDATE`); err != nil {
		t.Fatal(err)
	}
	until(t, "the others are taken", func() bool {
		if done, err := l.svc.Do(t.Context(), replay.WorkStart, id); done || err != nil {
			t.Fatal(done, err)
		}
		return l.count(t, `SELECT count(*) FROM redrive.replays WHERE state = 'pending'`) == 19
	})
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	work(t, l.svc, replay.WorkStart, id)
	if n := l.count(t, `SELECT count(*) FROM redrive.replays WHERE state = 'pending'`); n != 20 {
		t.Fatalf("%d are taken", n)
	}
}

// TestCancelMany: a batch that is half run is cancelled; its jobs are open again,
// what it held is free, and what is out ends by its outcome.
func TestCancelMany(t *testing.T) {
	t.Parallel()
	l := loopSetup(t, fast, 300)
	id := l.batch(t, members{n: 2500, entity: `'order:' || i % 500`})
	other := l.batch(t, members{n: 500, entity: `'order:' || i % 500`})
	l.release(t)
	l.end(t, succeeded)
	l.release(t)
	stops, out, err := l.svc.Cancel(t.Context(), l.oncall, id, "not any more")
	if err != nil {
		t.Fatal(err)
	}
	mine := l.count(t, `SELECT count(*) FROM redrive.replays WHERE batch_id = $1 AND state = 'released'`, id)
	ended := l.count(t, `SELECT count(*) FROM redrive.replays WHERE batch_id = $1 AND state = 'ended'`, id)
	if int(out) != mine || int(stops) != 2500-mine-ended {
		t.Fatalf("stops %d, out %d; %d are out and %d ended", stops, out, mine, ended)
	}
	work(t, l.svc, replay.WorkCancel, id)
	if n := l.count(t, `SELECT count(*) FROM redrive.replays WHERE batch_id = $1 AND outcome = 'cancelled'`, id); n != int(stops) {
		t.Fatalf("%d were cancelled", n)
	}
	if s := l.state(t, id); out > 0 && s != "cancelling" {
		t.Fatalf("%s while %d are out", s, out)
	}
	l.finish(t, other)
	until(t, "it is cancelled", func() bool {
		l.end(t, succeeded)
		if _, err := l.svc.EndBatches(t.Context()); err != nil {
			t.Fatal(err)
		}
		return l.state(t, id) == "cancelled"
	})
	if n := l.count(t, `SELECT count(*) FROM redrive.dead_jobs WHERE status = 'replaying'`); n != 0 {
		t.Fatalf("%d jobs stuck as replaying", n)
	}
	if n := l.count(t, `SELECT count(*) FROM redrive.runs`); n != 0 {
		t.Fatalf("%d runs are kept", n)
	}
}

// TestCancelBeforeTheStart: a scheduled batch whose jobs aren't taken yet takes
// none.
func TestCancelBeforeTheStart(t *testing.T) {
	t.Parallel()
	l := loopSetup(t, fast, 300)
	id := l.batch(t, members{n: 700, state: "planned"})
	if _, err := l.svc.Do(t.Context(), replay.WorkStart, id); err != nil {
		t.Fatal(err)
	}
	if stops, _, err := l.svc.Cancel(t.Context(), l.oncall, id, "not any more"); stops != 700 || err != nil {
		t.Fatal(stops, err)
	}
	work(t, l.svc, replay.WorkStart, id) // two works cross
	work(t, l.svc, replay.WorkCancel, id)
	if s := l.state(t, id); s != "cancelled" {
		t.Fatal(s)
	}
	if n := l.count(t, `SELECT count(*) FROM redrive.dead_jobs WHERE status = 'open'`); n != 700 {
		t.Fatalf("%d jobs are open", n)
	}
	if n := l.count(t, `SELECT count(*) FROM redrive.replays WHERE outcome = 'cancelled'`); n != 700 {
		t.Fatalf("%d replays cancelled", n)
	}
}

// TestCancelledMeansAllOfIt: a batch that is cancelled while its jobs are being
// taken isn't called cancelled before those that weren't taken yet have ended.
func TestCancelledMeansAllOfIt(t *testing.T) {
	t.Parallel()
	l := loopSetup(t, fast, 300)
	id := l.batch(t, members{n: 700, state: "planned"})
	if _, err := l.svc.Do(t.Context(), replay.WorkStart, id); err != nil { // a part of it
		t.Fatal(err)
	}
	if stops, _, err := l.svc.Cancel(t.Context(), l.oncall, id, "not any more"); stops != 700 || err != nil {
		t.Fatal(stops, err)
	}
	if done, err := l.svc.Do(t.Context(), replay.WorkCancel, id); done || err != nil { // what was taken
		t.Fatal(done, err)
	}
	if _, err := l.svc.EndBatches(t.Context()); err != nil {
		t.Fatal(err)
	}
	left := l.count(t, `SELECT count(*) FROM redrive.replays WHERE state <> 'ended'`)
	if s := l.state(t, id); left == 0 || s != "cancelling" {
		t.Errorf("%s while %d have not ended", s, left)
	}
	work(t, l.svc, replay.WorkCancel, id)
	left = l.count(t, `SELECT count(*) FROM redrive.replays WHERE outcome IS DISTINCT FROM 'cancelled'`)
	if s := l.state(t, id); left != 0 || s != "cancelled" {
		t.Errorf("%s, and %d are not", s, left)
	}
}
