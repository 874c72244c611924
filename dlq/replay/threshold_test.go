package replay_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/dlq/replay"
)

func TestFourBatchesOf999(t *testing.T) {
	t.Parallel()
	b := ordersSetup(t)
	for i, want := range []string{"scheduled", "waiting", "waiting", "waiting"} {
		if state := b.confirmed(t, b.planned(t, "send_welcome_email", 999)); state != want {
			t.Errorf("batch %d of 999 is %s, want %s", i+1, state, want)
		}
	}
	if n := b.count(t, `SELECT count(*) FROM redrive.batches WHERE needs_approval LIKE 'With the 999 that the same person released in the last 24 hours these are 1,998; more than 1,000%'`); n != 1 {
		t.Error("the second one doesn't say why it waits")
	}
	b.clock = b.clock.Add(24*time.Hour + time.Second)
	if state := b.confirmed(t, b.planned(t, "send_welcome_email", 999)); state != "scheduled" {
		t.Errorf("a day later: %s", state)
	}
}

func TestFourParallelBatchesOf999(t *testing.T) {
	t.Parallel()
	b := ordersSetup(t)
	var pages []replay.ConfirmOrder
	for range 4 {
		id := b.planned(t, "send_welcome_email", 999)
		b.review(t, id)
		pages = append(pages, b.page(t, b.oncall, id))
	}
	states := make([]string, len(pages))
	var wg sync.WaitGroup
	for i, o := range pages {
		wg.Go(func() {
			var err error
			if states[i], err = b.svc.Confirm(context.Background(), b.oncall, o); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if all := strings.Join(states, " "); strings.Count(all, "scheduled") != 1 || strings.Count(all, "waiting") != 3 {
		t.Errorf("at once they are %s", all)
	}
}

func TestThresholdCounts(t *testing.T) {
	t.Parallel()
	b := ordersSetup(t)
	if state := b.confirmed(t, b.planned(t, "send_welcome_email", 1001)); state != "waiting" {
		t.Errorf("1,001 at once are %s", state)
	}
	other := b.planned(t, "send_welcome_email", 1000)
	if _, err := b.svc.Review(t.Context(), b.second, b.reviewOrder(t, other)); err != nil {
		t.Fatal(err)
	}
	if state, err := b.svc.Confirm(t.Context(), b.second, b.page(t, b.second, other)); err != nil || state != "scheduled" {
		t.Errorf("another person's exact 1,000 are %s, %v", state, err)
	}
	third := principal(7, "oncall", "")
	taken := b.planned(t, "send_welcome_email", 900)
	if _, err := b.svc.Review(t.Context(), third, b.reviewOrder(t, taken)); err != nil {
		t.Fatal(err)
	}
	if _, err := b.svc.Confirm(t.Context(), third, b.page(t, third, taken)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := b.svc.Cancel(t.Context(), third, taken, "not this one"); err != nil {
		t.Fatal(err)
	}
	next := b.planned(t, "send_welcome_email", 900)
	if _, err := b.svc.Review(t.Context(), third, b.reviewOrder(t, next)); err != nil {
		t.Fatal(err)
	}
	if state, err := b.svc.Confirm(t.Context(), third, b.page(t, third, next)); err != nil || state != "scheduled" {
		t.Errorf("what was cancelled before its start counts: %s, %v", state, err)
	}
}

func TestSinglesDontPassTheThreshold(t *testing.T) {
	t.Parallel()
	b := ordersSetup(t)
	b.declare(t, strings.Replace(ordersCatalogue, "approval_above: 1000", "approval_above: 5", 1))
	var ids []int64
	for _, name := range strings.Split("abcdefghijkl", "") {
		ids = append(ids, b.job(t, jobOpts{id: name, key: name}))
	}
	var won, told atomic.Int32
	var wg sync.WaitGroup
	for _, id := range ids {
		wg.Go(func() {
			_, err := b.order(id)
			var batch *replay.NeedsBatchError
			switch {
			case err == nil:
				won.Add(1)
			case problem.Is(err, problem.Conflict) && errors.As(err, &batch) && strings.Contains(batch.Why, "more than 5 replays"):
				told.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if won.Load() != 5 || told.Load() != 7 {
		t.Errorf("%d left singly and %d were told to plan a batch", won.Load(), told.Load())
	}
	if state := b.confirmed(t, b.planned(t, "send_welcome_email", 2)); state != "waiting" {
		t.Errorf("a batch after five singles is %s", state)
	}
}

func TestSingleReplaysOfMoneyTakeABatch(t *testing.T) {
	t.Parallel()
	b := ordersSetup(t)
	for jobType, why := range map[string]string{"charge_card": "may move money", "import_catalog": "twice"} {
		id := b.job(t, jobOpts{id: jobType, jobType: jobType, scope: "s", key: jobType})
		b.refused(t, jobType, problem.Conflict, "Plan a batch", func() error {
			_, err := b.order(id)
			var batch *replay.NeedsBatchError
			if !errors.As(err, &batch) || batch.JobType != jobType || !strings.Contains(batch.Why, why) {
				t.Errorf("%s: %v", jobType, err)
			}
			return err
		})
	}
}

// Near the threshold single orders take turns: one that waits for its turn isn't
// refused because the others take a while.
func TestSinglesWaitForTheirTurn(t *testing.T) {
	t.Parallel()
	b := ordersSetup(t)
	b.declare(t, strings.Replace(ordersCatalogue, "approval_above: 1000", "approval_above: 5", 1))
	id := b.job(t, jobOpts{id: "a", key: "a"})
	tx, err := b.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, err = tx.Exec(t.Context(), `
		SELECT pg_advisory_xact_lock(hashtextextended('1' || chr(31) || 'production' || chr(31) || 'send_welcome_email', 7311))`)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
	ordered := make(chan error, 1)
	go func() {
		_, err := b.order(id)
		ordered <- err
	}()
	select {
	case err := <-ordered:
		t.Fatalf("it didn't wait for its turn: %v", err)
	case <-time.After(1200 * time.Millisecond):
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-ordered; err != nil {
		t.Error(err)
	}
}
