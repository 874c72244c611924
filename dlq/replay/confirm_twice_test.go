package replay_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/redrive-dlq/redrive/dlq/filter"
	"github.com/redrive-dlq/redrive/dlq/replay"
	"github.com/redrive-dlq/redrive/rbac"
)

// TestTwoReplayAllsMakeOneReplayForEachJob: two people plan the same 51 jobs,
// both plans find all of them eligible, both are confirmed at the same moment,
// and every job dies again within a moment of its replay. Each is replayed once.
func TestTwoReplayAllsMakeOneReplayForEachJob(t *testing.T) {
	t.Parallel()
	b := ordersSetup(t)
	for i := range 51 {
		b.job(t, jobOpts{id: fmt.Sprint("m", i), key: fmt.Sprint("m", i)})
	}
	typ, _ := b.types.Load().Type("send_welcome_email")
	typ.Batch.StopAtFailurePct = 100
	people := []*rbac.Principal{b.oncall, b.second}
	var ids []int64
	for _, p := range people {
		planned, err := b.svc.Plan(t.Context(), p, replay.Selection{Filter: filter.Filter{Types: []string{"send_welcome_email"}}}, "the bug is fixed")
		if err != nil || len(planned) != 1 {
			t.Fatal(planned, err)
		}
		b.do(t, replay.WorkPlan, planned[0])
		ids = append(ids, planned[0])
	}
	errs := make(chan error, 2)
	for i, p := range people {
		o := b.reviewOrder(t, ids[i])
		o.StartAfter, o.Canary = 0, 0
		if _, err := b.svc.Review(t.Context(), p, o); err != nil {
			t.Fatal(err)
		}
		page := b.page(t, p, ids[i])
		if page.Phrase != "replay 51 send_welcome_email in production" {
			t.Fatal(page.Phrase)
		}
		go func() {
			_, err := b.svc.Confirm(t.Context(), p, page)
			errs <- err
		}()
	}
	for range people {
		if err := <-errs; err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range ids {
		go func() {
			for {
				done, err := b.svc.Do(t.Context(), replay.WorkStart, id)
				if done || err != nil {
					errs <- err
					return
				}
			}
		}()
	}
	for range people {
		if err := <-errs; err != nil {
			t.Fatal(err)
		}
	}
	until(t, "both batches end", func() bool {
		b.clock = b.clock.Add(time.Second)
		b.release(t)
		for _, r := range b.out(t) {
			if _, err := b.svc.Record(t.Context(), r, failed422); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := b.svc.EndBatches(t.Context()); err != nil {
			t.Fatal(err)
		}
		return b.state(t, ids[0]) == "done" && b.state(t, ids[1]) == "done"
	})
	if n := b.count(t, `SELECT count(*) FROM redrive.replays WHERE released_at IS NOT NULL`); n != 51 {
		t.Errorf("%d replays left for 51 jobs", n)
	}
	if n := b.count(t, `SELECT count(*) FROM redrive.dead_jobs WHERE status = 'open' AND generation = 2`); n != 51 {
		t.Errorf("%d jobs are open again, want 51", n)
	}
	if n := b.count(t, `SELECT count(*) FROM redrive.replays WHERE outcome_at IS NULL`); n != 0 {
		t.Errorf("%d have no end", n)
	}
}
