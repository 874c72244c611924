package replay_test

import (
	"fmt"
	"testing"
	"testing/fstest"

	"github.com/redrive-dlq/redrive/dlq/jobtype"
	"github.com/redrive-dlq/redrive/dlq/replay"
)

// TestStartAsksChecksAndSchemasAgain: between the plan and the start a customer
// is deleted and the schema becomes stricter; whoever that concerns doesn't
// leave, and the others do.
func TestStartAsksChecksAndSchemasAgain(t *testing.T) {
	t.Parallel()
	b, app := plans(t)
	job := func(id, payload string) int64 {
		return b.with(t, b.job(t, jobOpts{id: id, jobType: "checked"}), payload)
	}
	stays := job("stays", `{"user_id": 1, "plan": "a"}`)
	deleted := job("deleted", `{"user_id": 2, "plan": "a"}`)
	broken := job("broken", `{"user_id": 1}`)
	batch := b.planned(t, types("checked"))
	if n := b.count(t, `SELECT eligible FROM redrive.batches WHERE id = $1`, batch); n != 3 {
		t.Fatalf("%d of 3 are eligible", n)
	}
	b.confirmNow(t, batch)

	if _, err := app.Exec(t.Context(), `DELETE FROM customers WHERE id = 2`); err != nil {
		t.Fatal(err)
	}
	stricter, err := jobtype.Load(fstest.MapFS{"types.yaml": {Data: []byte(planCatalogue)},
		"checked.json": {Data: []byte(`{"type": "object", "required": ["user_id", "plan"]}`)}}, "types.yaml")
	if err != nil {
		t.Fatal(err)
	}
	b.svc.Types = func() *jobtype.Catalogue { return stricter }

	work(t, b.svc, replay.WorkStart, batch)
	for id, want := range map[int64]string{stays: "pending", deleted: "skipped " + replay.DependencyMissing, broken: "skipped " + replay.SchemaViolation} {
		var got string
		err := b.pool.QueryRow(t.Context(), `
			SELECT CASE WHEN outcome IS NULL THEN state ELSE outcome || ' ' || outcome_code END
			FROM redrive.replays
			WHERE batch_id = $1 AND dead_job_id = $2`, batch, id).Scan(&got)
		if err != nil || got != want {
			t.Errorf("job %d: %q, want %q (%v)", id, got, want, err)
		}
	}
	for _, id := range []int64{deleted, broken} {
		if n := b.count(t, `SELECT count(*) FROM redrive.dead_jobs WHERE id = $1 AND status = 'open'`, id); n != 1 {
			t.Errorf("job %d isn't open any more", id)
		}
	}
}

// TestStartGivesChecksTheirTime: checks that were quick enough for the plan are
// for the start, too, which takes more jobs at once.
func TestStartGivesChecksTheirTime(t *testing.T) {
	t.Parallel()
	b, _ := plans(t)
	b.checks(t, `select 1 from customers, pg_sleep(0.03) where id = $1`)
	const jobs = 300 // nine seconds of checks: more than a part may take
	for i := range jobs {
		b.with(t, b.job(t, jobOpts{id: fmt.Sprint(i), jobType: "checked"}), `{"user_id": 1}`)
	}
	batch := b.planned(t, types("checked"))
	if n := b.count(t, `SELECT eligible FROM redrive.batches WHERE id = $1`, batch); n != jobs {
		t.Fatalf("%d of %d are eligible", n, jobs)
	}
	b.confirmNow(t, batch)
	for done := false; !done; {
		var err error
		if done, err = b.svc.Do(t.Context(), replay.WorkStart, batch); err != nil {
			t.Fatal(err)
		}
	}
	if n := b.count(t, `SELECT count(*) FROM redrive.replays WHERE state = 'pending'`); n != jobs {
		t.Errorf("%d of %d are taken", n, jobs)
	}
}

// confirmNow reviews a planned batch and confirms it for now.
func (b *bundle) confirmNow(t *testing.T, batch int64) {
	t.Helper()
	var hash string
	if err := b.pool.QueryRow(t.Context(), `SELECT plan_hash FROM redrive.batches WHERE id = $1`, batch).Scan(&hash); err != nil {
		t.Fatal(err)
	}
	if _, err := b.svc.Review(t.Context(), b.oncall, replay.ReviewOrder{Batch: batch, PlanHash: hash, Reason: "the bug is fixed"}); err != nil {
		t.Fatal(err)
	}
	c, err := b.svc.Confirming(t.Context(), b.oncall, batch)
	if err != nil {
		t.Fatal(err)
	}
	o := replay.ConfirmOrder{Batch: batch, PlanHash: c.PlanHash, ReviewHash: c.ReviewHash, Phrase: c.Phrase, Nonce: c.Nonce}
	if state, err := b.svc.Confirm(t.Context(), b.oncall, o); err != nil || state != "running" {
		t.Fatal(fmt.Sprint(state, err))
	}
}
