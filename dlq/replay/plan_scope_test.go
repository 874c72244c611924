package replay_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redrive-dlq/redrive/dlq/filter"
	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/dlq/replay"
	"github.com/redrive-dlq/redrive/rbac"
)

// TestPlanMakesABatchForEachType: up to 50, and one more is refused whole.
func TestPlanMakesABatchForEachType(t *testing.T) {
	t.Parallel()
	b := setup(t)
	production := replay.Selection{Filter: filter.Filter{Environments: []string{"production"}}}
	for i := range replay.MaxBatches {
		b.job(t, jobOpts{id: fmt.Sprint(i), jobType: fmt.Sprint("type_", i)})
	}
	ids, err := b.svc.Plan(t.Context(), b.oncall, production, "the test says so")
	if err != nil || len(ids) != replay.MaxBatches {
		t.Fatalf("%d batches, %v, want %d", len(ids), err, replay.MaxBatches)
	}
	b.job(t, jobOpts{id: "one more", jobType: "type_more"})
	if _, err := b.svc.Plan(t.Context(), b.oncall, production, "the test says so"); !problem.Is(err, problem.Invalid) {
		t.Errorf("51 types: %v, want it refused", err)
	}
	if n := b.count(t, `SELECT count(*) FROM redrive.batches`); n != replay.MaxBatches {
		t.Errorf("%d batches after the refusal", n)
	}
}

// TestPlanKeepsToTheScope plans as people who may see more than they may plan,
// or less than they select.
func TestPlanKeepsToTheScope(t *testing.T) {
	t.Parallel()
	b := setup(t)
	mail, card := b.job(t, jobOpts{id: "mail"}), b.job(t, jobOpts{id: "card", jobType: "charge_card", scope: "charge"})
	both := replay.Selection{IDs: []int64{mail, card, mail}}
	part := person(5, rbac.Grant{Role: rbac.Viewer}, rbac.Grant{Role: rbac.Operator, JobType: "send_welcome_email"})
	ids, err := b.svc.Plan(t.Context(), part, both, "the test says so")
	if err != nil || len(ids) != 2 {
		t.Fatalf("%v, %v, want two batches", ids, err)
	}
	for _, id := range ids {
		b.freeze(t, id)
	}
	for job, want := range map[int64]string{mail: replay.Eligible, card: replay.OutOfScope} {
		var got string
		if err := b.pool.QueryRow(t.Context(), `SELECT string_agg(verdict, ' ') FROM redrive.replays WHERE dead_job_id = $1`, job).Scan(&got); err != nil || got != want {
			t.Errorf("job %d: %s, %v, want %s", job, got, err, want)
		}
	}
	before := b.count(t, `SELECT count(*) FROM redrive.batches`)
	viewer := person(6, rbac.Grant{Role: rbac.Viewer})
	if _, err := b.svc.Plan(t.Context(), viewer, both, "the test says so"); !problem.Is(err, problem.Forbidden) {
		t.Errorf("a viewer: %v, want it forbidden", err)
	}
	elsewhere := person(7, rbac.Grant{Role: rbac.Viewer}, rbac.Grant{Role: rbac.Operator, JobType: "sync_contact"})
	if _, err := b.svc.Plan(t.Context(), elsewhere, both, "the test says so"); !problem.Is(err, problem.Forbidden) {
		t.Errorf("who may plan none of it: %v, want it forbidden", err)
	}
	narrow := person(8, rbac.Grant{Role: rbac.Operator, JobType: "send_welcome_email"})
	if _, err := b.svc.Plan(t.Context(), narrow, both, "the test says so"); !problem.Is(err, problem.Invalid) || !strings.Contains(err.Error(), "1 of the 2") {
		t.Errorf("rows that aren't to be seen: %v, want how many", err)
	}
	if n := b.count(t, `SELECT count(*) FROM redrive.batches`); n != before {
		t.Errorf("%d batches were made by refused plans", n-before)
	}
}

