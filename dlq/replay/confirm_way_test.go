package replay_test

import (
	"fmt"
	"testing"

	"github.com/redrive-dlq/redrive/dlq/filter"
	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/dlq/replay"
)

// The whole way of a batch, by the code that people and processes run.
func TestFromSelectionToReport(t *testing.T) {
	t.Parallel()
	b := ordersSetup(t)
	for i := range 12 {
		b.job(t, jobOpts{id: fmt.Sprint("m", i), key: fmt.Sprint("m", i), entity: fmt.Sprint("e", i%9)})
	}
	b.job(t, jobOpts{id: "bad", key: "bad", category: "invalid_input"})
	ids, err := b.svc.Plan(t.Context(), b.operator, replay.Selection{Filter: filter.Filter{Types: []string{"send_welcome_email"}}}, "the bug is fixed")
	if err != nil || len(ids) != 1 {
		t.Fatal(ids, err)
	}
	id := ids[0]
	b.do(t, replay.WorkPlan, id)
	o := b.reviewOrder(t, id)
	o.StartAfter, o.Canary = 0, 3
	if _, err := b.svc.Review(t.Context(), b.oncall, o); err != nil {
		t.Fatal(err)
	}
	page := b.page(t, b.second, id)
	if page.Phrase != "replay 12 send_welcome_email in production" {
		t.Fatal(page.Phrase)
	}
	if err := b.svc.Rejudge(t.Context(), b.operator, id); err != nil { // somebody looks again
		t.Fatal(err)
	}
	b.refused(t, "while it is judged again", problem.Conflict, "still being planned", func() error {
		_, err := b.svc.Confirm(t.Context(), b.second, page)
		return err
	})
	b.do(t, replay.WorkPlan, id)
	b.refused(t, "judged since the review", problem.Conflict, "isn't reviewed", func() error {
		_, err := b.svc.Confirm(t.Context(), b.second, page)
		return err
	})
	o.PlanHash = b.planHash(t, id)
	if _, err := b.svc.Review(t.Context(), b.oncall, o); err != nil {
		t.Fatal(err)
	}
	if state, err := b.svc.Confirm(t.Context(), b.second, b.page(t, b.second, id)); err != nil || state != "running" {
		t.Fatal(state, err)
	}
	b.do(t, replay.WorkStart, id)
	if n := b.release(t); n != 3 {
		t.Errorf("%d left before the canary was judged", n)
	}
	for range 50 {
		for _, r := range b.out(t) {
			if _, err := b.svc.Record(t.Context(), r, replay.End{Outcome: replay.Succeeded}); err != nil {
				t.Fatal(err)
			}
		}
		b.release(t)
		if b.state(t, id) == "done" {
			break
		}
	}
	if n := b.count(t, `SELECT count(*) FROM redrive.replays WHERE outcome = 'succeeded'`); n != 12 || b.state(t, id) != "done" {
		t.Errorf("%d succeeded, the batch is %s", n, b.state(t, id))
	}
	n := b.count(t, `
		SELECT count(*)
		FROM redrive.audit_entries a
		JOIN redrive.batches b ON b.order_entry = a.id
		WHERE a.actor = 'oncall2@demo.test' AND a.body::jsonb #>> '{details,plan_hash}' = b.plan_hash
		  AND (a.body::jsonb #>> '{details,eligible}')::integer = 12`)
	if n != 1 {
		t.Error("the entry that ordered it doesn't name the plan")
	}
}

// out are the replays that left and have no outcome.
func (b *ordersBundle) out(t *testing.T) (ids []int64) {
	t.Helper()
	err := b.pool.QueryRow(t.Context(), `SELECT coalesce(array_agg(id ORDER BY id), '{}') FROM redrive.replays WHERE state = 'released'`).Scan(&ids)
	if err != nil {
		t.Fatal(err)
	}
	return ids
}
