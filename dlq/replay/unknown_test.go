package replay_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/dlq"
	"github.com/redrive-dlq/redrive/dlq/ledger"
	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/dlq/replay"
)

func welcome(key string) ledger.Key {
	return ledger.Key{Environment: "production", Scope: "welcome", Key: key}
}

// out orders and releases the replay of a job.
func (b *bundle) out(t *testing.T, id int64) int64 {
	t.Helper()
	o, err := b.order(id)
	if err != nil {
		t.Fatal(err)
	}
	if b.release(t) != 1 {
		t.Fatal("it didn't leave")
	}
	return o.ReplayID
}

func (b *bundle) record(t *testing.T, replayID int64, e replay.End) {
	t.Helper()
	first, err := b.svc.Record(t.Context(), replayID, e)
	if err != nil || !first {
		t.Fatal(first, err)
	}
}

// diesAgain captures a later death of a job with a failure that leaves no
// doubt by itself.
func (b *bundle) diesAgain(t *testing.T, jobID, key string) {
	t.Helper()
	raw, err := json.Marshal(map[string]any{
		"environment": "production", "source": "test", "job_id": jobID, "job_type": "send_welcome_email", "idempotency_key": key,
		"payload": map[string]int{"a": 1}, "dead_at": time.Now().Format(time.RFC3339Nano), "attempt_count": 9,
		"attempts": []map[string]any{{"error_class": "TemplateError", "message": "template not found"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	doc, err := dlq.ParseDocument(raw, dlq.Defaults{})
	if err != nil {
		t.Fatal(err)
	}
	err = pgx.BeginFunc(t.Context(), b.pool, func(tx pgx.Tx) error {
		out, err := dlq.NewCapturer(scopes{}, nil, nil).Capture(t.Context(), tx, []*dlq.Document{doc})
		if err == nil && out[0].Outcome != dlq.CaptureUpdated {
			t.Fatalf("captured as %+v", out[0])
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

type scopes struct{}

func (scopes) Scope(string) string        { return "welcome" }
func (scopes) HasSideEffects(string) bool { return true }

// TestAnOldLedgerRowSaysNothingOfThisRun: "failed" from an earlier run doesn't
// settle an ambiguous end of this one; "failed" from this run does.
func TestAnOldLedgerRowSaysNothingOfThisRun(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ambiguous := replay.End{Outcome: replay.Failed, Code: "http_504", EffectUnknown: true}
	for _, key := range []string{"old", "new"} {
		if _, err := ledger.Begin(t.Context(), b.pool, welcome(key)); err != nil {
			t.Fatal(err)
		}
		if err := ledger.Fail(t.Context(), b.pool, welcome(key), nil); err != nil {
			t.Fatal(err)
		}
	}
	old, fresh := b.job(t, jobOpts{id: "1", key: "old"}), b.job(t, jobOpts{id: "2", key: "new"})
	b.record(t, b.out(t, old), ambiguous)
	if s, e, _ := b.status(t, old); s != "open" || e != "unknown" {
		t.Errorf("a 504 over an old row: %s %s, want open unknown", s, e)
	}
	r := b.out(t, fresh)
	if a, err := ledger.Begin(t.Context(), b.pool, welcome("new")); a != ledger.Begun || err != nil {
		t.Fatal(a, err)
	}
	if err := ledger.Fail(t.Context(), b.pool, welcome("new"), nil); err != nil {
		t.Fatal(err)
	}
	b.record(t, r, ambiguous)
	if s, e, _ := b.status(t, fresh); s != "open" || e != "none" {
		t.Errorf("a 504 whose worker wrote that it failed: %s %s, want open none", s, e)
	}
	// A later death doesn't make the old row speak of it either.
	b.diesAgain(t, "1", "old")
	if _, e, _ := b.status(t, old); e != "unknown" {
		t.Errorf("after a later death the effect is %s, want unknown", e)
	}
}

// TestOurClockDoesntMakeSuccessOld: the ledger's times are the database's, the
// release's are ours.
func TestOurClockDoesntMakeSuccessOld(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.svc.Now = func() time.Time { return time.Now().Add(time.Minute) }
	r := b.out(t, b.job(t, jobOpts{id: "1", key: "k"}))
	if err := ledger.Finish(t.Context(), b.pool, welcome("k"), nil); err != nil {
		t.Fatal(err)
	}
	b.record(t, r, replay.End{Outcome: replay.Succeeded})
	if _, out, _ := b.outcome(t, r); out != replay.Succeeded {
		t.Fatal(out)
	}
}

// TestNeverDeliveredDidntSucceed: somebody else did the effect while the
// replay waited for its target.
func TestNeverDeliveredDidntSucceed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.out(t, b.job(t, jobOpts{id: "1", key: "k"}))
	b.exec(t, `UPDATE redrive.replays SET delivered_at = NULL`)
	if err := ledger.Finish(t.Context(), b.pool, welcome("k"), nil); err != nil {
		t.Fatal(err)
	}
	b.svc.Now = func() time.Time { return time.Now().Add(time.Hour) }
	if n, err := b.svc.Expire(t.Context()); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	if _, out, _ := b.outcome(t, r); out != replay.AlreadyDone {
		t.Fatalf("%s, want already_done", out)
	}
}

// TestUnknownSurvivesAnotherDeath: a replay's end that nobody knows, and a
// death from elsewhere, in both orders and with and without a key.
func TestUnknownSurvivesAnotherDeath(t *testing.T) {
	t.Parallel()
	b := setup(t)
	lost := replay.End{Outcome: replay.Unconfirmed, Code: "no_answer", EffectUnknown: true}
	for _, c := range []struct {
		id, key    string
		deathFirst bool
	}{{"1", "a", true}, {"2", "b", false}, {"3", "", true}, {"4", "", false}} {
		id := b.job(t, jobOpts{id: c.id, key: c.key})
		r := b.out(t, id)
		if c.deathFirst {
			b.diesAgain(t, c.id, c.key)
		}
		b.record(t, r, lost)
		if !c.deathFirst {
			b.diesAgain(t, c.id, c.key)
		}
		if s, e, _ := b.status(t, id); s != "open" || e != "unknown" {
			t.Errorf("%+v: %s %s, want open unknown", c, s, e)
		}
		v, err := b.svc.Judge(t.Context(), b.oncall, id)
		if err != nil || v.Code != replay.EffectUnknown || v.Lift != replay.LiftSettle {
			t.Errorf("%+v: verdict %s, %v", c, v.Code, err)
		}
	}
}

// TestUnknownBlocksEveryJobOfItsKey: two jobs, one effect.
func TestUnknownBlocksEveryJobOfItsKey(t *testing.T) {
	t.Parallel()
	b := setup(t)
	a, twin := b.job(t, jobOpts{id: "1", key: "k"}), b.job(t, jobOpts{id: "2", key: "k"})
	b.record(t, b.out(t, a), replay.End{Outcome: replay.Unconfirmed, EffectUnknown: true})
	if _, err := b.order(twin); !problem.Is(err, problem.Conflict) {
		t.Fatalf("the twin of an unknown effect was ordered: %v", err)
	}
	if err := ledger.Settle(t.Context(), b.pool, b.oncall, a, ledger.Settlement{Reason: "the provider has nothing"}); err != nil {
		t.Fatal(err)
	}
	b.out(t, twin)
}

// TestUnknownMeanwhileStopsAScheduledReplay: an effect that became unknown
// between order and release isn't repeated.
func TestUnknownMeanwhileStopsAScheduledReplay(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id, twin := b.job(t, jobOpts{id: "1", key: "k"}), b.job(t, jobOpts{id: "2", key: "k"})
	o, err := b.svc.One(t.Context(), b.oncall, replay.Order{DeadJobID: id, Generation: 1, PayloadVersion: 1, Reason: "later", At: time.Now().Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	b.exec(t, `UPDATE redrive.dead_jobs SET effect = 'unknown' WHERE id = $1`, twin)
	b.svc.Now = func() time.Time { return time.Now().Add(2 * time.Hour) }
	if b.release(t) != 0 {
		t.Fatal("it left")
	}
	if _, out, code := b.outcome(t, o.ReplayID); out != replay.Skipped || code != replay.EffectUnknown {
		t.Fatal(out, code)
	}
	if s, e, _ := b.status(t, id); s != "open" || e != "unknown" {
		t.Fatal(s, e)
	}
}
