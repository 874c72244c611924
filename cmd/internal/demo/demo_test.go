package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/redrive-dlq/redrive/cmd/internal/demo/providers"
	"github.com/redrive-dlq/redrive/migrations/testdb"
)

type bundle struct {
	t    *testing.T
	w    *World
	pool *pgxpool.Pool
}

func setup(t *testing.T) bundle {
	t.Helper()
	pool := testdb.New(t)
	w, err := New(pool, Options{Trickle: -1, Now: func() time.Time { return anchor }})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return bundle{t, w, pool}
}

func (b bundle) start() {
	b.t.Helper()
	if err := b.w.Start(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
		defer cancel()
		if err := b.w.Stop(ctx); err != nil {
			b.t.Error(err)
		}
	})
}

type row struct {
	ID       int64
	State    string
	Attempt  int
	Errors   []string
	Metadata json.RawMessage
}

func (b bundle) job(environment, key string) row {
	b.t.Helper()
	rows, err := b.pool.Query(b.t.Context(), fmt.Sprintf(`
		SELECT id, state::text AS state, attempt, coalesce(errors::text[], '{}') AS errors, metadata
		FROM %s.river_job
		WHERE metadata -> 'redrive:job' ->> 'idempotency_key' = $1
		ORDER BY id LIMIT 1`, rivers[environment]), key)
	if err != nil {
		b.t.Fatal(err)
	}
	r, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[row])
	if err != nil {
		b.t.Fatalf("job of %s: %v", key, err)
	}
	return r
}

