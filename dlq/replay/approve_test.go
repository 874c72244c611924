package replay_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/dlq/replay"
	"github.com/redrive-dlq/redrive/rbac"
)

func TestApproveOrders(t *testing.T) {
	t.Parallel()
	b := ordersSetup(t)
	id := b.planned(t, "charge_card", 3)
	if state := b.confirmed(t, id); state != "waiting" {
		t.Fatalf("money is %s after one person", state)
	}
	if len(b.work) != 0 || b.count(t, `SELECT count(*) FROM redrive.runs`) != 0 {
		t.Fatal("it began before the second person")
	}
	until := b.clock.Add(24 * time.Hour)
	if n := b.count(t, `SELECT count(*) FROM redrive.batches WHERE needs_approval LIKE '%money%' AND approve_until = $1 AND order_entry IS NULL`, until); n != 1 {
		t.Error("it doesn't say why and until when it waits")
	}
	b.clock = b.clock.Add(23 * time.Hour) // the plan's age counts no more
	c, err := b.svc.Confirming(t.Context(), b.approver, id)
	if err != nil || c.Risk != "may move money 3 times (charges a card)" || c.NeedsApproval == "" {
		t.Fatalf("the second person sees %+v, %v", c, err)
	}
	state, err := b.svc.Approve(t.Context(), b.approver, b.page(t, b.approver, id))
	if err != nil || state != "scheduled" {
		t.Fatalf("%s, %v", state, err)
	}
	n := b.count(t, `
		SELECT count(*)
		FROM redrive.batches b
		JOIN redrive.runs u ON u.batch_id = b.id
		JOIN redrive.audit_entries a ON a.id = b.order_entry
		WHERE b.id = $1 AND b.approved_by_id = 4 AND b.confirmed_by_id = 1 AND b.due_at = $2 AND u.due_at = $2 AND a.action = 'batch.approve'
		  AND a.actor = 'approver4@demo.test' AND a.body::jsonb #>> '{details,review_hash}' = b.review_hash
		  AND a.body::jsonb #>> '{details,asked_by}' = 'oncall1@demo.test'`, id, b.clock.Add(5*time.Minute))
	if n != 1 || b.entries(t, "batch.confirm") != 1 {
		t.Error("batch, run and entries don't say who asked and who approved")
	}
	b.refused(t, "approved twice", problem.Conflict, "scheduled", func() error {
		_, err := b.svc.Approve(t.Context(), b.approver, replay.ConfirmOrder{Batch: id})
		return err
	})
}

func TestApproveRefuses(t *testing.T) {
	t.Parallel()
	b := ordersSetup(t)
	id := b.planned(t, "charge_card", 3)
	planned := b.page0(t, id)
	b.refused(t, "nobody asked", problem.Conflict, "isn't confirmed yet", func() error {
		_, err := b.svc.Approve(t.Context(), b.approver, planned)
		return err
	})
	b.confirmed(t, id)
	page := b.page(t, b.approver, id)
	approve := func(p *rbac.Principal, with func(o *replay.ConfirmOrder)) func() error {
		o := page
		if with != nil {
			with(&o)
		}
		return func() error {
			_, err := b.svc.Approve(t.Context(), p, o)
			return err
		}
	}
	both := principal(1, rbac.OnCall, "") // who confirmed, and may approve others
	both.Grants = append(both.Grants, rbac.Grant{Role: rbac.Approver})
	token, planner := *both, principal(3, rbac.Approver, "")
	token.TokenID = 9
	for name, p := range map[string]*rbac.Principal{"who confirmed": both, "a token of who confirmed": &token, "who planned": planner} {
		b.refused(t, name, problem.Forbidden, "second person", approve(p, nil))
		b.refused(t, name+", at the page", problem.Forbidden, "second person", func() error {
			_, err := b.svc.Confirming(t.Context(), p, id)
			return err
		})
	}
	b.refused(t, "another engineer", problem.Forbidden, "approve_batch", approve(b.second, nil))
	b.refused(t, "an approver elsewhere", problem.NotFound, "no batch", approve(principal(8, rbac.Approver, "staging"), nil))
	b.refused(t, "the wrong phrase", problem.Invalid, "exactly", approve(b.approver, func(o *replay.ConfirmOrder) { o.Phrase = "replay 3 charge_card" }))
	b.refused(t, "another plan", problem.Conflict, "plan of batch", approve(b.approver, func(o *replay.ConfirmOrder) { o.PlanHash = "f00" }))
	b.refused(t, "no page", problem.Conflict, "older review", approve(b.approver, func(o *replay.ConfirmOrder) { o.Nonce = "" }))
	b.declare(t, without("charge_card"))
	b.refused(t, "no longer declared", problem.Conflict, "no longer declares", approve(b.approver, nil))
	b.declare(t, ordersCatalogue)
	b.clock = b.clock.Add(24 * time.Hour)
	b.refused(t, "a day later", problem.Conflict, "24 hours", approve(b.approver, nil))
	b.clock = b.clock.Add(-24*time.Hour + time.Minute)
	b.review(t, id) // an edit after the confirmation voids it
	if n := b.count(t, `SELECT count(*) FROM redrive.batches WHERE id = $1 AND state = 'planned' AND confirmed_at IS NULL AND confirmed_by_id = 0 AND needs_approval = ''`, id); n != 1 {
		t.Error("an edited review kept its confirmation")
	}
	b.refused(t, "edited since it was asked", problem.Conflict, "isn't confirmed yet", approve(b.approver, nil))
	if _, err := b.svc.Confirm(t.Context(), b.oncall, b.page(t, b.oncall, id)); err != nil {
		t.Fatal(err)
	}
	b.refused(t, "the page of the review before", problem.Conflict, "review of batch", approve(b.approver, nil))
	if _, err := b.svc.Approve(t.Context(), b.approver, b.page(t, b.approver, id)); err != nil {
		t.Errorf("what was refused stands in the way: %v", err)
	}
	b.refused(t, "reviewed after the approval", problem.Conflict, "confirmed already", func() error {
		_, err := b.svc.Review(t.Context(), b.oncall, b.reviewOrder(t, id))
		return err
	})
}

