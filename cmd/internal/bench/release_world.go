package bench

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/redrive-dlq/redrive/dlq"
	"github.com/redrive-dlq/redrive/dlq/envelope"
	"github.com/redrive-dlq/redrive/dlq/jobtype"
	"github.com/redrive-dlq/redrive/dlq/replay"
	"github.com/redrive-dlq/redrive/migrations"
)

const (
	// releaseTypes is how many types are released at once: processes share them.
	releaseTypes = 10
	// releaseTenants is how many tenants the replays of a type are spread over.
	releaseTenants = 1000
	// mostProcesses is how many release at once at most.
	mostProcesses = 4
)

// releaseWorld is a database of its own, where no console's loop takes part.
type releaseWorld struct {
	pool      *pgxpool.Pool
	types     *jobtype.Catalogue
	log       *slog.Logger
	processes []*process
	close     []func()
}

// process releases as a console does, with a pool and a memory of its own. It is
// a goroutine: on the machine's cores it competes with PostgreSQL as a process
// would.
type process struct {
	pool    *pgxpool.Pool
	service *replay.Service
	target  *handOver
}

// releasing makes the world when it is first asked for: a database, and a
// catalogue of types that nothing limits, and of those whose rates are measured.
func (b *bench) releasing(ctx context.Context) (*releaseWorld, error) {
	if b.world != nil {
		return b.world, nil
	}
	if _, err := b.pool.Exec(ctx, `CREATE DATABASE bench_release`); err != nil {
		return nil, fmt.Errorf("database: %w", err)
	}
	var y strings.Builder
	y.WriteString("environments: [production]\ntypes:\n")
	for i := range releaseTypes {
		name := fmt.Sprintf("release_%d", i)
		fmt.Fprintf(&y, releaseType, name, "per_minute: 1000000, burst: 1000000, per_tenant_per_minute: 1000000", name)
	}
	for _, r := range limits() {
		fmt.Fprintf(&y, releaseType, r.name(), fmt.Sprintf("per_minute: %d", r.perSecond*60), r.name())
	}
	types, err := jobtype.Load(fstest.MapFS{"types.yaml": {Data: []byte(y.String())}}, "types.yaml")
	if err != nil {
		return nil, err
	}
	w := &releaseWorld{types: types, log: b.Log}
	b.world = w // from here on it is ended with the run
	if w.pool, err = w.connect(ctx, b.pool); err != nil {
		return nil, err
	}
	if err := migrations.Up(ctx, w.pool); err != nil {
		return nil, err
	}
	for range mostProcesses {
		if err := w.addProcess(ctx); err != nil {
			return nil, err
		}
	}
	return w, nil
}

const releaseType = `
  %s:
    side_effects: [{kind: write, text: writes a row}]
    idempotency: {by: key, scope: release}
    rate: {%s}
    targets:
      production: {http: {url: "http://127.0.0.1:9/%s"}, outcome_within: 15m, concurrency: 100000}
`

// connect opens a pool to the world's database, as each process has its own.
func (w *releaseWorld) connect(ctx context.Context, like *pgxpool.Pool) (*pgxpool.Pool, error) {
	config := like.Config().Copy()
	config.ConnConfig.Database = "bench_release"
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	w.close = append(w.close, pool.Close)
	return pool, nil
}

func (w *releaseWorld) end() {
	for _, f := range w.close {
		f()
	}
}

// addProcess adds one more that may release.
func (w *releaseWorld) addProcess(ctx context.Context) error {
	pool, err := w.connect(ctx, w.pool)
	if err != nil {
		return err
	}
	target, err := newHandOver(pool)
	if err != nil {
		return err
	}
	w.processes = append(w.processes, &process{pool, &replay.Service{Pool: pool, Types: func() *jobtype.Catalogue { return w.types },
		Sealer: envelope.Plain{}, Targets: map[string]replay.Target{"http": target}, Log: w.log}, target})
	return nil
}

// running runs n processes while f works: the loops of a console that deal with
// replays. They have ended when it returns.
func (w *releaseWorld) running(ctx context.Context, n int, f func() error) error {
	loops, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	for _, p := range w.processes[:n] {
		wg.Go(func() { _ = p.service.RunRelease(loops) }) // it ends without error
		wg.Go(func() { dlq.FoldLoop(loops, p.pool, time.Second, w.log) })
	}
	err := f()
	stop()
	wg.Wait()
	return err
}

