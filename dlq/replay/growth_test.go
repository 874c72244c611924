package replay_test

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/redrive-dlq/redrive/dlq/ledger"
	"github.com/redrive-dlq/redrive/dlq/replay"
)

// TestNothingReadsTheHistory fills the replays' history and expects that
// judging, ordering, releasing and ending a replay never read it through.
func TestNothingReadsTheHistory(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.job(t, jobOpts{id: "1", key: "k", entity: "e"})
	b.exec(t, `
		WITH b AS (
			INSERT INTO redrive.batches (environment, job_type, kind, state, cutoff, created_by)
			VALUES ('production', 'send_welcome_email', 'batch', 'done', now(), 'x')
			RETURNING id)
		INSERT INTO redrive.replays (batch_id, dead_job_id, generation, payload_version, environment, source, job_id, job_type, key_scope, idempotency_key, entity, state, outcome)
		SELECT b.id, -i, 1, 1, 'production', 'test', i::text, 'send_welcome_email', 'welcome', 'k' || i, 'e' || i, 'ended', 'succeeded'
		FROM b, generate_series(1, 5000) i`)
	b.exec(t, `ANALYZE redrive.replays`)
	// One connection, so that its statistics are written when we ask for them.
	cfg, err := pgxpool.ParseConfig(b.pool.Config().ConnString())
	if err != nil {
		t.Fatal(err)
	}
	cfg.MaxConns = 1
	one, err := pgxpool.NewWithConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer one.Close()
	b.svc.Pool = one
	read := func() (n int) {
		t.Helper()
		if _, err := one.Exec(t.Context(), `SELECT pg_stat_force_next_flush()`); err != nil {
			t.Fatal(err)
		}
		err := one.QueryRow(t.Context(), `SELECT seq_tup_read FROM pg_stat_user_tables WHERE schemaname = 'redrive' AND relname = 'replays'`).Scan(&n)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	var replayID int64
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"judge", func() error { _, err := b.svc.Judge(t.Context(), b.oncall, id); return err }},
		{"order", func() error { o, err := b.order(id); replayID = o.ReplayID; return err }},
		{"release", func() error { _, err := b.svc.ReleaseDue(t.Context()); return err }},
		{"expire", func() error { _, err := b.svc.Expire(t.Context()); return err }},
		{"in flight", func() error { _, err := b.svc.InFlight(t.Context(), "river", 0, 500); return err }},
		{"end", func() error {
			_, err := b.svc.Record(t.Context(), replayID, replay.End{Outcome: replay.Unconfirmed, EffectUnknown: true})
			return err
		}},
		{"settle", func() error {
			return ledger.Settle(t.Context(), one, b.oncall, id, ledger.Settlement{Happened: true, EffectID: "m", Reason: "found it"})
		}},
	} {
		before := read()
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		if n := read() - before; n != 0 {
			t.Errorf("%s read %d rows of the history", step.name, n)
		}
	}
}
