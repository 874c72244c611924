package replay_test

import (
	"strings"
	"testing"
	"time"

	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/dlq/replay"
	"github.com/redrive-dlq/redrive/rbac"
)

const coolingCatalogue = "cooling_off: [production]" + ordersCatalogue

// now reviews a batch that shall start at once.
func (b *ordersBundle) now(t *testing.T, id int64) {
	t.Helper()
	o := b.reviewOrder(t, id)
	o.StartAfter = 0
	if _, err := b.svc.Review(t.Context(), b.oncall, o); err != nil {
		t.Fatal(err)
	}
}

// Where the catalogue says so, half an hour stands in for the second person: not
// sooner, said in the log, and everybody who would be asked may still say no.
func TestCoolingOffStandsInForTheSecondPerson(t *testing.T) {
	t.Parallel()
	b := ordersSetup(t)
	b.declare(t, coolingCatalogue)
	id := b.planned(t, "send_welcome_email", 1001)
	b.now(t, id)
	c, err := b.svc.Confirming(t.Context(), b.oncall, id)
	if err != nil || !c.CoolsOff || c.NeedsApproval == "" {
		t.Fatalf("the page says %+v, %v", c, err)
	}
	if state, err := b.svc.Confirm(t.Context(), b.oncall, b.page(t, b.oncall, id)); err != nil || state != "scheduled" {
		t.Fatalf("%s, %v", state, err)
	}
	n := b.count(t, `
		SELECT count(*)
		FROM redrive.batches b
		JOIN redrive.runs u ON u.batch_id = b.id
		JOIN redrive.audit_entries a ON a.id = b.order_entry AND a.action = 'batch.confirm'
		WHERE b.id = $1 AND b.due_at = $2 AND u.due_at = $2 AND b.needs_approval LIKE 'More than 1,000%' AND b.approved_by = '' AND b.approve_until IS NULL
		  AND a.body::jsonb #>> '{details,no_second_person}' = b.needs_approval AND a.body::jsonb #>> '{details,needs_approval}' IS NULL`,
		id, b.clock.Add(30*time.Minute))
	if n != 1 {
		t.Error("batch, run and log don't say that it waits instead of a second person")
	}
	b.refused(t, "an approver elsewhere", problem.NotFound, "no batch", func() error {
		_, _, err := b.svc.Cancel(t.Context(), principal(8, rbac.Approver, "staging"), id, "not this one")
		return err
	})
	if _, _, err := b.svc.Cancel(t.Context(), b.approver, id, "not this one"); err != nil {
		t.Errorf("who would have been asked can't say no: %v", err)
	}
	late := b.planned(t, "send_welcome_email", 1001)
	o := b.reviewOrder(t, late)
	o.StartAt = b.clock.Add(2 * time.Hour)
	if _, err := b.svc.Review(t.Context(), b.oncall, o); err != nil {
		t.Fatal(err)
	}
	if _, err := b.svc.Confirm(t.Context(), b.oncall, b.page(t, b.oncall, late)); err != nil {
		t.Fatal(err)
	}
	if n := b.count(t, `SELECT count(*) FROM redrive.batches WHERE id = $1 AND due_at = $2`, late, o.StartAt); n != 1 {
		t.Error("a start later than the wait was moved")
	}
}

func TestCoolingOffIsNeverTheDefaultAndNeverForMoney(t *testing.T) {
	t.Parallel()
	b := ordersSetup(t)
	if state := b.confirmed(t, b.planned(t, "send_welcome_email", 1001)); state != "waiting" {
		t.Errorf("where nobody chose it: %s", state)
	}
	b.declare(t, strings.Replace(coolingCatalogue, "[production]", "[staging]", 1))
	if state := b.confirmed(t, b.planned(t, "send_welcome_email", 1001)); state != "waiting" {
		t.Errorf("where another environment chose it: %s", state)
	}
	b.declare(t, coolingCatalogue)
	if state := b.confirmed(t, b.planned(t, "charge_card", 3)); state != "waiting" {
		t.Errorf("money: %s", state)
	}
	few := b.planned(t, "send_welcome_email", 2)
	if _, err := b.svc.Review(t.Context(), b.second, b.reviewOrder(t, few)); err != nil {
		t.Fatal(err)
	}
	if _, err := b.svc.Confirm(t.Context(), b.second, b.page(t, b.second, few)); err != nil {
		t.Fatal(err)
	}
	if n := b.count(t, `SELECT count(*) FROM redrive.batches WHERE id = $1 AND due_at = $2 AND needs_approval = ''`, few, b.clock.Add(5*time.Minute)); n != 1 {
		t.Error("what needs no second person waits for nothing")
	}
}

// A stricter catalogue counts at once: what waited instead of a second person
// doesn't leave without one any more.
func TestCoolingOffTakenBack(t *testing.T) {
	t.Parallel()
	b := ordersSetup(t)
	b.declare(t, strings.Replace(coolingCatalogue, "approval_above: 1000", "approval_above: 1", 1))
	id := b.planned(t, "send_welcome_email", 2)
	b.now(t, id)
	if _, err := b.svc.Confirm(t.Context(), b.oncall, b.page(t, b.oncall, id)); err != nil {
		t.Fatal(err)
	}
	b.do(t, replay.WorkStart, id)
	b.clock = b.clock.Add(30*time.Minute - time.Second)
	if n := b.release(t); n != 0 {
		t.Fatalf("%d left before the half hour", n)
	}
	b.declare(t, ordersCatalogue)
	b.clock = b.clock.Add(time.Second)
	if n := b.release(t); n != 0 || b.state(t, id) != "paused" {
		t.Fatalf("%d left, it is %s", n, b.state(t, id))
	}
	b.refused(t, "resumed", problem.Conflict, "no longer stands in", func() error { return b.svc.Resume(t.Context(), b.second, id, "go on") })
	b.declare(t, coolingCatalogue)
	if err := b.svc.Resume(t.Context(), b.second, id, "it was a slip"); err != nil {
		t.Fatal(err)
	}
	if n := b.release(t); n != 2 {
		t.Errorf("%d left after it was put back, want 2", n)
	}
}
