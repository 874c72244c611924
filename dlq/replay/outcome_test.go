package replay_test

import (
	"fmt"
	"testing"

	"github.com/redrive-dlq/redrive/dlq"
	"github.com/redrive-dlq/redrive/dlq/board"
	"github.com/redrive-dlq/redrive/dlq/replay"
)

// late returns the late outcomes of a replay as its job's page shows them.
func (l *loop) late(t *testing.T, job int64) []string {
	t.Helper()
	d, err := dlq.Detail(t.Context(), l.pool, l.oncall, job, dlq.DetailQuery{})
	if err != nil {
		t.Fatal(err)
	}
	var words []string
	for _, e := range d.Timeline {
		if e.Late != nil {
			words = append(words, e.Late.Outcome+" "+e.Late.Code)
		}
	}
	return words
}

func TestFirstOutcomeWinsAndLaterOnesAreKept(t *testing.T) {
	t.Parallel()
	l := loopSetup(t, fast, 100)
	batch := l.batch(t, members{n: 2})
	ids := l.outAll(t)
	id, job := ids[0], l.count(t, `SELECT dead_job_id FROM redrive.replays WHERE id = $1`, ids[0])
	l.record(t, id, replay.End{Outcome: replay.Succeeded, Code: "http_200", EffectID: "m1"})
	for _, e := range []replay.End{
		{Outcome: replay.Succeeded, Code: "http_200", EffectID: "m1"}, // the same word again
		failed503, failed503,
		{Outcome: replay.Succeeded, Code: "http_200", EffectID: "m2"},
	} {
		first, err := l.svc.Record(t.Context(), id, e)
		if err != nil || first {
			t.Fatalf("a later outcome won: %v, %v", first, err)
		}
	}
	if _, outcome, code := l.outcome(t, id); outcome != "succeeded" || code != "http_200" {
		t.Errorf("%s %s, want the first", outcome, code)
	}
	if status, _, effect := l.status(t, int64(job)); status != "recovered" || effect != "m1" {
		t.Errorf("the job is %s with effect %s", status, effect)
	}
	if got := fmt.Sprint(l.late(t, int64(job))); got != "[failed http_503 succeeded http_200]" {
		t.Errorf("late outcomes on the timeline: %s", got)
	}
	if n := l.count(t, `SELECT count(*) FROM redrive.deaths`); n != 0 {
		t.Errorf("%d deaths by an outcome that came too late", n)
	}
	for i := range 50 {
		if _, err := l.svc.Record(t.Context(), id, replay.End{Outcome: replay.Failed, Code: fmt.Sprint("c", i)}); err != nil {
			t.Fatal(err)
		}
	}
	if n := l.count(t, `SELECT count(*) FROM redrive.late_outcomes`); n != 20 {
		t.Errorf("%d late outcomes are kept, want 20", n)
	}
	page, err := board.Items(t.Context(), l.pool, batch, board.ItemQuery{State: "succeeded"})
	if err != nil || len(page.Rows) != 1 || page.Rows[0].Late != 20 {
		t.Errorf("items: %+v, %v", page.Rows, err)
	}
	if _, err := l.svc.Record(t.Context(), 999_999, succeeded); err == nil {
		t.Error("an outcome of no replay was taken")
	}
}

// TestOutcomeOfOneThatNeverLeft: nobody can tell an outcome of what has not left.
func TestOutcomeOfOneThatNeverLeft(t *testing.T) {
	t.Parallel()
	l := loopSetup(t, fast, 100)
	l.batch(t, members{n: 1, paused: true})
	id := int64(l.count(t, `SELECT id FROM redrive.replays`))
	if first, err := l.svc.Record(t.Context(), id, succeeded); err != nil || first {
		t.Fatalf("%v, %v", first, err)
	}
	if state, _, _ := l.outcome(t, id); state != "pending" {
		t.Errorf("%s, want pending", state)
	}
	if n := l.count(t, `SELECT count(*) FROM redrive.late_outcomes`); n != 0 {
		t.Errorf("%d late outcomes of a replay that never left", n)
	}
}
