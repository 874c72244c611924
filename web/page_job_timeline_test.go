package web

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/redrive-dlq/redrive/dlq"
)

// TestTimelineSaysWhichReplayFailedAgain: from the death to the replay and its
// batch, and from the replay to what was said of it later.
func TestTimelineSaysWhichReplayFailedAgain(t *testing.T) {
	t.Parallel()
	at, id := time.Date(2026, 4, 1, 12, 0, 0, 0, time.UTC), int64(17)
	failed := &dlq.DetailReplay{ID: id, BatchID: 41, State: "ended", Outcome: "failed", By: "ann", OrderedAt: at}
	single := &dlq.DetailReplay{ID: 18, BatchID: 42, Single: true, State: "ended", Outcome: "failed", By: "ann", OrderedAt: at}
	events := jobTimeline([]dlq.DetailEvent{
		{At: &at, Death: &dlq.DetailDeath{Generation: 1, DiedAt: at}},
		{At: &at, Replay: failed},
		{At: &at, Late: &dlq.DetailLate{ReplayID: id, At: at, Outcome: "succeeded", Code: "http_200"}},
		{At: &at, Attempt: &dlq.DetailAttempt{Seq: 1, At: &at, ReplayID: &id}},
		{At: &at, Death: &dlq.DetailDeath{Generation: 2, DiedAt: at, Replay: failed}},
		{At: &at, Replay: single},
		{At: &at, Death: &dlq.DetailDeath{Generation: 3, DiedAt: at, Replay: single}},
	})
	var got [][3]string
	for _, e := range events {
		got = append(got, [3]string{e.Title, e.State, e.Href})
	}
	want := [][3]string{
		{"Given up: moved to the dead-letter queue", "", ""},
		{"Replay 17 of batch 41 by ann", "failed", "/batches/41"},
		{"Later word on replay 17; the first outcome stands", "succeeded", ""},
		{"Attempt 1, by replay 17", "failed", ""},
		{"Given up again, death 2: replay 17 of batch 41 failed again", "", "/batches/41"},
		{"Replay by ann", "failed", "/batches/42"},
		{"Given up again, death 3: replay 18 failed again", "", "/batches/42"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("timeline (-want +got):\n%s", diff)
	}
}