// page0 is a page filled in for a batch that has none yet.
func (b *ordersBundle) page0(t *testing.T, id int64) replay.ConfirmOrder {
	t.Helper()
	return replay.ConfirmOrder{Batch: id, PlanHash: b.planHash(t, id), Phrase: "replay 3 charge_card in production"}
}

func TestTwoApproversMakeOneOrder(t *testing.T) {
	t.Parallel()
	b := ordersSetup(t)
	id, other := b.planned(t, "charge_card", 3), principal(6, rbac.Approver, "")
	b.confirmed(t, id)
	pages := map[*rbac.Principal]replay.ConfirmOrder{b.approver: b.page(t, b.approver, id), other: b.page(t, other, id)}
	var won atomic.Int32
	var wg sync.WaitGroup
	for p, o := range pages {
		for range 10 {
			wg.Go(func() {
				if _, err := b.svc.Approve(context.Background(), p, o); err == nil {
					won.Add(1)
				} else if !problem.Is(err, problem.Conflict) {
					t.Error(err)
				}
			})
		}
	}
	wg.Wait()
	if won.Load() != 1 || b.entries(t, "batch.approve") != 1 || len(b.work) != 1 {
		t.Errorf("%d won, %d entries, work %v", won.Load(), b.entries(t, "batch.approve"), b.work)
	}
}

func TestRequestsAgeOut(t *testing.T) {
	t.Parallel()
	b := ordersSetup(t)
	old := b.planned(t, "charge_card", 3)
	b.confirmed(t, old)
	b.clock = b.clock.Add(time.Minute)
	young := b.planned(t, "charge_card", 3)
	b.confirmed(t, young)
	b.clock = b.clock.Add(24*time.Hour - time.Minute - time.Second)
	if n, err := b.svc.AgeRequests(t.Context()); n != 0 || err != nil {
		t.Fatalf("a second early %d aged out, %v", n, err)
	}
	b.clock = b.clock.Add(time.Second)
	var aged atomic.Int32
	var wg sync.WaitGroup
	for range 4 { // every process sweeps
		wg.Go(func() {
			n, err := b.svc.AgeRequests(context.Background())
			if err != nil {
				t.Error(err)
			}
			aged.Add(int32(n))
		})
	}
	wg.Wait()
	if aged.Load() != 1 || b.state(t, old) != "cancelled" || b.state(t, young) != "waiting" {
		t.Errorf("%d aged out; the old one is %s, the young one %s", aged.Load(), b.state(t, old), b.state(t, young))
	}
	n := b.count(t, `
		SELECT count(*)
		FROM redrive.audit_entries a
		JOIN redrive.batches b ON b.id = a.batch_id
		WHERE a.action = 'batch.expire' AND a.actor_kind = 'system' AND b.id = $1 AND b.finished_at IS NOT NULL AND b.end_reason = a.reason`, old)
	if n != 1 {
		t.Errorf("%d entries by the system", n)
	}
	if n := b.count(t, `SELECT count(*) FROM redrive.dead_jobs WHERE status <> 'open'`); n != 0 {
		t.Errorf("%d jobs aren't open", n)
	}
}

// An approval that comes after the chosen start lets the batch start then, and
// never before it.
func TestStartAtAChosenTime(t *testing.T) {
	t.Parallel()
	b := ordersSetup(t)
	at := b.clock.Add(2 * time.Hour)
	for want, approved := range map[string]time.Duration{"scheduled": time.Hour, "running": 3 * time.Hour} {
		begin := b.clock
		id := b.planned(t, "charge_card", 3)
		o := b.reviewOrder(t, id)
		o.StartAt = at
		if _, err := b.svc.Review(t.Context(), b.oncall, o); err != nil {
			t.Fatal(err)
		}
		token := *b.oncall // by a script: what it may confirm, it may confirm once
		token.TokenID = 7
		page := b.page(t, &token, id)
		if page.Nonce != "" {
			t.Error("a token got the right of a page")
		}
		if _, err := b.svc.Confirm(t.Context(), &token, page); err != nil {
			t.Fatal(err)
		}
		b.refused(t, "confirmed twice by a token", problem.Conflict, "waits for a second person", func() error {
			_, err := b.svc.Confirm(t.Context(), &token, page)
			return err
		})
		b.clock = begin.Add(approved)
		state, err := b.svc.Approve(t.Context(), b.approver, b.page(t, b.approver, id))
		if err != nil || state != want {
			t.Errorf("approved after %s it is %s, %v", approved, state, err)
		}
		due := at
		if want == "running" {
			due = b.clock
		}
		if n := b.count(t, `SELECT count(*) FROM redrive.batches b JOIN redrive.runs u ON u.batch_id = b.id WHERE b.id = $1 AND b.due_at = $2 AND u.due_at = $2`, id, due); n != 1 {
			t.Errorf("approved after %s it isn't due at %s", approved, due)
		}
		b.clock = begin
	}
}
