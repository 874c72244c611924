package replay_test

import (
	"context"
	"testing"

	"github.com/redrive-dlq/redrive/dlq/board"
	"github.com/redrive-dlq/redrive/dlq/replay"
)

func (b *bundle) leftOut(t *testing.T, id int64) board.LeftOut {
	t.Helper()
	row, err := board.BatchOf(t.Context(), b.pool, b.oncall, id)
	if err != nil {
		t.Fatal(err)
	}
	l, err := board.LeftOutOf(t.Context(), b.pool, row)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestPlanShowsWhatCommitsLater: ids are given before transactions commit, so a
// job below the plan's last one may become visible after it. It is shown as left
// out, once, and never taken along.
func TestPlanShowsWhatCommitsLater(t *testing.T) {
	t.Parallel()
	b := setup(t)
	tx, err := b.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
	_, err = tx.Exec(t.Context(), `
		INSERT INTO redrive.dead_jobs (environment, source, job_id, job_type, key_scope, idempotency_key, category, fingerprint, died_at, attempt_count)
		VALUES ('production', 'slow', '1', 'send_welcome_email', 'welcome', 'slow', 'transient', 'f', now(), 3)`)
	if err != nil {
		t.Fatal(err)
	}
	b.job(t, jobOpts{id: "in time"})
	id := b.planned(t, types("send_welcome_email"))
	if l := b.leftOut(t, id); l.Arrived != 0 {
		t.Errorf("%d arrived before anything did", l.Arrived)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.job(t, jobOpts{id: "after"})
	if l := b.leftOut(t, id); l.Arrived != 2 {
		t.Errorf("%d are shown as left out, want the one that committed late and the one that came after", l.Arrived)
	}
	if err := b.svc.Rejudge(t.Context(), b.oncall, id); err != nil {
		t.Fatal(err)
	}
	b.freeze(t, id)
	if n := b.count(t, `SELECT count(*) FROM redrive.replays WHERE batch_id = $1`, id); n != 1 {
		t.Errorf("%d members, want the one that was there", n)
	}
}

// TestPlanSaysThatItIsOlderThanAFix: a fix declared elsewhere changes no plan
// that people look at; it says how many jobs it would lift.
func TestPlanSaysThatItIsOlderThanAFix(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.job(t, jobOpts{id: "fine"})
	first := b.job(t, jobOpts{id: "first", category: "invalid_input"})
	b.job(t, jobOpts{id: "second", category: "auth"})
	b.exec(t, `UPDATE redrive.dead_jobs SET fingerprint = 'bad' WHERE id = $1`, first)
	b.exec(t, `
		INSERT INTO redrive.groups (fingerprint, job_type, category, error_class, template, first_seen, last_seen, sample_death)
		VALUES ('bad', 'send_welcome_email', 'invalid_input', 'E', 'refused', now(), now(), 1)`)
	id := b.planned(t, types("send_welcome_email"))
	if l := b.leftOut(t, id); l.Fixed != 0 {
		t.Errorf("%d fixed before any fix", l.Fixed)
	}
	before := b.hash(t, id)
	fix := replay.FixOrder{Environment: "production", Fingerprint: "bad", Kind: "ticket", Ref: "OPS-7", Reason: "the test says so"}
	if err := b.svc.DeclareFix(t.Context(), b.oncall, fix); err != nil {
		t.Fatal(err)
	}
	if l := b.leftOut(t, id); l.Fixed != 1 || b.hash(t, id) != before {
		t.Errorf("%d fixed since, want 1 and the plan as it was", l.Fixed)
	}
	if err := b.svc.Rejudge(t.Context(), b.oncall, id); err != nil {
		t.Fatal(err)
	}
	b.freeze(t, id)
	if l := b.leftOut(t, id); l.Fixed != 0 || b.verdict(t, id, first) != replay.Eligible {
		t.Errorf("judged again: %d still fixed since, job is %s", l.Fixed, b.verdict(t, id, first))
	}
}
