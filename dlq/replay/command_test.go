package replay_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/dlq/replay"
	"github.com/redrive-dlq/redrive/rbac"
)

// underway confirms a batch of n that starts at once, and takes its jobs.
func (b *ordersBundle) underway(t *testing.T, n, canary int) int64 {
	t.Helper()
	id := b.planned(t, "send_welcome_email", n)
	o := b.reviewOrder(t, id)
	o.StartAfter, o.Canary = 0, canary
	if _, err := b.svc.Review(t.Context(), b.oncall, o); err != nil {
		t.Fatal(err)
	}
	if _, err := b.svc.Confirm(t.Context(), b.oncall, b.page(t, b.oncall, id)); err != nil {
		t.Fatal(err)
	}
	b.do(t, replay.WorkStart, id)
	return id
}

// do runs work on a batch until it is done.
func (b *ordersBundle) do(t *testing.T, w replay.Work, id int64) {
	t.Helper()
	for range 100 {
		done, err := b.svc.Do(t.Context(), w, id)
		if err != nil {
			t.Fatal(err)
		}
		if done {
			return
		}
	}
	t.Fatalf("%s of batch %d has no end", w, id)
}

func (b *ordersBundle) live(t *testing.T, id int64) bool {
	t.Helper()
	return b.count(t, `SELECT count(*) FROM redrive.runs WHERE batch_id = $1 AND live`, id) == 1
}

func TestPauseAndResume(t *testing.T) {
	t.Parallel()
	b := ordersSetup(t)
	id := b.planned(t, "send_welcome_email", 3)
	b.refused(t, "pause a plan", problem.Conflict, "isn't confirmed yet", func() error { return b.svc.Pause(t.Context(), b.oncall, id, "") })
	b.confirmed(t, id)
	b.refused(t, "resume what isn't paused", problem.Conflict, "is scheduled", func() error { return b.svc.Resume(t.Context(), b.oncall, id, "") })
	b.refused(t, "an operator", problem.Forbidden, "run_batch", func() error { return b.svc.Pause(t.Context(), b.operator, id, "") })
	b.refused(t, "elsewhere", problem.NotFound, "no batch", func() error { return b.svc.Pause(t.Context(), b.stranger, id, "") })
	b.refused(t, "half a reason", problem.Invalid, "reason", func() error { return b.svc.Pause(t.Context(), b.oncall, id, "x") })
	if err := b.svc.Pause(t.Context(), b.oncall, id, "the provider asked for it"); err != nil {
		t.Fatal(err)
	}
	n := b.count(t, `SELECT count(*) FROM redrive.batches WHERE id = $1 AND state = 'paused' AND pause_kind = 'person' AND pause_why = 'the provider asked for it' AND paused_by = 'oncall1@demo.test' AND paused_at IS NOT NULL`, id)
	if n != 1 || b.live(t, id) || b.entries(t, "batch.pause") != 1 {
		t.Error("not paused, still live, or not in the log")
	}
	b.refused(t, "pause twice", problem.Conflict, "is paused", func() error { return b.svc.Pause(t.Context(), b.oncall, id, "") })
	b.declare(t, without("send_welcome_email"))
	b.refused(t, "resume what isn't declared", problem.Conflict, "no longer declares", func() error { return b.svc.Resume(t.Context(), b.oncall, id, "") })
	b.declare(t, ordersCatalogue)
	if err := b.svc.Resume(t.Context(), b.oncall, id, ""); err != nil {
		t.Fatal(err)
	}
	if b.state(t, id) != "scheduled" || !b.live(t, id) || b.count(t, `SELECT count(*) FROM redrive.batches WHERE pause_kind <> '' OR paused_at IS NOT NULL`) != 0 {
		t.Errorf("before its time it is %s", b.state(t, id))
	}
	if err := b.svc.Pause(t.Context(), b.oncall, id, ""); err != nil {
		t.Fatal(err)
	}
	b.clock = b.clock.Add(6 * time.Minute)
	if err := b.svc.Resume(t.Context(), b.oncall, id, ""); err != nil {
		t.Fatal(err)
	}
	if b.state(t, id) != "running" || b.entries(t, "batch.resume") != 2 {
		t.Errorf("after its time it is %s", b.state(t, id))
	}
}

