package replay_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/dlq/replay"
	"github.com/redrive-dlq/redrive/rbac"
)

func TestConfirmOrdersWhatWasReviewed(t *testing.T) {
	t.Parallel()
	b := ordersSetup(t)
	id := b.planned(t, "send_welcome_email", 3)
	hash := b.review(t, id)
	c, err := b.svc.Confirming(t.Context(), b.oncall, id)
	if err != nil {
		t.Fatal(err)
	}
	if c.Phrase != "replay 3 send_welcome_email in production" || c.Risk != "may send 3 e-mails" || c.NeedsApproval != "" || c.ReviewHash != hash {
		t.Errorf("the page says %+v", c)
	}
	b.clock = b.clock.Add(10 * time.Minute)
	state, err := b.svc.Confirm(t.Context(), b.oncall, b.page(t, b.oncall, id))
	if err != nil || state != "scheduled" {
		t.Fatalf("%s, %v", state, err)
	}
	due := b.clock.Add(5 * time.Minute) // from the confirmation on
	n := b.count(t, `
		SELECT count(*)
		FROM redrive.batches b
		JOIN redrive.runs u ON u.batch_id = b.id
		JOIN redrive.audit_entries a ON a.id = b.order_entry
		JOIN redrive.release_buckets k ON k.environment = b.environment AND k.job_type = b.job_type
		WHERE b.id = $1 AND b.state = 'scheduled' AND b.due_at = $2 AND b.confirmed_by = 'oncall1@demo.test' AND b.confirmed_by_id = 1
		  AND u.due_at = $2 AND u.live AND u.wave = 0 AND u.rate_per_minute = 6000
		  AND a.action = 'batch.confirm' AND a.batch_id = b.id AND a.reason = 'the bug is fixed'
		  AND a.body::jsonb #>> '{details,plan_hash}' = b.plan_hash AND a.body::jsonb #>> '{details,review_hash}' = $3`, id, due, hash)
	if n != 1 {
		t.Error("batch, run, bucket and entry don't say the same")
	}
	if want := []string{fmt.Sprint("start ", id)}; !slices.Equal(b.work, want) {
		t.Errorf("work %v, want %v", b.work, want)
	}
}

func TestConfirmAtOnce(t *testing.T) {
	t.Parallel()
	b := ordersSetup(t)
	id := b.planned(t, "send_welcome_email", 3)
	o := b.reviewOrder(t, id)
	o.StartAfter, o.Canary = 0, 0
	if _, err := b.svc.Review(t.Context(), b.oncall, o); err != nil {
		t.Fatal(err)
	}
	state, err := b.svc.Confirm(t.Context(), b.oncall, b.page(t, b.oncall, id))
	if err != nil || state != "running" {
		t.Fatalf("%s, %v", state, err)
	}
	if n := b.count(t, `SELECT wave FROM redrive.runs WHERE batch_id = $1`, id); n != 1 {
		t.Errorf("without a canary wave %d is open", n)
	}
}

func TestConfirmRefuses(t *testing.T) {
	t.Parallel()
	b := ordersSetup(t)
	id := b.planned(t, "send_welcome_email", 3)
	confirm := func(p *rbac.Principal, with func(o *replay.ConfirmOrder)) func() error {
		o := b.page(t, b.oncall, id)
		if with != nil {
			with(&o)
		}
		return func() error {
			_, err := b.svc.Confirm(t.Context(), p, o)
			return err
		}
	}
	b.refused(t, "not reviewed", problem.Conflict, "isn't reviewed", func() error {
		_, err := b.svc.Confirming(t.Context(), b.oncall, id)
		return err
	})
	b.refused(t, "not reviewed, by a token", problem.Conflict, "isn't reviewed", func() error {
		token := *b.oncall
		token.TokenID = 7
		_, err := b.svc.Confirm(t.Context(), &token, replay.ConfirmOrder{Batch: id, PlanHash: b.planHash(t, id), Phrase: "replay 3 send_welcome_email in production"})
		return err
	})
	b.review(t, id)
	others := b.page(t, b.second, id).Nonce
	for name, c := range map[string]struct {
		with  func(o *replay.ConfirmOrder)
		code  problem.Code
		words string
	}{
		"wrong phrase":         {func(o *replay.ConfirmOrder) { o.Phrase = "replay 4 send_welcome_email in production" }, problem.Invalid, "exactly"},
		"phrase with a space":  {func(o *replay.ConfirmOrder) { o.Phrase += " " }, problem.Invalid, "exactly"},
		"no phrase":            {func(o *replay.ConfirmOrder) { o.Phrase = "" }, problem.Invalid, "exactly"},
		"another plan":         {func(o *replay.ConfirmOrder) { o.PlanHash = "f00" }, problem.Conflict, "plan of batch"},
		"another review":       {func(o *replay.ConfirmOrder) { o.ReviewHash = "f00" }, problem.Conflict, "review of batch"},
		"no page":              {func(o *replay.ConfirmOrder) { o.Nonce = "" }, problem.Conflict, "older review"},
		"an invented page":     {func(o *replay.ConfirmOrder) { o.Nonce = strings.Repeat("A", 64) }, problem.Conflict, "older review"},
		"somebody else's page": {func(o *replay.ConfirmOrder) { o.Nonce = others }, problem.Conflict, "somebody else"},
	} {
		b.refused(t, name, c.code, c.words, confirm(b.oncall, c.with))
	}
	b.refused(t, "an operator", problem.Forbidden, "run_batch", confirm(b.operator, nil))
	b.refused(t, "the right was lost", problem.Forbidden, "run_batch", confirm(principal(1, rbac.Viewer, ""), nil))
	b.refused(t, "another environment", problem.NotFound, "no batch", confirm(b.stranger, nil))
	edited := confirm(b.oncall, nil)
	b.review(t, id)
	b.refused(t, "reviewed anew since the page", problem.Conflict, "review of batch", edited)
	ready := confirm(b.oncall, nil)
	b.declare(t, without("send_welcome_email"))
	b.refused(t, "no longer declared", problem.Conflict, "no longer declares", ready)
	b.declare(t, strings.ReplaceAll(ordersCatalogue, "127.0.0.1:1/x", "127.0.0.1:1/elsewhere"))
	b.refused(t, "sent elsewhere", problem.Conflict, "elsewhere", ready)
	b.declare(t, strings.Replace(ordersCatalogue, "{by: key, scope: welcome}", "{by: none}", 1))
	b.refused(t, "no longer protected", problem.Conflict, "twice", ready)
	b.declare(t, ordersCatalogue)
	b.clock = b.clock.Add(time.Hour + time.Second)
	b.refused(t, "stale plan", problem.Conflict, "more than an hour old", ready)
	b.clock = b.clock.Add(-time.Minute)
	if err := ready(); err != nil {
		t.Errorf("what was refused stands in the way: %v", err)
	}
	b.refused(t, "the back button", problem.Conflict, "confirmed already and is scheduled", ready)
}

