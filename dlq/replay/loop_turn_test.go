package replay_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/redrive-dlq/redrive/dlq/replay"
)

// uniqueTarget is one whose own tables have unique keys.
type uniqueTarget struct{ *departures }

func (uniqueTarget) Release(context.Context, pgx.Tx, []replay.Item) ([]replay.Released, error) {
	return nil, &pgconn.PgError{Code: "23505", SchemaName: "elsewhere", TableName: "river_job", Message: "the test says so"}
}

// TestAnothersUniqueKeyIsAFault: it says nothing of who holds a job, key or
// entity here, so that nobody would ever let the replay go on.
func TestAnothersUniqueKeyIsAFault(t *testing.T) {
	t.Parallel()
	l := loopSetup(t, fast, 1000)
	l.svc.Targets["http"] = uniqueTarget{l.out}
	id := l.batch(t, members{n: 3})
	now := time.Now()
	l.svc.Now = func() time.Time { return now }
	for range 6 {
		l.release(t)
		if _, err := l.svc.Unblock(t.Context()); err != nil {
			t.Fatal(err)
		}
		now = now.Add(31 * time.Second)
	}
	if n := l.count(t, `SELECT count(*) FROM redrive.replays WHERE outcome_code = 'release_failed'`); n != 3 {
		t.Fatalf("%d ended by their faults", n)
	}
	if s := l.state(t, id); s != "done" {
		t.Fatal(s)
	}
}

// TestASingleToAnOldDestinationHoldsNobodyUp: it was ordered before the
// catalogue sent its type elsewhere, and its own destination is on hold.
func TestASingleToAnOldDestinationHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	l := loopSetup(t, fast, 1000)
	old := l.batch(t, members{n: 1})
	l.exec(t, `UPDATE redrive.batches SET kind = 'single', destination = 'http://127.0.0.1:1/old', target = '{"url": "http://127.0.0.1:1/old"}' WHERE id = $1`, old)
	l.exec(t, `UPDATE redrive.replays SET destination = 'http://127.0.0.1:1/old' WHERE batch_id = $1`, old)
	l.exec(t, `INSERT INTO redrive.destinations (environment, name) VALUES ('production', 'http://127.0.0.1:1/old')`)
	if _, err := l.svc.PlaceHold(t.Context(), l.oncall, replay.Hold{Environment: "production", Destination: "http://127.0.0.1:1/old"}); err != nil {
		t.Fatal(err)
	}
	l.batch(t, members{n: 10})
	for range 3 {
		l.release(t)
	}
	if n := len(l.out.list()); n != 10 {
		t.Fatalf("%d of 10 left", n)
	}
}
