package replay_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/dlq"
	"github.com/redrive-dlq/redrive/dlq/board"
	"github.com/redrive-dlq/redrive/dlq/replay"
)

// capture tells of the next death of a job, as its source does.
func (l *loop) capture(t *testing.T, jobID, message string) {
	t.Helper()
	doc := &dlq.Document{Environment: "production", Source: "test", JobType: "sync", JobID: jobID, Payload: []byte(`{"a": 1}`),
		Attempts:     []dlq.AttemptDoc{{At: []byte(`"` + time.Now().Format(time.RFC3339Nano) + `"`), ErrorClass: "Timeout", Message: message}},
		AttemptCount: 4}
	err := pgx.BeginFunc(t.Context(), l.pool, func(tx pgx.Tx) error {
		out, err := dlq.NewCapturer(nil, nil, nil).Capture(t.Context(), tx, []*dlq.Document{doc})
		if err == nil && out[0].Outcome != dlq.CaptureUpdated {
			err = errors.New(string(out[0].Outcome))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestDeathBeforeAndAfterTheOutcome: what a source tells of the death of a
// failed replay is linked both ways, whichever comes first.
func TestDeathBeforeAndAfterTheOutcome(t *testing.T) {
	t.Parallel()
	for _, order := range []string{"death first", "outcome first", "told by the target"} {
		t.Run(order, func(t *testing.T) {
			t.Parallel()
			l := loopSetup(t, fast, 100)
			batch := l.batch(t, members{n: 1})
			id := l.outAll(t)[0]
			job := int64(l.count(t, `SELECT id FROM redrive.dead_jobs`))
			name := fmt.Sprintf("%d/1", batch)
			end := replay.End{Outcome: replay.Failed, Code: "discarded", Category: "throttled"}
			switch order {
			case "death first":
				l.capture(t, name, "no answer")
				l.record(t, id, end)
			case "outcome first":
				l.record(t, id, end)
				if n := l.count(t, `SELECT count(*) FROM redrive.replays WHERE new_category = 'throttled'`); n != 1 {
					t.Error("the breaker doesn't learn of the failure before its death is told")
				}
				l.sweep(t) // nobody told of the death yet
				l.capture(t, name, "no answer")
			default:
				l.record(t, id, failed503)
			}
			check := func(when string) {
				t.Helper()
				page, err := board.Items(t.Context(), l.pool, batch, board.ItemQuery{})
				if err != nil || len(page.Rows) != 1 || page.Rows[0].NextGeneration != 2 || page.Rows[0].NewFingerprint == "" || page.Rows[0].SameFailure() {
					t.Errorf("%s: the batch's item %+v, %v", when, page.Rows, err)
				}
				failures, _, err := board.Failures(t.Context(), l.pool, batch)
				if err != nil || len(failures) != 1 || failures[0].Fingerprint == "" || failures[0].Same || failures[0].N != 1 {
					t.Errorf("%s: failures %+v, %v", when, failures, err)
				}
				d, err := dlq.Detail(t.Context(), l.pool, l.oncall, job, dlq.DetailQuery{})
				if err != nil {
					t.Fatal(err)
				}
				if d.Job.Status != "open" || d.Job.Generation != 2 || len(d.Deaths) != 1 || d.Deaths[0].Replay == nil || d.Deaths[0].Replay.ID != id || d.Deaths[0].Replay.BatchID != batch {
					t.Errorf("%s: the job is %s at generation %d, deaths %+v", when, d.Job.Status, d.Job.Generation, d.Deaths)
				}
				if len(d.Replays) != 1 || d.Replays[0].NextGeneration != 2 {
					t.Errorf("%s: replays %+v", when, d.Replays)
				}
			}
			check("before the sweep")
			l.sweep(t)
			check("after the sweep")
			if n := l.count(t, `SELECT count(*) FROM redrive.replays WHERE next_generation = 2 AND new_fingerprint <> '' AND new_category <> ''`); n != 1 {
				t.Error("the sweep didn't link the death")
			}
		})
	}
}
