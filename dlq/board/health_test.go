package board

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/redrive-dlq/redrive/dlq/jobtype"
	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/rbac"
)

// world is a store with a running, a scheduled and an ended batch.
func world(t testing.TB) (b *bundle, running int64) {
	t.Helper()
	b = setup(t)
	running = b.batch(t, "production", "mail", "running")
	b.add(t, running, 3, item{state: "pending"})
	b.add(t, running, 2, item{state: "ready"})
	b.add(t, running, 2, item{state: "released", released: 20 * time.Second, delivered: true})
	b.add(t, running, 1, item{state: "released", released: 5 * time.Minute})
	b.add(t, running, 4, item{state: "ended", outcome: "succeeded", released: 40 * time.Second, ended: 10 * time.Second})
	b.add(t, running, 1, item{state: "ended", outcome: "failed", released: 3 * time.Minute, ended: 2 * time.Minute})
	b.add(t, running, 1, item{state: "ended", outcome: "unconfirmed", released: 25 * time.Hour, ended: 5 * time.Minute})
	b.add(t, running, 5, item{state: "ended", outcome: "skipped", ended: 5 * time.Second})
	scheduled := b.batch(t, "production", "mail", "scheduled")
	b.add(t, scheduled, 6, item{})
	b.add(t, scheduled, 9, item{verdict: "key_done"})
	b.add(t, b.batch(t, "production", "mail", "done"), 7, item{state: "ended", outcome: "succeeded", released: 26 * time.Hour, ended: 25 * time.Hour})
	b.add(t, b.batch(t, "staging", "card", "planned"), 8, item{})
	b.exec(t, `INSERT INTO redrive.release_buckets (environment, job_type, tokens, refilled_at) VALUES ('production', 'mail', 4, $1), ('staging', 'card', NULL, NULL)`,
		testNow.Add(-30*time.Second))
	b.exec(t, `
		INSERT INTO redrive.destinations (environment, name, breaker, why, retry_at)
		VALUES ('production', 'mail', 'open', '9 of the last 20 replays failed', $1), ('staging', 'mail', 'closed', '', NULL)`, testNow.Add(time.Minute))
	b.exec(t, `
		INSERT INTO redrive.holds (environment, job_type, placed_by, placed_at, lifted_at)
		VALUES ('production', 'mail', 'bob@example.test', $1, NULL), ('production', '', 'bob@example.test', $1, $1)`, testNow)
	return b, running
}

func TestHealth(t *testing.T) {
	t.Parallel()
	b, _ := world(t)
	h, err := ReadHealth(t.Context(), b.pool, reader, "", testNow)
	if err != nil {
		t.Fatal(err)
	}
	half := testNow.Add(-30 * time.Second)
	tokens, retry, sent := 4.0, testNow.Add(time.Minute), testNow.Add(-20*time.Second)
	types := []TypeHealth{
		{Environment: "production", JobType: "mail", Tokens: &tokens, RefilledAt: &half, PerMinute: 6, Waiting: 11, Out: 3, Batches: 2},
		{Environment: "staging", JobType: "card"}, // a plan isn't ordered
	}
	if diff := cmp.Diff(types, h.Types); diff != "" {
		t.Errorf("types (-want +got):\n%s", diff)
	}
	destinations := []DestinationHealth{
		{Environment: "production", Name: "mail", Destination: Destination{Breaker: "open", RetryAt: &retry, Why: "9 of the last 20 replays failed"},
			Out: 3, Undelivered: 1, Succeeded: 4, Failed: 1, Unconfirmed: 1, LastSentAt: &sent},
		{Environment: "staging", Name: "mail", Destination: Destination{Breaker: "closed"}},
	}
	if diff := cmp.Diff(destinations, h.Destinations); diff != "" {
		t.Errorf("destinations (-want +got):\n%s", diff)
	}
	if len(h.Holds) != 1 || !h.Holds[0].Stops("production", "mail", "x") || h.Holds[0].Stops("production", "card", "x") || h.Holds[0].Stops("staging", "mail", "x") {
		t.Errorf("holds %+v", h.Holds)
	}
	limit := jobtype.Rate{PerMinute: 12, Burst: 9}
	if n := h.Types[0].TokensNow(limit, testNow); n != 9 {
		t.Errorf("%v tokens, want a bucket that is full at 9", n)
	}
	if n := h.Types[0].TokensNow(jobtype.Rate{PerMinute: 6, Burst: 9}, testNow); n != 7 {
		t.Errorf("%v tokens, want 4 and 3 of half a minute", n)
	}
	if n := h.Types[0].TokensNow(limit, testNow.Add(-time.Hour)); n != 4 {
		t.Errorf("%v tokens by a clock that is behind, want 4", n)
	}
	if n := h.Types[1].TokensNow(limit, testNow); n != 9 {
		t.Errorf("%v tokens in a bucket never used, want 9", n)
	}
	staging, err := ReadHealth(t.Context(), b.pool, person(rbac.Grant{Role: rbac.Viewer, Environment: "staging"}), "", testNow)
	if err != nil || len(staging.Types) != 1 || len(staging.Destinations) != 1 || len(staging.Holds) != 0 {
		t.Errorf("staging only: %+v, %v", staging, err)
	}
	if _, err := ReadHealth(t.Context(), b.pool, person(), "", testNow); !problem.Is(err, problem.Forbidden) {
		t.Errorf("no role: %v, want Forbidden", err)
	}
}

func TestFlows(t *testing.T) {
	t.Parallel()
	b, _ := world(t)
	flows, err := Flows(t.Context(), b.pool, reader, "", testNow)
	if err != nil {
		t.Fatal(err)
	}
	sent := testNow.Add(-20 * time.Second)
	want := []Flow{{Environment: "production", JobType: "mail", InFlight: 3, Succeeded: 4, Failed: 1, Unconfirmed: 1, LastSentAt: &sent}}
	if diff := cmp.Diff(want, flows); diff != "" {
		t.Errorf("flows (-want +got):\n%s", diff)
	}
	if flows, err := Flows(t.Context(), b.pool, person(rbac.Grant{Role: rbac.Viewer, Environment: "staging"}), "", testNow); err != nil || len(flows) != 0 {
		t.Errorf("staging only: %+v, %v", flows, err)
	}
}

func TestLastBatches(t *testing.T) {
	t.Parallel()
	b, _ := world(t)
	for range 3 {
		b.batch(t, "staging", "card", "done")
	}
	b.exec(t, `UPDATE redrive.batches SET kind = 'single' WHERE id = (SELECT max(id) FROM redrive.batches)`)
	found, err := LastBatches(t.Context(), b.pool, reader, "", 2)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range found {
		got = append(got, f.Environment+" "+f.JobType+" "+f.State)
	}
	if diff := cmp.Diff([]string{"staging card done", "staging card done", "production mail done", "production mail scheduled"}, got); diff != "" {
		t.Errorf("the last two of each type (-want +got):\n%s", diff)
	}
	if found, err := LastBatches(t.Context(), b.pool, reader, "production", 1); err != nil || len(found) != 1 || found[0].Tallies["succeeded"] != 7 {
		t.Errorf("production: %+v, %v", found, err)
	}
	if found, err := LastBatches(t.Context(), setup(t).pool, reader, "", 2); err != nil || len(found) != 0 {
		t.Errorf("an empty store: %+v, %v", found, err)
	}
}