func TestPageIsGoodOnce(t *testing.T) {
	t.Parallel()
	b := ordersSetup(t)
	id := b.planned(t, "charge_card", 3)
	b.review(t, id)
	page := b.page(t, b.oncall, id)
	if state, err := b.svc.Confirm(t.Context(), b.oncall, page); err != nil || state != "waiting" {
		t.Fatalf("%s, %v", state, err)
	}
	// Even were the batch as it was before.
	if _, err := b.pool.Exec(t.Context(), `UPDATE redrive.batches SET state = 'planned' WHERE id = $1`, id); err != nil {
		t.Fatal(err)
	}
	b.refused(t, "the same page again", problem.Conflict, "used already", func() error {
		_, err := b.svc.Confirm(t.Context(), b.oncall, page)
		return err
	})
}

func TestFiftyConfirmationsMakeOneOrder(t *testing.T) {
	t.Parallel()
	b := ordersSetup(t)
	id := b.planned(t, "send_welcome_email", 3)
	b.review(t, id)
	same, tab, second := b.page(t, b.oncall, id), b.page(t, b.oncall, id), b.page(t, b.second, id)
	var won atomic.Int32
	var wg sync.WaitGroup
	for i := range 50 { // the same page, another tab, another person, a script
		by, o := b.oncall, same
		switch i % 4 {
		case 1:
			o = tab
		case 2:
			by, o = b.second, second
		case 3:
			token := *b.oncall
			token.TokenID, o.Nonce = 7, ""
			by = &token
		}
		wg.Go(func() {
			_, err := b.svc.Confirm(context.Background(), by, o)
			if err == nil {
				won.Add(1)
			} else if !problem.Is(err, problem.Conflict) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if won.Load() != 1 || b.entries(t, "batch.confirm") != 1 || len(b.work) != 1 {
		t.Errorf("%d won, %d entries, work %v", won.Load(), b.entries(t, "batch.confirm"), b.work)
	}
	if n := b.count(t, `SELECT count(*) FROM redrive.runs`); n != 1 {
		t.Errorf("%d runs", n)
	}
}

func TestConfirmAndReviewAtOnce(t *testing.T) {
	t.Parallel()
	b := ordersSetup(t)
	for range 15 {
		id := b.planned(t, "send_welcome_email", 3)
		seen, page, order := b.review(t, id), b.page(t, b.oncall, id), b.reviewOrder(t, id)
		order.Canary = 1
		var confirmErr, reviewErr error
		var wg sync.WaitGroup
		wg.Go(func() { _, confirmErr = b.svc.Confirm(context.Background(), b.oncall, page) })
		wg.Go(func() { _, reviewErr = b.svc.Review(context.Background(), b.second, order) })
		wg.Wait()
		if (confirmErr == nil) == (reviewErr == nil) {
			t.Fatalf("confirm: %v, review: %v; exactly one goes through", confirmErr, reviewErr)
		}
		var hash string
		if err := b.pool.QueryRow(t.Context(), `SELECT review_hash FROM redrive.batches WHERE id = $1`, id).Scan(&hash); err != nil {
			t.Fatal(err)
		}
		if state := b.state(t, id); (state == "scheduled") != (hash == seen) || (state == "planned") != (confirmErr != nil) {
			t.Fatalf("%s with the review that was seen: %t", state, hash == seen)
		}
	}
}

func TestNoConfirmationWithoutItsEntry(t *testing.T) {
	t.Parallel()
	b := ordersSetup(t)
	id := b.planned(t, "send_welcome_email", 3)
	b.review(t, id)
	page := b.page(t, b.oncall, id)
	if _, err := b.pool.Exec(t.Context(), `ALTER TABLE redrive.audit_entries ADD CONSTRAINT refuse CHECK (action <> 'batch.confirm') NOT VALID`); err != nil {
		t.Fatal(err)
	}
	b.refused(t, "without its entry", problem.Internal, "refuse", func() error {
		_, err := b.svc.Confirm(t.Context(), b.oncall, page)
		return err
	})
}
