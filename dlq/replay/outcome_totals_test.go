package replay_test

import (
	"fmt"
	"testing"

	"github.com/redrive-dlq/redrive/dlq"
	"github.com/redrive-dlq/redrive/dlq/board"
	"github.com/redrive-dlq/redrive/dlq/replay"
)

// TestTotalsAddUp gives random outcomes in random order and counts after each.
func TestTotalsAddUp(t *testing.T) {
	t.Parallel()
	l := loopSetup(t, fast, 100)
	typ, _ := l.cat.Type("sync")
	typ.Batch.StopAtFailurePct = 100
	batch := l.batch(t, members{n: 40, entity: `'e' || i % 25`})
	ends := []replay.End{succeeded, {Outcome: replay.AlreadyDone, Code: "worker"}, failed503, failed422,
		{Outcome: replay.Unconfirmed, Code: "deadline", EffectUnknown: true}, {Outcome: replay.Skipped, Code: "no"}, {Outcome: replay.Cancelled, Code: "cancelled_at_source"}}
	check := func() {
		t.Helper()
		b, err := board.BatchOf(t.Context(), l.pool, l.oncall, batch)
		if err != nil {
			t.Fatal(err)
		}
		sum := 0
		for _, n := range b.Tallies {
			sum += n
		}
		if sum != b.Planned || b.Ended() != l.count(t, `SELECT count(*) FROM redrive.replays WHERE outcome IS NOT NULL`) {
			t.Fatalf("tallies %v add up to %d of %d, %d ended", b.Tallies, sum, b.Planned, b.Ended())
		}
	}
	for i := 0; ; i++ {
		ids := l.outAll(t)
		if len(ids) == 0 {
			break
		}
		l.record(t, ids[i*7%len(ids)], ends[i%len(ends)])
		check()
		if i%9 == 0 {
			if _, err := dlq.FoldCounters(t.Context(), l.pool); err != nil {
				t.Fatal(err)
			}
			check()
		}
	}
	l.sweep(t)
	if s := l.state(t, batch); s != "done" {
		t.Errorf("%s, want done", s)
	}
	if n := l.count(t, `SELECT count(*) FROM redrive.dead_jobs WHERE status = 'replaying'`); n != 0 {
		t.Errorf("%d jobs are still replaying", n)
	}
}

// TestLaterOnesOfAnEntityAfterAFailure: a later change would rest on one that
// isn't there, unless the type says otherwise.
func TestLaterOnesOfAnEntityAfterAFailure(t *testing.T) {
	t.Parallel()
	for _, goOn := range []bool{false, true} {
		t.Run(fmt.Sprint("go on: ", goOn), func(t *testing.T) {
			t.Parallel()
			l := loopSetup(t, fast, 100)
			typ, _ := l.cat.Type("sync")
			typ.Batch.ContinueEntity = goOn
			batch := l.batch(t, members{n: 6, entity: `'e' || i % 2`})
			other := l.batch(t, members{n: 1, entity: `'e1'`})
			ids := l.outAll(t)
			if len(ids) != 2 {
				t.Fatalf("%d are out, want one of each entity", len(ids))
			}
			l.record(t, ids[0], failed503) // of e1
			l.record(t, ids[1], succeeded)
			skipped := l.count(t, `SELECT count(*) FROM redrive.replays WHERE batch_id = $1 AND outcome_code = 'predecessor_failed'`, batch)
			if want := map[bool]int{false: 2, true: 0}[goOn]; skipped != want {
				t.Errorf("%d skipped behind the failure, want %d", skipped, want)
			}
			if n := l.count(t, `SELECT count(*) FROM redrive.replays WHERE batch_id = $1 AND outcome IS NOT NULL`, other); n != 0 {
				t.Error("a failure of one batch ended a replay of another")
			}
			if n := l.count(t, `SELECT count(*) FROM redrive.replays r JOIN redrive.dead_jobs d ON d.id = r.dead_job_id WHERE r.outcome = 'skipped' AND d.status <> 'open'`); n != 0 {
				t.Errorf("%d skipped jobs aren't open", n)
			}
			for len(l.outAll(t)) > 0 {
				l.end(t, succeeded)
			}
			l.sweep(t)
			for _, id := range []int64{batch, other} {
				if s := l.state(t, id); s != "done" {
					t.Errorf("batch %d is %s, want done", id, s)
				}
			}
		})
	}
}
