package replay_test

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/dlq/ledger"
	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/dlq/replay"
)

// TestOneJobsEffectIsItsKeys: a worker that writes no ledger succeeded, or said
// that its effect is done, or completed at its source. The other job of the key
// would do it twice, at the order and at the release.
func TestOneJobsEffectIsItsKeys(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for name, done := range map[string]func(id int64){
		"a replay succeeded": func(id int64) { b.record(t, b.out(t, id), replay.End{Outcome: replay.Succeeded, EffectID: "m_1"}) },
		"the worker said so": func(id int64) {
			b.exec(t, `UPDATE redrive.dead_jobs SET effect = 'done', effect_id = 'm_1' WHERE id = $1`, id)
		},
		"it completed at its source": func(id int64) {
			b.exec(t, `UPDATE redrive.dead_jobs SET status = 'recovered', effect_id = 'm_1' WHERE id = $1`, id)
		},
	} {
		first, second := b.job(t, jobOpts{id: name + "1", key: name}), b.job(t, jobOpts{id: name + "2", key: name})
		staging := b.job(t, jobOpts{id: name + "3", key: name, env: "staging"})
		done(first)
		v, err := b.svc.Judge(t.Context(), b.oncall, second)
		if err != nil || v.Code != replay.KeyDone || v.EffectID != "m_1" {
			t.Errorf("%s: %+v %v", name, v, err)
		}
		if _, err := b.order(second); !problem.Is(err, problem.Conflict) {
			t.Errorf("%s: ordering the other gave %v", name, err)
		}
		if v, err := b.svc.Judge(t.Context(), b.oncall, staging); err != nil || v.Code != replay.Eligible {
			t.Errorf("%s: staging: %+v %v", name, v, err)
		}
	}
	first, second := b.job(t, jobOpts{id: "1", key: "k"}), b.job(t, jobOpts{id: "2", key: "k"})
	o, err := b.svc.One(t.Context(), b.oncall, replay.Order{DeadJobID: second, Generation: 1, PayloadVersion: 1, Reason: "later", At: time.Now().Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	b.exec(t, `UPDATE redrive.dead_jobs SET effect = 'done', effect_id = 'm_2' WHERE id = $1`, first)
	b.svc.Now = func() time.Time { return time.Now().Add(2 * time.Hour) }
	if b.release(t) != 0 {
		t.Fatal("it left")
	}
	if _, out, code := b.outcome(t, o.ReplayID); out != replay.AlreadyDone || code != replay.KeyDone {
		t.Fatal(out, code)
	}
}

// TestSettleDoesntContradictTheLedger: what is done can't be said not to have
// happened.
func TestSettleDoesntContradictTheLedger(t *testing.T) {
	t.Parallel()
	b := setup(t)
	if err := ledger.Finish(t.Context(), b.pool, welcome("k"), nil); err != nil {
		t.Fatal(err)
	}
	id := b.job(t, jobOpts{id: "1", key: "k", effect: "unknown"}) // captured at the same moment
	err := ledger.Settle(t.Context(), b.pool, b.oncall, id, ledger.Settlement{Reason: "found nothing"})
	if !problem.Is(err, problem.Conflict) {
		t.Fatal(err)
	}
	if n := b.count(t, `SELECT count(*) FROM redrive.audit_entries WHERE action = 'effect.did_not_happen'`); n != 0 {
		t.Fatal("the log says that it did not happen")
	}
}

// TestHugeAttemptNumberDoesntLoseAnOutcome: documents may say anything.
func TestHugeAttemptNumberDoesntLoseAnOutcome(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.job(t, jobOpts{id: "1"})
	b.exec(t, `UPDATE redrive.dead_jobs SET attempt_count = $2 WHERE id = $1`, id, math.MaxInt32)
	b.record(t, b.out(t, id), replay.End{Outcome: replay.Failed, Failure: &replay.Failure{Class: "HTTP 503", Category: "transient", Fingerprint: "g"}})
	if n := b.count(t, `SELECT generation FROM redrive.dead_jobs WHERE id = $1`, id); n != 2 {
		t.Fatalf("generation %d", n)
	}
}

// TestBatchEndsWhenItsLastTwoEndTogether: neither transaction sees the other's.
func TestBatchEndsWhenItsLastTwoEndTogether(t *testing.T) {
	t.Parallel()
	b := setup(t)
	one, two := b.out(t, b.job(t, jobOpts{id: "1"})), b.out(t, b.job(t, jobOpts{id: "2"}))
	b.exec(t, `UPDATE redrive.replays SET batch_id = (SELECT batch_id FROM redrive.replays WHERE id = $1) WHERE id = $2`, one, two)
	var txs []pgx.Tx
	for _, id := range []int64{one, two} {
		tx, err := b.pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback(context.Background()) }()
		if _, err := b.svc.RecordTx(t.Context(), tx, id, replay.End{Outcome: replay.Succeeded}); err != nil {
			t.Fatal(err)
		}
		txs = append(txs, tx)
	}
	for _, tx := range txs {
		if err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := b.svc.EndBatches(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := b.count(t, `SELECT count(*) FROM redrive.batches b JOIN redrive.replays r ON r.batch_id = b.id WHERE b.state = 'running'`); n != 0 {
		t.Fatal("the batch runs for ever")
	}
}
