package dlq

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/rbac"
)

// addReplay writes a replay of a job as the replay package would.
func addReplay(t testing.TB, b *bundle, id int64, state string, outcome any, released, ended any) (replay int64) {
	t.Helper()
	return get[int64](t, b, `
		WITH made AS (
			INSERT INTO redrive.batches (environment, job_type, kind, state, cutoff, reason, created_by, created_at, confirmed_by, confirmed_at)
			SELECT environment, job_type, 'single', 'running', $5, 'try again', 'ann@example.test', $5, 'bob@example.test', $5
			FROM redrive.dead_jobs
			WHERE id = $1
			RETURNING id)
		INSERT INTO redrive.replays (batch_id, dead_job_id, generation, payload_version, environment, source, job_id, job_type, key_scope, state, outcome, released_at, outcome_at)
		SELECT made.id, d.id, d.generation, d.payload_version, d.environment, d.source, d.job_id, d.job_type, d.key_scope, $2, $3, $4, $6
		FROM redrive.dead_jobs d, made
		WHERE d.id = $1
		RETURNING id`, id, state, outcome, released, testNow.Add(-2*time.Hour), ended)
}

func TestOverview(t *testing.T) {
	t.Parallel()
	b := setup(t)
	empty, err := ReadOverview(t.Context(), b.pool, reader, OverviewQuery{Now: testNow})
	if err != nil || !empty.Empty || empty.Oldest != nil || empty.Open != 0 || len(empty.Deaths["auth"]) != OverviewDays*24 {
		t.Fatalf("an empty store: %+v, %v", empty, err)
	}
	ago := func(d time.Duration) time.Time { return testNow.Add(-d) }
	add := func(id, env, typ string, died time.Time) int64 {
		doc := job(id, 1, 1)
		doc.Environment, doc.JobType = env, typ
		doc.DeadAt = []byte(`"` + died.Format(time.RFC3339) + `"`)
		doc.Category = "throttled"
		return b.one(t, doc).ID
	}
	oldest := add("a", "production", "mail", ago(3*24*time.Hour))
	failed := add("b", "production", "mail", ago(30*time.Minute))
	gone := add("c", "production", "card", ago(90*time.Minute))
	staging := add("d", "staging", "card", ago(20*24*time.Hour))
	b.exec(t, `UPDATE redrive.dead_jobs SET status = 'discarded' WHERE id = $1`, gone)
	b.exec(t, `UPDATE redrive.dead_jobs SET effect = 'unknown' WHERE id = $1`, failed)
	addReplay(t, b, oldest, "ended", "succeeded", ago(2*time.Hour), ago(time.Hour))
	addReplay(t, b, oldest, "ended", "skipped", nil, ago(time.Hour))
	addReplay(t, b, oldest, "ended", "failed", ago(26*time.Hour), ago(25*time.Hour))
	addReplay(t, b, failed, "ended", "unconfirmed", ago(3*time.Hour), ago(2*time.Hour))
	flying := addReplay(t, b, failed, "released", nil, ago(time.Minute), nil)
	waits := addReplay(t, b, staging, "pending", nil, nil, nil)
	b.exec(t, `UPDATE redrive.replays SET due_at = $2 WHERE id = $1`, waits, testNow.Add(time.Hour))
	b.exec(t, `INSERT INTO redrive.release_buckets (environment, job_type) SELECT DISTINCT environment, job_type FROM redrive.replays`)
	b.exec(t, `INSERT INTO redrive.destinations (environment, name) SELECT DISTINCT environment, destination FROM redrive.replays`)
	b.exec(t, `
		INSERT INTO redrive.sources (environment, name, kind, last_seen_at, last_error)
		VALUES ('production', 'fine', 'river', $1, ''), ('production', 'silent', 'river', $2, ''), ('staging', 'broken', 'river', $1, 'refused'),
		       ('production', 'quiet http', 'http', $2, '')`, testNow, ago(time.Hour))

	for folded := range 2 {
		o, err := ReadOverview(t.Context(), b.pool, reader, OverviewQuery{Now: testNow})
		if err != nil {
			t.Fatal(err)
		}
		if o.Empty || o.Open != 3 || o.EffectUnknown != 1 || o.DiedLastHour != 1 || o.InFlight != 1 || o.Succeeded != 1 || o.Ended != 2 {
			t.Errorf("numbers: %+v", o)
		}
		if o.Oldest == nil || o.Oldest.ID != staging {
			t.Errorf("oldest %+v, want %d", o.Oldest, staging)
		}
		var deaths int64
		for _, n := range o.Deaths["throttled"] {
			deaths += n
		}
		if at := len(o.Deaths["throttled"]) - 1; deaths != 3 || o.Deaths["throttled"][at-1] != 1 || o.Deaths["throttled"][at-2] != 1 {
			t.Errorf("the chart counts %d deaths, last hours %v, want 3 and [1 1 0]", deaths, o.Deaths["throttled"][at-2:])
		}
		want := []OverviewType{{JobType: "mail", Open: 2, Oldest: ago(3 * 24 * time.Hour)}, {JobType: "card", Open: 1, Oldest: ago(20 * 24 * time.Hour)}}
		want[0].Daily, want[1].Daily = make([]int64, OverviewDays), make([]int64, OverviewDays)
		want[0].Daily[13], want[0].Daily[10], want[1].Daily[13] = 1, 1, 1
		if diff := cmp.Diff(want, o.Types); diff != "" {
			t.Errorf("types (-want +got):\n%s", diff)
		}
		if len(o.Replays) != 4 || o.Replays[0].State != "skipped" || o.Replays[0].By != "bob@example.test" {
			t.Errorf("last replays: %+v", o.Replays)
		}
		if len(o.UnderWay) != 2 || o.UnderWay[0].ID != flying || o.UnderWay[0].State != "released" ||
			o.UnderWay[1].ID != waits || !o.UnderWay[1].At.Equal(testNow.Add(time.Hour)) || o.Waiting != 1 {
			t.Errorf("under way: %+v, %d wait", o.UnderWay, o.Waiting)
		}
		if len(o.Unhealthy) != 2 || o.Unhealthy[0].Name != "silent" || o.Unhealthy[1].LastError != "refused" {
			t.Errorf("unhealthy: %+v", o.Unhealthy)
		}
		if folded == 0 {
			if _, err := FoldCounters(t.Context(), b.pool); err != nil {
				t.Fatal(err)
			}
		}
	}
	limited := person(rbac.Grant{Role: rbac.Viewer, Environment: "staging"})
	for _, q := range []OverviewQuery{{Now: testNow}, {Now: testNow, Environment: "staging"}} {
		o, err := ReadOverview(t.Context(), b.pool, limited, q)
		if err != nil || o.Open != 1 || o.InFlight != 0 || o.Oldest.ID != staging || len(o.Types) != 1 || len(o.Unhealthy) != 1 || len(o.Replays) != 0 ||
			len(o.UnderWay) != 1 || o.UnderWay[0].ID != waits {
			t.Errorf("staging only: %+v, %v", o, err)
		}
	}
	if o, err := ReadOverview(t.Context(), b.pool, limited, OverviewQuery{Now: testNow, Environment: "production"}); err != nil || o.Open != 0 || o.Oldest != nil {
		t.Errorf("another environment: %+v, %v", o, err)
	}
	if _, err := ReadOverview(t.Context(), b.pool, person(), OverviewQuery{}); !problem.Is(err, problem.Forbidden) {
		t.Errorf("no role: %v, want Forbidden", err)
	}
}