func TestResumeAfterAStopTakesAReasonAndACanary(t *testing.T) {
	t.Parallel()
	b := ordersSetup(t)
	id := b.underway(t, 5, 0)
	_, err := b.pool.Exec(t.Context(), `
		WITH r AS (UPDATE redrive.runs SET live = false WHERE batch_id = $1)
		UPDATE redrive.batches SET state = 'paused', pause_kind = 'failures', canary = 2, pause_why = '6 of 20 failed (limit 20 %)' WHERE id = $1`, id)
	if err != nil {
		t.Fatal(err)
	}
	b.refused(t, "without a reason", problem.Invalid, "stopped by itself", func() error { return b.svc.Resume(t.Context(), b.oncall, id, " ") })
	if err := b.svc.Resume(t.Context(), b.oncall, id, "the provider is back"); err != nil {
		t.Fatal(err)
	}
	n := b.count(t, `
		SELECT count(*)
		FROM redrive.runs u
		JOIN redrive.batches b ON b.id = u.batch_id
		JOIN redrive.audit_entries a ON a.batch_id = b.id
		WHERE u.live AND u.wave = 0 AND u.watch_from = $2 AND b.id = $1 AND b.state = 'running' AND a.action = 'batch.resume'
		  AND a.reason = 'the provider is back' AND a.body::jsonb #>> '{details,canary}' = '2'`, id, b.clock)
	if n != 1 || b.count(t, `SELECT count(*) FROM redrive.replays WHERE batch_id = $1 AND wave = 0`, id) != 2 {
		t.Error("no new canary of two, or not in the log")
	}
}

func TestRateGoesDownOnly(t *testing.T) {
	t.Parallel()
	b := ordersSetup(t)
	id := b.planned(t, "send_welcome_email", 3)
	rate := func(n int) func() error {
		return func() error { return b.svc.SetRate(t.Context(), b.oncall, id, n) }
	}
	b.refused(t, "of a plan", problem.Conflict, "isn't confirmed yet", rate(10))
	b.confirmed(t, id)
	b.refused(t, "as it is", problem.Invalid, "below the 6,000", rate(6000))
	b.refused(t, "none", problem.Invalid, "at least 1", rate(0))
	if err := rate(60)(); err != nil {
		t.Fatal(err)
	}
	b.refused(t, "up again", problem.Invalid, "below the 60", rate(61))
	b.refused(t, "an operator", problem.Forbidden, "run_batch", func() error { return b.svc.SetRate(t.Context(), b.operator, id, 5) })
	n := b.count(t, `SELECT count(*) FROM redrive.runs u JOIN redrive.batches b ON b.id = u.batch_id WHERE u.rate_per_minute = 60 AND b.rate_per_minute = 60`)
	if n != 1 || b.entries(t, "batch.rate") != 1 {
		t.Error("batch, run and log don't say 60")
	}
	b.declare(t, strings.Replace(ordersCatalogue, "per_minute: 6000, burst: 100", "per_minute: 30, burst: 1", 1))
	b.refused(t, "above a stricter type", problem.Invalid, "below the 30", rate(31))
}

