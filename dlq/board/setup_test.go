package board

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/redrive-dlq/redrive/migrations/testdb"
	"github.com/redrive-dlq/redrive/rbac"
)

// testNow is when the tests look.
var testNow = time.Date(2026, 4, 1, 12, 0, 0, 0, time.UTC)

// reader may read everything.
var reader = person(rbac.Grant{Role: rbac.Viewer})

func person(grants ...rbac.Grant) *rbac.Principal {
	return &rbac.Principal{UserID: 1, Email: "ann@example.test", Grants: grants}
}

type bundle struct {
	pool *pgxpool.Pool
}

func setup(t testing.TB) *bundle {
	t.Helper()
	return &bundle{testdb.New(t)}
}

func (b *bundle) exec(t testing.TB, sql string, args ...any) {
	t.Helper()
	if _, err := b.pool.Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

func get[T any](t testing.TB, b *bundle, sql string, args ...any) (v T) {
	t.Helper()
	if err := b.pool.QueryRow(t.Context(), sql, args...).Scan(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

// batch stores a running batch of a type in an environment.
func (b *bundle) batch(t testing.TB, environment, jobType, state string) int64 {
	t.Helper()
	return get[int64](t, b, `
		INSERT INTO redrive.batches (environment, job_type, kind, state, cutoff, created_by, created_at, destination)
		VALUES ($1, $2, 'batch', $3, $4, 'ann@example.test', $4, 'mail')
		RETURNING id`, environment, jobType, state, testNow)
}

// item is a replay as a test stores it; the zero value is eligible and planned.
type item struct {
	verdict, state, outcome, code string
	entity, was, became           string        // fingerprints before and after
	released, ended               time.Duration // ago
	delivered                     bool
}

// add stores n replays of a batch, each of a job of its own that nobody stored.
func (b *bundle) add(t testing.TB, batch int64, n int, i item) {
	t.Helper()
	ago := func(d time.Duration) *time.Time {
		if d == 0 {
			return nil
		}
		at := testNow.Add(-d)
		return &at
	}
	if i.verdict == "" {
		i.verdict = "eligible"
	}
	if i.state == "" {
		i.state = "planned"
	}
	b.exec(t, `
		INSERT INTO redrive.replays
			(batch_id, dead_job_id, generation, payload_version, environment, source, job_id, job_type, key_scope, destination, state, verdict,
			 outcome, outcome_code, entity, fingerprint, new_fingerprint, released_at, outcome_at, delivered_at)
		SELECT b.id, (SELECT greatest(max(dead_job_id), 1000000) FROM redrive.replays) + n, 1, 1, b.environment, 'app', 'job ' || n, b.job_type, 'scope',
		       b.destination, $3, $4, nullif($5, ''), $6, $7, $8, $9, $10, $11, CASE WHEN $12 THEN $10::timestamptz END
		FROM redrive.batches b, generate_series(1, $2::integer) n
		WHERE b.id = $1`, batch, n, i.state, i.verdict, i.outcome, i.code, i.entity, i.was, i.became, ago(i.released), ago(i.ended), i.delivered)
}