// settled waits until the workers are done with a job.
func (b bundle) settled(environment, key string) row {
	b.t.Helper()
	deadline := time.Now().Add(60 * time.Second)
	for {
		r := b.job(environment, key)
		if r.State == "completed" || r.State == "discarded" || r.State == "cancelled" {
			return r
		}
		if time.Now().After(deadline) {
			b.t.Fatalf("job of %s is still %s after attempt %d", key, r.State, r.Attempt)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func (b bundle) effects(environment, key string) []providers.Effect {
	b.t.Helper()
	list, err := providers.Effects(b.t.Context(), b.pool, environment, "", "", key)
	if err != nil {
		b.t.Fatal(err)
	}
	return list
}

func (b bundle) ledger(environment, scope, key string) (state string) {
	b.t.Helper()
	err := b.pool.QueryRow(b.t.Context(), `SELECT state FROM redrive.effect_of($1, $2, $3)`, environment, scope, key).Scan(&state)
	if err != nil {
		b.t.Fatalf("ledger of %s: %v", key, err)
	}
	return state
}

// replay is what Redrive does: corrected args, one more attempt.
func (b bundle) replay(environment, key, args string) {
	b.t.Helper()
	r := b.job(environment, key)
	tag, err := b.pool.Exec(b.t.Context(), fmt.Sprintf(`
		UPDATE %s.river_job
		SET args = args || $2::jsonb, state = 'available', finalized_at = NULL, scheduled_at = now(), max_attempts = attempt + 1
		WHERE id = $1`, rivers[environment]), r.ID, args)
	if err != nil || tag.RowsAffected() != 1 {
		b.t.Fatalf("replay %s: %v", key, err)
	}
}

func (r row) death(t *testing.T) deathFacts {
	t.Helper()
	var m struct {
		Death deathFacts `json:"redrive:death"`
	}
	if err := json.Unmarshal(r.Metadata, &m); err != nil {
		t.Fatal(err)
	}
	return m.Death
}

func TestSeedIsIdempotentAndTopsUp(t *testing.T) {
	t.Parallel()
	b := setup(t)
	count := func() (n int) {
		for _, schema := range b.w.Rivers() {
			var c int
			if err := b.pool.QueryRow(t.Context(), `SELECT count(*) FROM `+schema+`.river_job WHERE state IN ('discarded', 'cancelled')`).Scan(&c); err != nil {
				t.Fatal(err)
			}
			n += c
		}
		return n
	}
	for _, step := range []struct{ seed, want int }{{120, 120}, {120, 120}, {700, 700}, {50, 700}} {
		if err := b.w.Seed(t.Context(), step.seed); err != nil {
			t.Fatal(err)
		}
		if got := count(); got != step.want {
			t.Fatalf("after Seed(%d): %d jobs, want %d", step.seed, got, step.want)
		}
	}
	r := b.job("production", ArticleSendID)
	if r.State != "cancelled" || r.Attempt != 3 || len(r.Errors) != 3 || !strings.Contains(r.Errors[2], "JobCancelError: InvalidRecipient: ") {
		t.Errorf("the article's job: %+v", r)
	}
	if d := r.death(t); d.GaveUp != "not_retryable" || d.Reason.Code != "invalid_recipient" || d.Effect != "none" {
		t.Errorf("its death: %+v", d)
	}
	if got := b.effects("production", "charge:8834:a1"); len(got) != 1 {
		t.Errorf("the lost charge isn't at the provider: %+v", got)
	}
	if b.ledger("production", "charge", "charge:8834:a1") != "begun" || b.ledger("production", "receipt", "receipt:8790:done") != "done" {
		t.Error("the ledger doesn't tell the seeded stories")
	}
}

func TestCorrectedReplaySendsExactlyOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	if err := b.w.Seed(t.Context(), len(specials)); err != nil {
		t.Fatal(err)
	}
	b.start()
	// Uncorrected, it dies again, and nothing is sent.
	b.replay("production", ArticleSendID, `{}`)
	if r := b.settled("production", ArticleSendID); r.State != "discarded" || r.Attempt != 4 || len(b.effects("production", ArticleSendID)) != 0 {
		t.Fatalf("got %+v", r)
	}
	for range 2 { // the second replay finds the effect in the ledger
		b.replay("production", ArticleSendID, `{"to_email": "alex@example.com"}`)
		if r := b.settled("production", ArticleSendID); r.State != "completed" {
			t.Fatalf("got %+v", r)
		}
	}
	sent := b.effects("production", ArticleSendID)
	if len(sent) != 1 || sent[0].Requests != 1 || b.ledger("production", "welcome", ArticleSendID) != "done" {
		t.Fatalf("sent: %+v", sent)
	}
	var m struct {
		Output string `json:"output"`
	}
	if err := json.Unmarshal(b.job("production", ArticleSendID).Metadata, &m); err != nil || m.Output != "already_done" {
		t.Errorf("output %+v, %v", m.Output, err)
	}
	// The twin in staging was not touched by any of this.
	if r := b.job("staging", ArticleSendID); r.State != "cancelled" || r.Attempt != 1 {
		t.Errorf("the staging job: %+v", r)
	}
}

func TestWorkersDieForReal(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.start()
	const outage, lost, charge = "send_outage", "send_lost", "charge:1:x"
	mail := func(key string) task {
		return sendWelcomeEmail{UserID: 1, ToEmail: "a@example.com", TemplateID: "welcome_v3", SendID: key}
	}
	hang := providers.Fault{Mode: providers.HangAfter}
	for _, add := range []struct {
		args task
		s    scenario
	}{
		{mail(outage), scenario{fault: overload}},
		{mail(lost), scenario{fault: hang}},
		{chargeCard{OrderID: "1", CustomerID: 1, AmountCents: 100, Currency: "EUR", CardToken: "tok_1", ChargeKey: charge}, scenario{fault: hang}},
	} {
		if err := b.w.add(t.Context(), "development", add.args, add.s, jobFacts{Tenant: "acme"}); err != nil {
			t.Fatal(err)
		}
	}
	// An outage: three attempts, nothing sent, the ledger knows that it failed.
	r := b.settled("development", outage)
	if d := r.death(t); r.State != "discarded" || len(r.Errors) != 3 || d.GaveUp != "attempts" || d.Category != "transient" || d.Effect != "none" {
		t.Errorf("outage: %+v, %+v", r, d)
	}
	if len(b.effects("development", outage)) != 0 || b.ledger("development", "welcome", outage) != "failed" {
		t.Error("the outage had an effect")
	}
	// Sent, but the answer was lost: the worker doesn't send again, and says so.
	r = b.settled("development", lost)
	if d := r.death(t); r.State != "cancelled" || len(r.Errors) != 1 || d.GaveUp != "not_retryable" || d.Reason.Code != "timeout" || d.Effect != "unknown" {
		t.Errorf("lost answer: %+v, %+v", r, d)
	}
	if len(b.effects("development", lost)) != 1 || b.ledger("development", "welcome", lost) != "begun" {
		t.Error("the lost message must be sent once and be unknown")
	}
	// Run again unasked (a crash does that), it stops at the ledger.
	b.replay("development", lost, `{}`)
	r = b.settled("development", lost)
	if d := r.death(t); r.State != "discarded" || d.Reason.Code != "effect_unknown" || d.Effect != "unknown" || len(b.effects("development", lost)) != 1 {
		t.Errorf("lost answer, run again: %+v, %+v", r, d)
	}
	// A charge may be asked for again: the provider deduplicates.
	r = b.settled("development", charge)
	if d := r.death(t); r.State != "discarded" || len(r.Errors) != 3 || d.Effect != "unknown" {
		t.Errorf("charge: %+v, %+v", r, d)
	}
	if got := b.effects("development", charge); len(got) != 1 || got[0].Requests != 3 {
		t.Errorf("charge: %+v", got)
	}
	// The outage is over: a replay succeeds.
	b.replay("development", outage, `{}`)
	if r := b.settled("development", outage); r.State != "completed" || len(b.effects("development", outage)) != 1 {
		t.Errorf("after the outage: %+v", r)
	}
}

func TestTrickleAddsJobsThatDie(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.start()
	for range 5 {
		if err := b.w.AddFailing(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	deadline := time.Now().Add(90 * time.Second)
	for {
		var dead, all int
		for _, schema := range b.w.Rivers() {
			var d, a int
			err := b.pool.QueryRow(t.Context(), `SELECT count(*) FILTER (WHERE state IN ('discarded', 'cancelled')), count(*) FROM `+schema+`.river_job`).Scan(&d, &a)
			if err != nil {
				t.Fatal(err)
			}
			dead, all = dead+d, all+a
		}
		if all != 5 {
			t.Fatalf("%d jobs, want 5", all)
		}
		if dead == 5 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("only %d of 5 died", dead)
		}
		time.Sleep(200 * time.Millisecond)
	}
}
