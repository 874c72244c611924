package replay_test

import (
	"context"
	"testing"

	"github.com/redrive-dlq/redrive/dlq/replay"
)

// startPart does one part of a start.
func (l *loop) startPart(t *testing.T, batch int64) {
	t.Helper()
	if _, err := l.svc.Do(t.Context(), replay.WorkStart, batch); err != nil {
		t.Fatal(err)
	}
}

// TestFailureWhileTheRestIsTaken: what comes after a failure in its entity is
// skipped, too, when its job wasn't taken yet, or just is.
func TestFailureWhileTheRestIsTaken(t *testing.T) {
	t.Parallel()
	for _, taking := range []bool{false, true} {
		t.Run(name("taking: ", taking), func(t *testing.T) {
			t.Parallel()
			l := loopSetup(t, fast, 1000)
			typ, _ := l.cat.Type("sync")
			typ.Batch.StopAtFailurePct = 100
			id := l.batch(t, members{n: 20, state: "planned", canary: 1, entity: `CASE WHEN i IN (1, 20) THEN 'e' ELSE '' END`})
			l.startPart(t, id) // the canary
			if n := l.release(t); n != 1 {
				t.Fatalf("%d left as the canary", n)
			}
			first := l.out.list()[0].ReplayID
			tx, err := l.pool.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = tx.Rollback(context.Background()) }()
			if taking {
				_, err := tx.Exec(t.Context(), `
					WITH r AS (
						UPDATE redrive.replays SET state = 'pending'
						WHERE id = (SELECT max(id) FROM redrive.replays)
						RETURNING dead_job_id)
					UPDATE redrive.dead_jobs d SET status = 'replaying' FROM r WHERE d.id = r.dead_job_id`)
				if err != nil {
					t.Fatal(err)
				}
			}
			done := make(chan error, 1)
			go func() {
				_, err := l.svc.Record(context.Background(), first, failed422)
				done <- err
			}()
			if taking {
				l.awaitWaiting(t)
			}
			if err := tx.Commit(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			work(t, l.svc, replay.WorkStart, id)
			l.finish(t, id)
			if n := l.count(t, `
				SELECT count(*) FROM redrive.replays r JOIN redrive.dead_jobs d ON d.id = r.dead_job_id
				WHERE r.entity = 'e' AND r.outcome_code = 'predecessor_failed' AND d.status = 'open'`); n != 1 {
				t.Fatalf("%d were skipped behind the failure, want the one", n)
			}
			if n := l.count(t, `SELECT count(*) FROM redrive.dead_jobs WHERE status = 'replaying'`); n != 0 {
				t.Fatalf("%d jobs stuck", n)
			}
		})
	}
}

// TestOrderWhileJobsAreTaken: the older one of an entity isn't taken yet, since a
// worker holds its job; the newer one must not leave before it, whoever ends.
func TestOrderWhileJobsAreTaken(t *testing.T) {
	t.Parallel()
	l := loopSetup(t, fast, 1000)
	other := l.batch(t, members{n: 1, entity: `'e'`})
	l.release(t)
	id := l.batch(t, members{n: 2, state: "planned", entity: `'e'`})
	tx, err := l.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }()
	_, err = tx.Exec(t.Context(), `
		SELECT FROM redrive.dead_jobs
		WHERE id = (SELECT dead_job_id FROM redrive.replays WHERE batch_id = $1 AND NOT behind)
		FOR UPDATE`, id)
	if err != nil {
		t.Fatal(err)
	}
	l.startPart(t, id)
	l.end(t, succeeded) // of the other batch
	for range 2 {
		if _, err := l.svc.Unblock(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := l.release(t); n != 0 {
			t.Fatalf("%d left before an older one of their entity", n)
		}
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	work(t, l.svc, replay.WorkStart, id)
	l.finish(t, id, other)
	l.inOrder(t)
}

// TestOneReplayWhenTwoOrderAndTheDeathIsToldLate: a replay of the job failed
// after the plan, and its source hasn't told of that death yet; the second batch
// of it doesn't run it again.
func TestOneReplayWhenTwoOrderAndTheDeathIsToldLate(t *testing.T) {
	t.Parallel()
	l := loopSetup(t, fast, 1000)
	typ, _ := l.cat.Type("sync")
	typ.Batch.StopAtFailurePct = 100
	one := l.batch(t, members{n: 51, state: "planned"})
	two := l.batch(t, members{n: 51, state: "planned"})
	l.exec(t, `
		UPDATE redrive.replays b
		SET dead_job_id = a.dead_job_id, job_id = a.job_id
		FROM redrive.replays a
		WHERE a.batch_id = $1 AND b.batch_id = $2 AND a.canary_rank = b.canary_rank`, one, two)
	work(t, l.svc, replay.WorkStart, one)
	l.release(t)
	l.end(t, replay.End{Outcome: replay.Failed, Code: "discarded", Category: "transient"})
	work(t, l.svc, replay.WorkStart, two)
	l.finish(t, one, two)
	if n := len(l.out.list()); n != 51 {
		t.Fatalf("%d replays of 51 jobs", n)
	}
	if n := l.count(t, `SELECT count(*) FROM redrive.replays WHERE batch_id = $1 AND outcome_code = 'changed'`, two); n != 51 {
		t.Fatalf("%d of the second batch are left out", n)
	}
	// A plan made after the failure takes them.
	three := l.batch(t, members{n: 51, state: "planned"})
	l.exec(t, `
		UPDATE redrive.replays b
		SET dead_job_id = a.dead_job_id, job_id = a.job_id
		FROM redrive.replays a
		WHERE a.batch_id = $1 AND b.batch_id = $2 AND a.canary_rank = b.canary_rank`, one, three)
	work(t, l.svc, replay.WorkStart, three)
	l.finish(t, three)
	if n := len(l.out.list()); n != 102 {
		t.Fatalf("%d replays after another plan", n)
	}
}
