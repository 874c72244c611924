package replay_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
)

// outAll releases all that may leave and returns what is out, by id.
func (l *loop) outAll(t *testing.T) []int64 {
	t.Helper()
	until(t, "everything leaves", func() bool { return l.release(t) == 0 })
	rows, err := l.pool.Query(t.Context(), `SELECT id FROM redrive.replays WHERE state = 'released' ORDER BY id`)
	if err != nil {
		t.Fatal(err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

func (l *loop) sweep(t *testing.T) {
	t.Helper()
	if _, err := l.svc.EndBatches(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestTwoLastOutcomesAtOnce holds two outcomes open until both are written:
// neither sees the other, and the batch ends all the same.
func TestTwoLastOutcomesAtOnce(t *testing.T) {
	t.Parallel()
	l := loopSetup(t, fast, 100)
	batch := l.batch(t, members{n: 2})
	ids := l.outAll(t)
	if len(ids) != 2 {
		t.Fatalf("%d are out, want 2", len(ids))
	}
	err := pgx.BeginFunc(t.Context(), l.pool, func(one pgx.Tx) error {
		return pgx.BeginFunc(t.Context(), l.pool, func(two pgx.Tx) error {
			_, err := l.svc.RecordTx(t.Context(), one, ids[0], succeeded)
			if err == nil {
				_, err = l.svc.RecordTx(t.Context(), two, ids[1], succeeded)
			}
			return err
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	if s := l.state(t, batch); s != "running" {
		t.Fatalf("%s: the two weren't at once", s)
	}
	l.sweep(t)
	if s := l.state(t, batch); s != "done" {
		t.Errorf("%s, want done", s)
	}
	if n := l.count(t, `SELECT count(*) FROM redrive.runs`); n != 0 {
		t.Errorf("%d runs of batches that ended", n)
	}
}

// TestBatchEndsWhenNothingIsLeft lets the last outcome end a batch, whatever
// state it is in, and no earlier one.
func TestBatchEndsWhenNothingIsLeft(t *testing.T) {
	t.Parallel()
	for state, want := range map[string]string{"running": "done", "paused": "done", "cancelling": "cancelled"} {
		t.Run(state, func(t *testing.T) {
			t.Parallel()
			l := loopSetup(t, fast, 100)
			batch := l.batch(t, members{n: 3})
			ids := l.outAll(t)
			l.exec(t, `UPDATE redrive.batches SET state = $2 WHERE id = $1`, batch, state)
			for i, id := range ids {
				l.sweep(t)
				if s := l.state(t, batch); s != state {
					t.Fatalf("%s after %d of %d outcomes", s, i, len(ids))
				}
				l.record(t, id, succeeded)
			}
			l.sweep(t)
			if s := l.state(t, batch); s != want {
				t.Errorf("%s, want %s", s, want)
			}
		})
	}
	t.Run("not all taken yet", func(t *testing.T) {
		t.Parallel()
		l := loopSetup(t, fast, 100)
		batch := l.batch(t, members{n: 1})
		ids := l.outAll(t)
		l.exec(t, `UPDATE redrive.batches SET activated_at = NULL WHERE id = $1`, batch)
		l.record(t, ids[0], succeeded)
		l.sweep(t)
		if s := l.state(t, batch); s != "running" {
			t.Errorf("%s, though members are still to be taken", s)
		}
	})
}
