package replay_test

import (
	"strings"
	"testing"
	"time"

	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/rbac"
)

// lost are the ways in which somebody who agreed to a batch loses the right to,
// each with the way back.
var lost = map[string][2]string{
	"the role":             {`DELETE FROM redrive.grants WHERE user_id = $1`, `INSERT INTO redrive.grants (user_id, role) VALUES ($1, 'oncall')`},
	"the environment":      {`UPDATE redrive.grants SET environment = 'staging' WHERE user_id = $1`, `UPDATE redrive.grants SET environment = '' WHERE user_id = $1`},
	"the type":             {`UPDATE redrive.grants SET job_type = 'other' WHERE user_id = $1`, `UPDATE redrive.grants SET job_type = '' WHERE user_id = $1`},
	"the account":          {`UPDATE redrive.users SET disabled_at = now() WHERE id = $1`, `UPDATE redrive.users SET disabled_at = NULL WHERE id = $1`},
	"the role for another": {`UPDATE redrive.grants SET role = 'operator' WHERE user_id = $1`, `UPDATE redrive.grants SET role = 'oncall' WHERE user_id = $1`},
}

// Nobody approves what somebody asked for who may not run it any more.
func TestApprovalAsksWhatTheFirstMayNow(t *testing.T) {
	t.Parallel()
	b := ordersSetup(t)
	id := b.planned(t, "charge_card", 3)
	b.confirmed(t, id)
	page := b.page(t, b.approver, id)
	for what, way := range lost {
		b.exec(t, way[0], b.oncall.UserID)
		b.refused(t, what, problem.Conflict, "oncall1@demo.test, who confirmed it, may not run it any more", func() error {
			_, err := b.svc.Approve(t.Context(), b.approver, page)
			return err
		})
		b.refused(t, what+", at the page", problem.Conflict, "may not run it any more", func() error {
			_, err := b.svc.Confirming(t.Context(), b.approver, id)
			return err
		})
		b.exec(t, way[1], b.oncall.UserID)
	}
	if state, err := b.svc.Approve(t.Context(), b.approver, page); err != nil || state != "scheduled" {
		t.Errorf("what was refused stands in the way: %s, %v", state, err)
	}
}

// A batch whose time comes after somebody who agreed to it lost the right waits
// for one who has it.
func TestStartAsksWhatEachMayNow(t *testing.T) {
	t.Parallel()
	for what, way := range lost {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			b := ordersSetup(t)
			id := b.planned(t, "send_welcome_email", 2)
			b.confirmed(t, id)
			b.do(t, "start", id)
			b.exec(t, way[0], b.oncall.UserID)
			b.clock = b.clock.Add(6 * time.Minute)
			if n := b.release(t); n != 0 || b.state(t, id) != "paused" || b.live(t, id) {
				t.Fatalf("%d left, it is %s", n, b.state(t, id))
			}
			n := b.count(t, `
				SELECT count(*)
				FROM redrive.batches b
				JOIN redrive.audit_entries a ON a.batch_id = b.id AND a.action = 'batch.stop' AND a.reason = b.pause_why
				WHERE b.id = $1 AND b.pause_kind = 'rights' AND b.pause_why LIKE 'oncall1@demo.test, who confirmed it, may not run it any more%'
				  AND a.body::jsonb #>> '{details,kind}' = 'rights'`, id)
			if n != 1 || b.entries(t, "batch.start") != 0 {
				t.Error("batch and log don't say why it waits")
			}
			if err := b.svc.Resume(t.Context(), b.second, id, "I looked at it"); err != nil {
				t.Fatal(err)
			}
			if n := b.release(t); n != 2 || b.entries(t, "batch.start") != 1 {
				t.Errorf("taken over by another: %d left, %d entries of the start", n, b.entries(t, "batch.start"))
			}
		})
	}
}

// The second person's right counts at the start too, and whoever takes such a
// batch over can't be the only one who agreed to it.
func TestStartAsksWhatTheSecondMayNow(t *testing.T) {
	t.Parallel()
	b := ordersSetup(t)
	id := b.planned(t, "charge_card", 3)
	b.confirmed(t, id)
	if _, err := b.svc.Approve(t.Context(), b.approver, b.page(t, b.approver, id)); err != nil {
		t.Fatal(err)
	}
	b.do(t, "start", id)
	b.exec(t, `DELETE FROM redrive.grants WHERE user_id IN (1, 4)`)
	b.clock = b.clock.Add(6 * time.Minute)
	if n := b.release(t); n != 0 || b.state(t, id) != "paused" {
		t.Fatalf("%d left, it is %s", n, b.state(t, id))
	}
	both := principal(4, rbac.OnCall, "") // who approved it runs batches now
	b.refused(t, "by the one who is left", problem.Forbidden, "somebody else", func() error { return b.svc.Resume(t.Context(), both, id, "go on") })
	b.exec(t, `INSERT INTO redrive.grants (user_id, role) VALUES (1, 'oncall')`)
	b.refused(t, "by the first, without the second", problem.Forbidden, "somebody else", func() error { return b.svc.Resume(t.Context(), b.oncall, id, "go on") })
	if err := b.svc.Resume(t.Context(), b.second, id, "I looked at it"); err != nil {
		t.Fatal(err)
	}
	if n := b.release(t); n == 0 {
		t.Error("nothing left after it was taken over")
	}
}

// What moves money since it was confirmed waits: nobody else agreed to it.
func TestMoneySinceTheConfirmation(t *testing.T) {
	t.Parallel()
	b := ordersSetup(t)
	id := b.planned(t, "send_welcome_email", 2)
	b.confirmed(t, id)
	b.do(t, "start", id)
	b.declare(t, strings.Replace(ordersCatalogue, "{kind: email, text: sends one e-mail}", "{kind: money, text: charges a card}", 1))
	b.clock = b.clock.Add(6 * time.Minute)
	if n := b.release(t); n != 0 || b.state(t, id) != "paused" {
		t.Errorf("%d left, it is %s", n, b.state(t, id))
	}
	b.refused(t, "resumed by one", problem.Conflict, "may move money", func() error { return b.svc.Resume(t.Context(), b.second, id, "go on") })
	if _, _, err := b.svc.Cancel(t.Context(), b.second, id, "plan it again"); err != nil {
		t.Errorf("there is no way out: %v", err)
	}
}

// A threshold that is lowered after the confirmation counts at once: nobody else
// agreed to so many.
func TestThresholdLoweredSinceTheConfirmation(t *testing.T) {
	t.Parallel()
	b := ordersSetup(t)
	id := b.planned(t, "send_welcome_email", 3)
	b.confirmed(t, id)
	b.do(t, "start", id)
	b.clock = b.clock.Add(6 * time.Minute)
	lowered := func(to string) string {
		return strings.Replace(ordersCatalogue, "approval_above: 1000", "approval_above: "+to, 1)
	}
	b.declare(t, lowered("2"))
	if n := b.release(t); n != 0 || b.state(t, id) != "paused" {
		t.Errorf("%d left, it is %s", n, b.state(t, id))
	}
	b.refused(t, "resumed by one", problem.Conflict, "more than 2 replays of send_welcome_email take a second person now", func() error {
		return b.svc.Resume(t.Context(), b.second, id, "go on")
	})
	b.declare(t, lowered("3"))
	if err := b.svc.Resume(t.Context(), b.second, id, "go on"); err != nil {
		t.Fatal(err)
	}
	if n := b.release(t); n == 0 {
		t.Error("nothing left after the catalogue allowed it again")
	}
}
