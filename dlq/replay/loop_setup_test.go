package replay_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/redrive-dlq/redrive/dlq/envelope"
	"github.com/redrive-dlq/redrive/dlq/jobtype"
	"github.com/redrive-dlq/redrive/dlq/replay"
	"github.com/redrive-dlq/redrive/migrations/testdb"
	"github.com/redrive-dlq/redrive/rbac"
)

const loopURL = "http://127.0.0.1:1/x"

// loopType is the catalogue of one type with the given rate line.
func loopType(rate string) string {
	return `
environments: [production]
types:
  sync:
    side_effects: [{kind: write, text: writes a contact}]
    idempotency: {by: key, scope: sync}
    rate: ` + rate + `
    batch: {approval_above: 1000000, canary: 10, stop_at_failure_pct: 20}
    targets:
      production: {http: {url: "` + loopURL + `"}, outcome_within: 15m}
`
}

// fast never stands in the way.
const fast = `{per_minute: 1000000, burst: 1000000}`

// departure is a replay that left.
type departure struct {
	at time.Time
	replay.Item
}

// departures is a target that notes what leaves, and when.
type departures struct {
	mu        sync.Mutex
	all       []departure
	delivered bool
}

func (d *departures) Check(_ context.Context, _ pgx.Tx, items []replay.Item, _ [][]byte) ([]*replay.Refusal, error) {
	return make([]*replay.Refusal, len(items)), nil
}

func (d *departures) Release(_ context.Context, _ pgx.Tx, items []replay.Item) ([]replay.Released, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := make([]replay.Released, len(items))
	for i, it := range items {
		d.all = append(d.all, departure{time.Now(), it})
		out[i].Delivered = d.delivered
	}
	return out, nil
}

func (d *departures) list() []departure {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]departure(nil), d.all...)
}

// loop is a store with one type and whole batches of it that run.
type loop struct {
	*bundle
	out *departures
	cat *jobtype.Catalogue
}

func loopSetup(t *testing.T, rate string, concurrency int) *loop {
	t.Helper()
	cat, err := jobtype.Load(fstest.MapFS{"types.yaml": {Data: []byte(loopType(rate))}}, "types.yaml")
	if err != nil {
		t.Fatal(err)
	}
	typ, _ := cat.Type("sync")
	target := typ.Targets["production"]
	target.Concurrency = concurrency
	typ.Targets["production"] = target
	l := &loop{bundle: &bundle{pool: testdb.New(t), oncall: &rbac.Principal{UserID: 1, Email: "oncall@demo.test", Grants: []rbac.Grant{{Role: rbac.OnCall}}}},
		out: &departures{delivered: true}, cat: cat}
	l.svc = l.service(l.pool)
	return l
}

// service is another process's.
func (l *loop) service(pool *pgxpool.Pool) *replay.Service {
	return &replay.Service{Pool: pool, Types: func() *jobtype.Catalogue { return l.cat }, Targets: map[string]replay.Target{"http": l.out},
		Sealer: envelope.Plain{}, Log: slog.New(slog.DiscardHandler)}
}

// members are jobs of a batch: n of them, spread by these expressions over i.
type members struct {
	n                   int
	tenant, entity, key string // SQL of i; empty: none
	state               string // pending, or planned for a batch still to start
	canary              int
	rate                int
	paused              bool
}

