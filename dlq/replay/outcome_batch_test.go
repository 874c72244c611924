package replay_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/dlq/replay"
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

// TestAnOutcomeReadsNoOtherReplays: what one costs doesn't grow with what the
// batch has behind it and before it.
func TestAnOutcomeReadsNoOtherReplays(t *testing.T) {
	t.Parallel()
	l := loopSetup(t, fast, 100)
	l.batch(t, members{n: 20_000, entity: `CASE WHEN i % 2 = 0 THEN 'e' || i % 5000 ELSE '' END`, key: `'k' || i`})
	l.exec(t, `
		UPDATE redrive.replays
		SET state = 'ended', outcome = 'succeeded', outcome_at = now(), released_at = now()
		WHERE id < 14000`)
	l.outAll(t)
	for _, table := range []string{"replays", "dead_jobs", "batches", "runs", "batch_deltas"} {
		l.exec(t, `ANALYZE redrive.`+table)
	}
	for _, e := range []replay.End{succeeded, failed503, {Outcome: replay.Unconfirmed, Code: "deadline"}} {
		id := int64(l.count(t, `SELECT max(id) FROM redrive.replays WHERE state = 'released'`))
		err := pgx.BeginFunc(t.Context(), l.pool, func(tx pgx.Tx) error {
			before, err := rowsRead(t.Context(), tx)
			if err != nil {
				return err
			}
			if _, err := l.svc.RecordTx(t.Context(), tx, id, e); err != nil {
				return err
			}
			after, err := rowsRead(t.Context(), tx)
			if after-before > 20 {
				t.Errorf("%s read %d rows of replays", e.Outcome, after-before)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// rowsRead is how many rows of replays this connection has read and not yet told.
func rowsRead(ctx context.Context, tx pgx.Tx) (n int64, err error) {
	err = tx.QueryRow(ctx, `
		SELECT seq_tup_read + idx_tup_fetch
		FROM pg_stat_xact_user_tables
		WHERE schemaname = 'redrive' AND relname = 'replays'`).Scan(&n)
	return n, err
}