// TestPlanFixesAges: what was younger than an hour at the cut-off stays chosen.
func TestPlanFixesAges(t *testing.T) {
	t.Parallel()
	b := setup(t)
	inside := b.died(t, b.job(t, jobOpts{id: "inside"}), 59*time.Minute)
	b.died(t, b.job(t, jobOpts{id: "outside"}), 61*time.Minute)
	ids, err := b.svc.Plan(t.Context(), b.oncall, replay.Selection{Filter: filter.Filter{Newer: time.Hour}}, "the test says so")
	if err != nil || len(ids) != 1 {
		t.Fatal(ids, err)
	}
	b.svc.Now = func() time.Time { return time.Now().Add(30 * time.Minute) } // planned late
	b.freeze(t, ids[0])
	var members []int64
	var text string
	err = b.pool.QueryRow(t.Context(), `
		SELECT b.filter, array_agg(r.dead_job_id)
		FROM redrive.batches b
		JOIN redrive.replays r ON r.batch_id = b.id
		WHERE b.id = $1
		GROUP BY b.id`, ids[0]).Scan(&text, &members)
	if err != nil || len(members) != 1 || members[0] != inside {
		t.Errorf("members %v, %v, want %d", members, err, inside)
	}
	if f, err := filter.Parse(text); err != nil || f.Newer != 0 || f.From.IsZero() {
		t.Errorf("the batch keeps %q (%v), want a time", text, err)
	}
}

// TestPlanFailedTakesTheFailed plans again what failed, and nothing else.
func TestPlanFailedTakesTheFailed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	failed, fine := b.job(t, jobOpts{id: "failed"}), b.job(t, jobOpts{id: "fine"})
	first := b.planned(t, types("send_welcome_email"))
	if _, err := b.svc.PlanFailed(t.Context(), b.oncall, first, "the test says so"); !problem.Is(err, problem.Conflict) {
		t.Errorf("nothing failed: %v", err)
	}
	b.exec(t, `
		UPDATE redrive.replays
		SET state = 'ended', outcome = CASE dead_job_id WHEN $2 THEN 'failed' ELSE 'succeeded' END, outcome_at = now()
		WHERE batch_id = $1`, first, failed)
	b.exec(t, `UPDATE redrive.dead_jobs SET status = 'recovered' WHERE id = $1`, fine)
	ids, err := b.svc.PlanFailed(t.Context(), b.oncall, first, "the test says so")
	if err != nil || len(ids) != 1 {
		t.Fatal(ids, err)
	}
	b.freeze(t, ids[0])
	if n := b.count(t, `SELECT count(*) FROM redrive.replays WHERE batch_id = $1 AND dead_job_id = $2 AND verdict = 'eligible'`, ids[0], failed); n != 1 {
		t.Error("what failed isn't planned again")
	}
	if n := b.count(t, `SELECT planned FROM redrive.batches WHERE id = $1 AND parent_batch = $2`, ids[0], first); n != 1 {
		t.Errorf("%d members below the first batch, want 1", n)
	}
}

