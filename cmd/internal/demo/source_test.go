package demo

import (
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/redrive-dlq/redrive/dlq"
	"github.com/redrive-dlq/redrive/dlq/jobtype"
	"github.com/redrive-dlq/redrive/dlq/source"
	sourceriver "github.com/redrive-dlq/redrive/dlq/source/river"
)

// declared is the catalogue as capture asks for it.
type declared struct{ *jobtype.Catalogue }

func (d declared) Scope(kind string) string {
	if t, ok := d.Type(kind); ok {
		return t.Scope()
	}
	return kind
}

func (d declared) HasSideEffects(kind string) bool {
	t, ok := d.Type(kind)
	return ok && t.HasEffect()
}

// capture reads every environment's River once, completely.
func (b bundle) capture() {
	b.t.Helper()
	capturer := dlq.NewCapturer(declared{b.w.Catalogue()}, nil, nil)
	for _, s := range b.w.Catalogue().Sources {
		if err := source.Register(b.t.Context(), b.pool, source.ID{Environment: s.Environment, Name: s.Name}, source.KindRiver); err != nil {
			b.t.Fatal(err)
		}
		r, err := sourceriver.New(sourceriver.Config{
			Store: b.pool, Capturer: capturer, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
			Source: sourceriver.Source{Environment: s.Environment, Name: s.Name, Schema: s.Schema, Client: s.Name, Pool: b.pool, Same: true},
		})
		if err != nil {
			b.t.Fatal(err)
		}
		if err := r.CompletePass(b.t.Context()); err != nil {
			b.t.Fatal(err)
		}
	}
}

// TestTheStoriesReadRightInTheStore: what the workers said arrives as what
// people see, through the real source.
func TestTheStoriesReadRightInTheStore(t *testing.T) {
	t.Parallel()
	b := setup(t)
	if err := b.w.Seed(t.Context(), 600); err != nil {
		t.Fatal(err)
	}
	b.capture()
	type story struct {
		Status, Category, ErrorClass, GaveUp, Effect, Reason, Tenant, Entity, Event string
		Attempts                                                                    int
		Died                                                                        time.Time
	}
	tell := func(environment, key string) (s story) {
		t.Helper()
		err := b.pool.QueryRow(t.Context(), `
			SELECT status, category, error_class, gave_up, effect, reason_code, tenant, entity, event, attempt_count, died_at
			FROM redrive.dead_jobs
			WHERE environment = $1 AND idempotency_key = $2
			ORDER BY id LIMIT 1`, environment, key).Scan(&s.Status, &s.Category, &s.ErrorClass, &s.GaveUp, &s.Effect, &s.Reason,
			&s.Tenant, &s.Entity, &s.Event, &s.Attempts, &s.Died)
		if err != nil {
			t.Fatalf("%s: %v", key, err)
		}
		s.Died = s.Died.UTC().Truncate(time.Second)
		return s
	}
	for key, want := range map[string]story{
		ArticleSendID: {Status: "open", Category: "invalid_input", ErrorClass: "InvalidRecipient", GaveUp: "not_retryable", Effect: "none",
			Reason: "invalid_recipient", Tenant: "acme", Entity: "customer:4217", Event: "evt_signup_4217", Attempts: 3, Died: anchor.Add(-160 * time.Minute)},
		"charge:8834:a1": {Status: "open", Category: "transient", ErrorClass: "DeadlineExceeded", GaveUp: "attempts", Effect: "unknown",
			Reason: "timeout", Tenant: "initech", Entity: "order:8834", Event: "evt_order_8834", Attempts: 3, Died: anchor.Add(-9*time.Hour + 10*time.Second)},
		"receipt:8821:shared": {Status: "open", Category: "transient", ErrorClass: "ServiceUnavailable", GaveUp: "attempts", Effect: "none",
			Reason: "unavailable", Tenant: "globex", Entity: "order:8821", Event: "evt_order_8821", Attempts: 3, Died: anchor.Add(-5 * time.Hour)},
	} {
		if diff := cmp.Diff(want, tell("production", key)); diff != "" {
			t.Errorf("%s: %s", key, diff)
		}
	}
	if got := tell("staging", ArticleSendID); got.Status != "open" || got.Effect != "none" {
		t.Errorf("the twin in staging: %+v", got)
	}
	var jobs, quarantined, groups, categories int
	err := b.pool.QueryRow(t.Context(), `
		SELECT (SELECT count(*) FROM redrive.dead_jobs),
		       (SELECT count(*) FROM redrive.quarantine),
		       (SELECT count(DISTINCT fingerprint) FROM redrive.dead_jobs),
		       (SELECT count(DISTINCT category) FROM redrive.dead_jobs)`).Scan(&jobs, &quarantined, &groups, &categories)
	if err != nil {
		t.Fatal(err)
	}
	// 23 ways to fail, some with two forms; many more groups would mean that
	// ids keep alike failures apart.
	if jobs != 600 || quarantined != 0 || groups < 18 || groups > 36 || categories < 5 {
		t.Errorf("%d jobs, %d quarantined, %d groups, %d categories", jobs, quarantined, groups, categories)
	}
}
