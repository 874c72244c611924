package replay_test

import (
	"testing"
	"time"
)

// Every batch that begins says so once in the log, whichever way it begins: at
// once, at its time, or by a resume after its time.
func TestEveryStartHasItsEntry(t *testing.T) {
	t.Parallel()
	b := ordersSetup(t)
	starts := func(id int64) int {
		t.Helper()
		return b.count(t, `SELECT count(*) FROM redrive.audit_entries WHERE action = 'batch.start' AND actor_kind = 'system' AND batch_id = $1`, id)
	}
	now := b.underway(t, 2, 0)
	b.release(t)
	if n := starts(now); n != 1 {
		t.Errorf("confirmed to start at once: %d entries of the start, want 1", n)
	}
	later, paused := b.planned(t, "send_welcome_email", 2), b.planned(t, "send_welcome_email", 2)
	b.confirmed(t, later)
	b.confirmed(t, paused)
	if err := b.svc.Pause(t.Context(), b.oncall, paused, ""); err != nil {
		t.Fatal(err)
	}
	if n := starts(later) + starts(paused); n != 0 {
		t.Errorf("%d entries of a start that hasn't come", n)
	}
	b.clock = b.clock.Add(6 * time.Minute)
	b.release(t)
	for range 2 { // a second pause and resume begin nothing
		if err := b.svc.Resume(t.Context(), b.oncall, paused, ""); err != nil {
			t.Fatal(err)
		}
		b.release(t)
		if err := b.svc.Pause(t.Context(), b.oncall, paused, ""); err != nil {
			t.Fatal(err)
		}
	}
	if starts(later) != 1 || starts(paused) != 1 {
		t.Errorf("%d entries of a start at its time, %d of one by a resume, want 1 each", starts(later), starts(paused))
	}
}