func TestCancelWithdrawsAPlan(t *testing.T) {
	t.Parallel()
	b := ordersSetup(t)
	plan, asked, asked2 := b.planned(t, "send_welcome_email", 3), b.planned(t, "charge_card", 4), b.planned(t, "charge_card", 4)
	b.confirmed(t, asked)
	b.confirmed(t, asked2)
	viewer := principal(9, rbac.Viewer, "")
	cancel := func(p *rbac.Principal, id int64) func() error {
		return func() error { _, _, err := b.svc.Cancel(t.Context(), p, id, "not needed"); return err }
	}
	b.refused(t, "a viewer", problem.Forbidden, "plan_batch", cancel(viewer, plan))
	b.refused(t, "an operator, of a request", problem.Forbidden, "run_batch", cancel(b.operator, asked))
	b.refused(t, "elsewhere", problem.NotFound, "no batch", cancel(b.stranger, plan))
	b.refused(t, "no reason", problem.Invalid, "reason", func() error { _, _, err := b.svc.Cancel(t.Context(), b.operator, plan, ""); return err })
	for id, p := range map[int64]*rbac.Principal{plan: b.operator, asked: b.approver, asked2: b.second} {
		if err := cancel(p, id)(); err != nil || b.state(t, id) != "cancelled" {
			t.Errorf("batch %d is %s, %v", id, b.state(t, id), err)
		}
		b.refused(t, "twice", problem.Conflict, "is cancelled", cancel(b.second, id))
	}
	b.refused(t, "confirm it then", problem.Conflict, "is cancelled", func() error {
		_, err := b.svc.Confirm(t.Context(), b.oncall, replay.ConfirmOrder{Batch: plan})
		return err
	})
	if len(b.work) != 0 || b.entries(t, "batch.cancel") != 3 {
		t.Errorf("work %v, %d entries", b.work, b.entries(t, "batch.cancel"))
	}
}

func TestCancelOfAScheduledBatch(t *testing.T) {
	t.Parallel()
	b := ordersSetup(t)
	id := b.planned(t, "send_welcome_email", 3)
	b.confirmed(t, id)
	stops, out, err := b.svc.Cancel(t.Context(), b.oncall, id, "not needed")
	if err != nil || stops != 3 || out != 0 || b.state(t, id) != "cancelling" || b.live(t, id) {
		t.Fatalf("stops %d, %d out, %s, %v", stops, out, b.state(t, id), err)
	}
	if want := []string{fmt.Sprint("start ", id), fmt.Sprint("cancel ", id)}; !slices.Equal(b.work, want) {
		t.Errorf("work %v, want %v", b.work, want)
	}
	b.do(t, replay.WorkStart, id) // it was handed over before
	b.do(t, replay.WorkCancel, id)
	if n := b.count(t, `SELECT count(*) FROM redrive.dead_jobs WHERE status = 'open'`); n != 3 || b.state(t, id) != "cancelled" {
		t.Errorf("%d jobs are open, the batch is %s", n, b.state(t, id))
	}
	b.refused(t, "again", problem.Conflict, "is cancelled", func() error { _, _, err := b.svc.Cancel(t.Context(), b.oncall, id, "again"); return err })
}

// Whatever was released before a cancel is out, and nothing after it: the
// numbers that the person reads are true.
func TestCancelBesideReleases(t *testing.T) {
	t.Parallel()
	b := ordersSetup(t)
	id := b.underway(t, 80, 0)
	var stops, out int64
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for range 15 {
				if _, err := b.svc.ReleaseDue(context.Background()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Go(func() {
		for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); {
			var n int
			if err := b.pool.QueryRow(context.Background(), `SELECT count(*) FROM redrive.replays WHERE state = 'released'`).Scan(&n); err != nil || n > 0 {
				break
			}
		}
		var err error
		if stops, out, err = b.svc.Cancel(context.Background(), b.oncall, id, "stop it"); err != nil {
			t.Error(err)
		}
	})
	wg.Wait()
	b.release(t)
	released := b.count(t, `SELECT count(*) FROM redrive.replays WHERE state = 'released'`)
	if int64(released) != out || stops+out != 80 || out == 0 {
		t.Errorf("stops %d, %d out; %d are", stops, out, released)
	}
	b.do(t, replay.WorkCancel, id)
	if n := b.count(t, `SELECT count(*) FROM redrive.replays WHERE outcome = 'cancelled'`); int64(n) != stops {
		t.Errorf("%d were stopped, it said %d", n, stops)
	}
}