// TestRejudgeFollowsTheJobs judges members again after they changed: one died
// again, one is gone; who stands first and the hash follow.
func TestRejudgeFollowsTheJobs(t *testing.T) {
	t.Parallel()
	b := setup(t)
	head := b.job(t, jobOpts{id: "head", entity: "order:1"})
	second := b.job(t, jobOpts{id: "second", entity: "order:1"})
	gone := b.job(t, jobOpts{id: "gone"})
	batch := b.planned(t, types("send_welcome_email"))
	b.exec(t, `UPDATE redrive.dead_jobs SET generation = 2, category = 'invalid_input' WHERE id = $1`, head)
	b.exec(t, `DELETE FROM redrive.payloads WHERE dead_job_id = $1`, gone)
	b.exec(t, `DELETE FROM redrive.dead_jobs WHERE id = $1`, gone)
	if err := b.svc.Rejudge(t.Context(), b.oncall, batch); err != nil {
		t.Fatal(err)
	}
	b.freeze(t, batch)
	for job, want := range map[int64]string{head: replay.InvalidInput, second: replay.Eligible, gone: replay.JobGone} {
		if got := b.verdict(t, batch, job); got != want {
			t.Errorf("job %d: %s, want %s", job, got, want)
		}
	}
	if n := b.count(t, `SELECT count(*) FROM redrive.replays WHERE batch_id = $1 AND (behind OR (canary_rank IS NOT NULL) <> (dead_job_id = $2))`, batch, second); n != 0 {
		t.Errorf("%d stand wrong in line or in the canary", n)
	}
	if n := b.count(t, `SELECT generation FROM redrive.replays WHERE batch_id = $1 AND dead_job_id = $2`, batch, head); n != 2 {
		t.Errorf("generation %d was judged, want 2", n)
	}
	if b.hash(t, batch) != b.recomputed(t, batch) {
		t.Error("the hash doesn't follow")
	}
	b.exec(t, `DELETE FROM redrive.payloads`)
	b.exec(t, `DELETE FROM redrive.dead_jobs`) // a whole part is gone
	if err := b.svc.Rejudge(t.Context(), b.oncall, batch); err != nil {
		t.Fatal(err)
	}
	b.freeze(t, batch)
	if n := b.count(t, `SELECT count(*) FROM redrive.replays WHERE batch_id = $1 AND verdict = 'job_gone'`, batch); n != 3 {
		t.Errorf("%d are gone, want 3", n)
	}
}

// TestPlanResumes stops a plan of several parts between them, lets one fail,
// and has two workers finish it; the order of entities crosses the parts.
func TestPlanResumes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const n = 4500
	// Later ids are older: who stands first changes until the last part.
	b.many(t, "parts", n, `'k' || i`, `'order:' || i % 1500`, `now() - make_interval(secs => i)`)
	ids, err := b.svc.Plan(t.Context(), b.oncall, from("parts"), "the test says so")
	if err != nil {
		t.Fatal(err)
	}
	if done, err := b.svc.Do(t.Context(), replay.WorkPlan, ids[0]); err != nil || done {
		t.Fatal(done, err)
	}
	part := b.count(t, `SELECT planned FROM redrive.batches WHERE id = $1`, ids[0])
	b.exec(t, `ALTER TABLE redrive.replays ADD CONSTRAINT broken CHECK (state <> 'planned') NOT VALID`)
	if _, err := b.svc.Do(t.Context(), replay.WorkPlan, ids[0]); err == nil {
		t.Fatal("a broken store planned")
	}
	if m := b.count(t, `SELECT planned FROM redrive.batches WHERE id = $1 AND plan_problem <> ''`, ids[0]); m != part || part == 0 || part == n {
		t.Errorf("%d planned and a problem told, want %d of %d", m, part, n)
	}
	b.exec(t, `ALTER TABLE redrive.replays DROP CONSTRAINT broken`)
	other := *b.svc
	end := make(chan error, 1)
	go func() {
		for {
			if done, err := other.Do(t.Context(), replay.WorkPlan, ids[0]); err != nil || done {
				end <- err
				return
			}
		}
	}()
	b.freeze(t, ids[0])
	if err := <-end; err != nil {
		t.Fatal(err)
	}
	if m := b.count(t, `SELECT planned FROM redrive.batches WHERE id = $1 AND plan_problem = '' AND eligible = $2 AND plan_revision = 1`, ids[0], n); m != n {
		t.Errorf("%d planned, want %d", m, n)
	}
	if m := b.count(t, `
		SELECT count(*)
		FROM (SELECT behind, row_number() OVER (PARTITION BY entity ORDER BY order_at, id) > 1 AS want FROM redrive.replays WHERE batch_id = $1) x
		WHERE behind <> want`, ids[0]); m != 0 {
		t.Errorf("%d stand wrong in line", m)
	}
	if b.hash(t, ids[0]) != b.recomputed(t, ids[0]) {
		t.Error("the plan's hash isn't its members'")
	}
}
