package replay_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
)

// pauseByFailures lets a batch stop by itself: five of what is out fail.
func (l *loop) pauseByFailures(t *testing.T, batch int64) {
	t.Helper()
	rows, err := l.pool.Query(t.Context(), `SELECT id FROM redrive.replays WHERE batch_id = $1 AND state = 'released' AND entity = '' ORDER BY id LIMIT 5`, batch)
	if err != nil {
		t.Fatal(err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		l.record(t, id, failed422)
	}
	l.release(t)
	if s := l.state(t, batch); s != "paused failures 5 of 5 failed (limit 20 %)" {
		t.Fatal(s)
	}
}

func (l *loop) resume(t *testing.T, batch int64) {
	t.Helper()
	if err := l.svc.Resume(t.Context(), l.oncall, batch, "fixed since"); err != nil {
		t.Fatal(err)
	}
}

// TestSkippedCanaryOfAResumeIsReplaced: a batch that was confirmed without a
// canary has one after it stopped; when all of it is skipped, another follows.
func TestSkippedCanaryOfAResumeIsReplaced(t *testing.T) {
	t.Parallel()
	l := loopSetup(t, fast, 20)
	id := l.batch(t, members{n: 60})
	l.release(t)
	l.pauseByFailures(t, id)
	l.resume(t, id)
	l.end(t, succeeded) // released before
	l.exec(t, `
		UPDATE redrive.dead_jobs SET generation = 2, status = 'open'
		WHERE id IN (SELECT dead_job_id FROM redrive.replays WHERE batch_id = $1 AND wave = 0)`, id)
	for range 3 {
		l.release(t)
	}
	if n := l.count(t, `SELECT count(*) FROM redrive.replays WHERE outcome_code = 'changed'`); n != 10 {
		t.Fatalf("%d of the canary were skipped", n)
	}
	if n := len(l.out.list()) - 20; n != 10 {
		t.Fatalf("%d left, want another canary of 10", n)
	}
	l.finish(t, id)
}

// TestNoCanaryYetHoldsTheRestBack: where all that is left of a stopped batch
// waits behind others, its canary is chosen as soon as they end.
func TestNoCanaryYetHoldsTheRestBack(t *testing.T) {
	t.Parallel()
	l := loopSetup(t, fast, 1000)
	other := l.batch(t, members{n: 30, entity: `'e' || i`})
	l.release(t)
	id := l.batch(t, members{n: 35, entity: `CASE WHEN i > 5 THEN 'e' || i - 5 ELSE '' END`})
	l.release(t)
	l.pauseByFailures(t, id)
	l.resume(t, id)
	l.end(t, succeeded) // of the other
	before := len(l.out.list())
	for range 3 {
		l.release(t)
	}
	if n := len(l.out.list()) - before; n != 10 {
		t.Fatalf("%d left after the stop, want a canary of 10", n)
	}
	l.finish(t, id, other)
}

// TestCrossedBatchesEndAfterTheirStops: each holds an entity that the canary of
// the other waits for, by a replay that was taken back when it stopped.
func TestCrossedBatchesEndAfterTheirStops(t *testing.T) {
	t.Parallel()
	l := loopSetup(t, fast, 1000)
	l.out.delivered = false
	typ, _ := l.cat.Type("sync")
	typ.Batch.Canary = 1
	one := l.batch(t, members{n: 7, entity: `CASE i WHEN 1 THEN 'two' WHEN 7 THEN 'one' ELSE '' END`})
	two := l.batch(t, members{n: 7, entity: `CASE i WHEN 1 THEN 'one' WHEN 7 THEN 'two' ELSE '' END`})
	// The last of each comes later, and is the plan's choice for a canary.
	l.exec(t, `UPDATE redrive.replays SET due_at = due_at + interval '1 day' WHERE canary_rank = 7`)
	l.exec(t, `UPDATE redrive.replays SET canary_rank = CASE canary_rank WHEN 7 THEN 1 END`)
	l.release(t)
	for _, id := range []int64{one, two} {
		l.pauseByFailures(t, id)
	}
	for _, d := range l.out.list() {
		if d.Entity != "" {
			if _, _, ok, err := l.svc.Claim(t.Context(), d.ReplayID); ok || err != nil {
				t.Fatalf("delivered after its batch stopped: %v", err)
			}
		}
	}
	l.exec(t, `UPDATE redrive.replays SET due_at = due_at - interval '1 day' WHERE canary_rank = 1`)
	l.resume(t, one)
	l.resume(t, two)
	l.finish(t, one, two)
}