// filled is a batch that was put into the world.
type filled struct {
	jobType string
	n       int
	tenants int
}

// fill stores a confirmed batch that is due, whose jobs are taken, and returns
// its id. The release loop knows of it only when it is let go.
func (w *releaseWorld) fill(ctx context.Context, f filled) (batch int64, err error) {
	url := "http://127.0.0.1:9/" + f.jobType
	err = w.pool.QueryRow(ctx, `
		WITH e AS (
			INSERT INTO redrive.audit_entries (body)
			VALUES ('{"action": "batch.confirm", "actor": {"id": "1", "kind": "person", "name": "bench"}, "at_us": 1, "details": {}, "environment": "production", "object": {"id": "1", "kind": "batch"}, "reason": "bench"}')
			RETURNING id)
		INSERT INTO redrive.batches
			(environment, job_type, kind, state, cutoff, planned, eligible, due_at, created_by, target_kind, target, destination, order_entry, started_at, activated_at)
		SELECT 'production', $1, 'batch', 'running', now(), $2, $2, now(), 'bench', 'http',
		       jsonb_build_object('url', $3::text, 'outcome_within_ms', 900000), $3, id, now(), now()
		FROM e
		RETURNING id`, f.jobType, f.n, url).Scan(&batch)
	if err != nil {
		return 0, fmt.Errorf("fill: %w", err)
	}
	_, err = w.pool.Exec(ctx, `
		WITH j AS (
			INSERT INTO redrive.dead_jobs (environment, source, job_id, job_type, key_scope, idempotency_key, entity, tenant, category, payload_kind,
			                               fingerprint, died_at, attempt_count, status)
			SELECT 'production', 'bench', $1::bigint || '/' || i, $2, 'release', $1::bigint || ':' || i, $1::bigint || ':' || i, 't' || i % $6::int,
			       'transient', 'json', 'f', now(), 3, 'replaying'
			FROM generate_series(1, $3::integer) i
			RETURNING *),
		p AS (
			INSERT INTO redrive.payloads (dead_job_id, version, bytes, encoding, size, sha256, redacted, redact_version, origin)
			SELECT id, 1, '\x007b7d', 'json', 2, '', '{}', 1, 'capture' FROM j)
		INSERT INTO redrive.replays
			(batch_id, dead_job_id, generation, payload_version, environment, source, job_id, job_type, tenant, entity, key_scope, idempotency_key,
			 target_kind, destination, state, due_at, order_at)
		SELECT $1, id, generation, payload_version, environment, source, job_id, job_type, tenant, entity, key_scope, idempotency_key,
		       'http', $4, 'pending', $5, died_at
		FROM j`, batch, f.jobType, f.n, url, time.Now(), f.tenants)
	if err != nil {
		return 0, fmt.Errorf("fill: %w", err)
	}
	return batch, nil
}

// letGo lets the release loop know of batches, at once.
func (w *releaseWorld) letGo(ctx context.Context, batches []int64) error {
	_, err := w.pool.Exec(ctx, `
		WITH b AS (
			INSERT INTO redrive.release_buckets (environment, job_type)
			SELECT DISTINCT environment, job_type FROM redrive.batches WHERE id = ANY($1)
			ON CONFLICT DO NOTHING)
		INSERT INTO redrive.runs (batch_id, environment, job_type, due_at)
		SELECT id, environment, job_type, due_at FROM redrive.batches WHERE id = ANY($1)`, batches)
	if err != nil {
		return fmt.Errorf("let go: %w", err)
	}
	return nil
}

// hold makes the release loop forget batches.
func (w *releaseWorld) hold(ctx context.Context, batches []int64) error {
	_, err := w.pool.Exec(ctx, `DELETE FROM redrive.runs WHERE batch_id = ANY($1)`, batches)
	if err != nil {
		return fmt.Errorf("hold: %w", err)
	}
	return nil
}

// settle takes statistics and writes out what filling left in memory.
func (w *releaseWorld) settle(ctx context.Context) error {
	_, err := w.pool.Exec(ctx, `VACUUM ANALYZE redrive.replays, redrive.dead_jobs, redrive.payloads, redrive.runs, redrive.batches, redrive.batch_deltas, redrive.ledger`)
	_, e := w.pool.Exec(ctx, `CHECKPOINT`)
	return errors.Join(err, e)
}
