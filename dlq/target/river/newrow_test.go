package river_test

import (
	"testing"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/redrive-dlq/redrive/dlq/ledger"
	"github.com/redrive-dlq/redrive/dlq/replay"
	target "github.com/redrive-dlq/redrive/dlq/target/river"
)

// TestANewRowIsTheJobsRow: the row that we made for a job whose own is gone
// waits longer than the deadline. Whatever is said of its effect, a second row
// beside it would do it twice.
func TestANewRowIsTheJobsRow(t *testing.T) {
	t.Parallel()
	for _, same := range []bool{true, false} {
		b := setup(t, same)
		id, job := b.dead(t, rowOpts{})
		b.exec(t, b.app, `DELETE FROM app.river_job WHERE id = $1`, id)
		leave := func() int64 {
			t.Helper()
			r := b.replay(t, job, 1)
			if !same {
				w := &target.HandOverWorker{Target: b.target, Service: b.svc}
				err := w.Work(t.Context(), &river.Job[target.HandOverArgs]{JobRow: &rivertype.JobRow{Attempt: 1}, Args: target.HandOverArgs{ReplayID: r.ReplayID}})
				if err != nil {
					t.Fatal(err)
				}
			}
			return r.ReplayID
		}
		rows := func() (n int) {
			t.Helper()
			if err := b.app.QueryRow(t.Context(), `SELECT count(*) FROM app.river_job`).Scan(&n); err != nil {
				t.Fatal(err)
			}
			return n
		}
		b.svc.Now = func() time.Time { return time.Now().Add(-time.Hour) }
		leave()
		b.svc.Now = nil
		if n, err := b.svc.Expire(t.Context()); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		for _, state := range []string{"available", "completed"} {
			b.exec(t, b.app, `UPDATE app.river_job SET state = $1::text::app.river_job_state, finalized_at = CASE WHEN $1 = 'completed' THEN now() END`, state)
			_ = ledger.Settle(t.Context(), b.pool, b.oncall, job, ledger.Settlement{Reason: "the provider has nothing"})
			second := leave()
			if _, outcome, code := b.end(t, second); outcome != replay.Skipped || code != "changed_at_source" || rows() != 1 {
				t.Fatalf("same %v, %s: %s %s, %d rows", same, state, outcome, code, rows())
			}
		}
		// Once it has died, too, another may follow.
		b.exec(t, b.app, `UPDATE app.river_job SET state = 'discarded'`)
		leave()
		if rows() != 2 {
			t.Fatalf("same %v: %d rows after the first died", same, rows())
		}
	}
}

// TestACrashInRiverLeavesTheEffectUnknown: before the source tells of the death,
// too, or the job could be ordered again in between.
func TestACrashInRiverLeavesTheEffectUnknown(t *testing.T) {
	t.Parallel()
	b := setup(t, true)
	for said, want := range map[string]string{"no such template": "open none", "Stuck job rescued by Rescuer": "open unknown"} {
		_, job := b.dead(t, rowOpts{})
		b.replay(t, job, 1)
		b.exec(t, b.app, `
			UPDATE app.river_job
			SET state = 'discarded', attempt = attempt + 1, finalized_at = now(),
			    errors = errors || jsonb_build_object('attempt', 4, 'at', now(), 'error', $1::text, 'trace', '')
			WHERE state = 'available'`, said)
		if err := b.watcher.Round(t.Context()); err != nil {
			t.Fatal(err)
		}
		var got string
		err := b.pool.QueryRow(t.Context(), `SELECT concat_ws(' ', status, effect) FROM redrive.dead_jobs WHERE id = $1`, job).Scan(&got)
		if err != nil || got != want {
			t.Errorf("%s: %s, %v, want %s", said, got, err, want)
		}
	}
}

// TestAnotherRiversRowIsntTouched: the catalogue sends a type to another River
// than it died in, where its id is somebody else's row; and ids that began anew.
func TestAnotherRiversRowIsntTouched(t *testing.T) {
	t.Parallel()
	b := setup(t, true)
	for name, change := range map[string]string{
		"another client": `UPDATE redrive.dead_jobs SET source_ref = source_ref || '{"client": "app-old"}' WHERE id = $1`,
		"another schema": `UPDATE redrive.dead_jobs SET source_ref = source_ref || '{"schema": "old"}' WHERE id = $1`,
		"another death":  `UPDATE redrive.dead_jobs SET source_ref = source_ref || '{"finalized_at": "2026-01-01T00:00:00.000000Z"}' WHERE id = $1`,
		"another kind":   `UPDATE app.river_job SET kind = 'other' WHERE id = (SELECT job_id::bigint FROM redrive.dead_jobs WHERE id = $1)`,
	} {
		id, job := b.dead(t, rowOpts{})
		b.exec(t, b.pool, change, job)
		before := b.row(t, id)
		r := b.replay(t, job, 1)
		state, outcome, code := b.end(t, r.ReplayID)
		if after := b.row(t, id); after != before {
			t.Errorf("%s: the row changed: %+v", name, after)
		}
		if name == "another death" {
			if outcome != replay.Skipped || code != "changed_at_source" {
				t.Errorf("%s: %s %s", name, outcome, code)
			}
		} else if state != "released" {
			t.Errorf("%s: %s %s %s, want a row of its own", name, state, outcome, code)
		}
	}
}