// batch stores a confirmed batch that is due, its jobs taken.
func (l *loop) batch(t *testing.T, m members) int64 {
	t.Helper()
	for _, s := range []*string{&m.tenant, &m.entity, &m.key} {
		if *s == "" {
			*s = `''`
		}
	}
	if m.state == "" {
		m.state = "pending"
	}
	state, live := "running", true
	if m.paused {
		state, live = "paused", false
	}
	var id int64
	err := l.pool.QueryRow(t.Context(), `
		WITH e AS (
			INSERT INTO redrive.audit_entries (body)
			VALUES ('{"action": "batch.confirm", "actor": {"id": "1", "kind": "person", "name": "oncall@demo.test"}, "at_us": 1, "details": {}, "environment": "production", "object": {"id": "1", "kind": "batch"}, "reason": "the test says so"}')
			RETURNING id)
		INSERT INTO redrive.batches
			(environment, job_type, kind, state, cutoff, reason, plan_hash, planned, eligible, due_at, created_by, confirmed_by,
			 confirmed_at, target_kind, target, destination, canary, rate_per_minute, order_entry, started_at, activated_at)
		SELECT 'production', 'sync', 'batch', $1, now(), 'the test says so', 'h', $2, $2, now() - interval '1 hour', 'oncall@demo.test', 'oncall@demo.test',
		       now(), 'http', '{"url": "`+loopURL+`", "outcome_within_ms": 900000}', '`+loopURL+`', $3, $4, id, now(),
		       CASE WHEN $5 = 'pending' THEN now() END
		FROM e
		RETURNING id`, state, m.n, m.canary, m.rate, m.state).Scan(&id)
	if err != nil {
		t.Fatal(err)
	}
	l.exec(t, `
		WITH j AS (
			INSERT INTO redrive.dead_jobs (environment, source, job_id, job_type, key_scope, idempotency_key, entity, tenant, category, payload_kind,
			                               fingerprint, died_at, attempt_count, status)
			SELECT 'production', 'test', $1::bigint || '/' || i, 'sync', 'sync', `+m.key+`, `+m.entity+`, `+m.tenant+`, 'transient', 'json', 'f',
			       now() - interval '1 day' + i * interval '1 ms', 3, CASE WHEN $3 = 'pending' THEN 'replaying' ELSE 'open' END
			FROM generate_series(1, $2::integer) i
			RETURNING *),
		p AS (
			INSERT INTO redrive.payloads (dead_job_id, version, bytes, encoding, size, sha256, redacted, redact_version, origin)
			SELECT id, 1, '{"a": 1}', 'json', 8, '', '{"a": 1}', 1, 'capture' FROM j)
		INSERT INTO redrive.replays
			(batch_id, dead_job_id, generation, payload_version, environment, source, job_id, job_type, tenant, entity, key_scope, idempotency_key,
			 target_kind, destination, state, due_at, order_at, fingerprint, wave, canary_rank, behind)
		SELECT $1, id, generation, payload_version, environment, source, job_id, job_type, tenant, entity, key_scope, idempotency_key,
		       'http', '`+loopURL+`', $3, now() - interval '1 hour', died_at, fingerprint,
		       CASE WHEN $3 = 'pending' AND NOT behind AND rank <= $4 THEN 0 ELSE 1 END, CASE WHEN NOT behind THEN rank END, behind
		FROM (SELECT *, entity <> '' AND row_number() OVER (PARTITION BY entity ORDER BY died_at, id) > 1 AS behind,
		             row_number() OVER (ORDER BY died_at, id) AS rank
		      FROM j) j`, id, m.n, m.state, m.canary)
	l.exec(t, `INSERT INTO redrive.release_buckets (environment, job_type) VALUES ('production', 'sync') ON CONFLICT DO NOTHING`)
	l.exec(t, `
		INSERT INTO redrive.runs (batch_id, environment, job_type, due_at, live, wave, rate_per_minute)
		SELECT id, environment, job_type, due_at, $2, CASE WHEN canary > 0 THEN 0 ELSE 1 END, rate_per_minute
		FROM redrive.batches
		WHERE id = $1`, id, live)
	return id
}

// end gives every replay that is out this outcome and returns how many.
func (l *loop) end(t *testing.T, e replay.End) int {
	t.Helper()
	rows, err := l.pool.Query(t.Context(), `SELECT id FROM redrive.replays WHERE state = 'released' ORDER BY id`)
	if err != nil {
		t.Fatal(err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		l.record(t, id, e)
	}
	return len(ids)
}

// state is the batch's state with why it is paused.
func (l *loop) state(t *testing.T, batch int64) string {
	t.Helper()
	var s string
	err := l.pool.QueryRow(t.Context(), `SELECT concat_ws(' ', state, nullif(pause_kind, ''), nullif(pause_why, '')) FROM redrive.batches WHERE id = $1`, batch).Scan(&s)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// until runs f until it says that it is done, or fails after a while.
func until(t *testing.T, what string, f func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if f() {
			return
		}
	}
	t.Fatal("never: " + what)
}

var (
	succeeded = replay.End{Outcome: replay.Succeeded}
	failed503 = replay.End{Outcome: replay.Failed, Code: "http_503",
		Failure: &replay.Failure{Class: "HTTP 503", Message: "busy", Category: "transient", Fingerprint: "g", StatusCode: 503}}
	failed422 = replay.End{Outcome: replay.Failed, Code: "http_422",
		Failure: &replay.Failure{Class: "HTTP 422", Message: "no", Category: "invalid_input", Fingerprint: "g", StatusCode: 422}}
)

func name(parts ...any) string { return fmt.Sprint(parts...) }

func connect(t *testing.T, config *pgxpool.Config) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}
