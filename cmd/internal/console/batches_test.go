package console

import (
	"log/slog"
	"testing"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/redrive-dlq/redrive/dlq/replay"
	"github.com/redrive-dlq/redrive/migrations/testdb"
)

// Work on a batch outlives a database that fails for a night: were it given up,
// the batch would be planned, started or cancelled for ever.
func TestBatchWorkIsNotGivenUp(t *testing.T) {
	t.Parallel()
	pool := testdb.New(t)
	e, err := newEngine(pool, &replay.Service{Pool: pool}, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(t.Context()) }()
	if err := e.work(t.Context(), tx, replay.WorkPlan, 1); err != nil {
		t.Fatal(err)
	}
	var tries int
	if err := tx.QueryRow(t.Context(), `SELECT max_attempts FROM redrive.river_job WHERE kind = 'redrive_batch'`).Scan(&tries); err != nil {
		t.Fatal(err)
	}
	var goesOn time.Duration
	w := &batchWorker{}
	for attempt := 1; attempt <= tries && goesOn < 24*time.Hour; attempt++ {
		goesOn += time.Until(w.NextRetry(&river.Job[batchArgs]{JobRow: &rivertype.JobRow{Attempt: attempt}}))
	}
	if goesOn < 24*time.Hour {
		t.Errorf("after %d tries in %s it is given up", tries, goesOn.Round(time.Second))
	}
	if limit := w.Timeout(nil); limit < 2*batchTurn {
		t.Errorf("a part that begins at the end of a turn has %s", limit-batchTurn)
	}
}
