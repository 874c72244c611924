package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"github.com/redrive-dlq/redrive/dlq/envelope"
	"github.com/redrive-dlq/redrive/dlq/jobtype"
	"github.com/redrive-dlq/redrive/dlq/replay"
	httptarget "github.com/redrive-dlq/redrive/dlq/target/http"
	"github.com/redrive-dlq/redrive/migrations"
)

// releaseTypes is how many types are released at once: processes share them.
const releaseTypes = 4

// releaseWorld is a database of its own, where no console's loop takes part.
type releaseWorld struct {
	pool  *pgxpool.Pool
	types *jobtype.Catalogue
	close []func()
}

// releaseWorld makes the database and a catalogue of types that nothing limits,
// and one that is slow.
func (b *bench) releaseWorld(ctx context.Context) (*releaseWorld, error) {
	if _, err := b.pool.Exec(ctx, `CREATE DATABASE bench_release`); err != nil {
		return nil, fmt.Errorf("bench: release: %w", err)
	}
	var y strings.Builder
	y.WriteString("environments: [production]\ntypes:\n")
	for i := range releaseTypes {
		fmt.Fprintf(&y, releaseType, i, 1_000_000, 1_000_000, i)
	}
	fmt.Fprintf(&y, releaseType, releaseTypes, 3000, 5, releaseTypes)
	types, err := jobtype.Load(fstest.MapFS{"types.yaml": {Data: []byte(y.String())}}, "types.yaml")
	if err != nil {
		return nil, err
	}
	w := &releaseWorld{types: types}
	if w.pool, err = w.connect(ctx, b.pool); err != nil {
		return nil, err
	}
	return w, migrations.Up(ctx, w.pool)
}

const releaseType = `
  release_%d:
    side_effects: [{kind: write, text: writes a row}]
    idempotency: {by: key, scope: release}
    rate: {per_minute: %d, burst: %d}
    targets:
      production: {http: {url: "http://127.0.0.1:9/%d"}, outcome_within: 15m, concurrency: 100000}
`

// connect opens a pool to the world's database, as each process has its own.
func (w *releaseWorld) connect(ctx context.Context, like *pgxpool.Pool) (*pgxpool.Pool, error) {
	config := like.Config().Copy()
	config.ConnConfig.Database = "bench_release"
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("bench: release: %w", err)
	}
	w.close = append(w.close, pool.Close)
	return pool, nil
}

func (w *releaseWorld) end() {
	for _, f := range w.close {
		f()
	}
}

// handOver is a target that hands over as the console does, and counts it as
// delivered: nobody works on these jobs.
type handOver struct{ client *river.Client[pgx.Tx] }

func newHandOver(pool *pgxpool.Pool) (*handOver, error) {
	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{Schema: migrations.Schema, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, fmt.Errorf("bench: release: %w", err)
	}
	return &handOver{client}, nil
}

func (h *handOver) insert(ctx context.Context, tx pgx.Tx, ids []int64) error {
	all := make([]river.InsertManyParams, len(ids))
	for i, id := range ids {
		all[i] = river.InsertManyParams{Args: httptarget.DeliverArgs{ReplayID: id}, InsertOpts: &river.InsertOpts{Queue: "hand_over", MaxAttempts: 25}}
	}
	_, err := h.client.InsertManyFastTx(ctx, tx, all)
	return err
}

// Check implements replay.Target.
func (h *handOver) Check(_ context.Context, _ pgx.Tx, items []replay.Item, _ [][]byte) ([]*replay.Refusal, error) {
	return make([]*replay.Refusal, len(items)), nil
}

// Release implements replay.Target.
func (h *handOver) Release(ctx context.Context, tx pgx.Tx, items []replay.Item) ([]replay.Released, error) {
	ids, out := make([]int64, len(items)), make([]replay.Released, len(items))
	for i, it := range items {
		ids[i], out[i] = it.ReplayID, replay.Released{Ref: json.RawMessage("{}"), Delivered: true}
	}
	return out, h.insert(ctx, tx, ids)
}

// process is one more that releases, with a pool of its own.
func (w *releaseWorld) process(ctx context.Context) (*replay.Service, error) {
	pool, err := w.connect(ctx, w.pool)
	if err != nil {
		return nil, err
	}
	target, err := newHandOver(pool)
	if err != nil {
		return nil, err
	}
	return &replay.Service{Pool: pool, Types: func() *jobtype.Catalogue { return w.types }, Sealer: envelope.Plain{},
		Targets: map[string]replay.Target{"http": target}, Log: slog.New(slog.DiscardHandler)}, nil
}

// fill stores a confirmed batch of n jobs that are taken, due at the given
// moment, and returns its id. With run, the release loop knows of it.
func (w *releaseWorld) fill(ctx context.Context, jobType, n int, due time.Time, run bool) (batch int64, err error) {
	name, url := fmt.Sprintf("release_%d", jobType), fmt.Sprintf("http://127.0.0.1:9/%d", jobType)
	err = w.pool.QueryRow(ctx, `
		WITH e AS (
			INSERT INTO redrive.audit_entries (body)
			VALUES ('{"action": "batch.confirm", "actor": {"id": "1", "kind": "person", "name": "bench"}, "at_us": 1, "details": {}, "environment": "production", "object": {"id": "1", "kind": "batch"}, "reason": "bench"}')
			RETURNING id)
		INSERT INTO redrive.batches
			(environment, job_type, kind, state, cutoff, planned, eligible, due_at, created_by, target_kind, target, destination, order_entry, started_at, activated_at)
		SELECT 'production', $1, 'batch', CASE WHEN $2 THEN 'running' ELSE 'paused' END, now(), $3, $3, $5, 'bench', 'http',
		       jsonb_build_object('url', $4::text, 'outcome_within_ms', 900000), $4, id, now(), now()
		FROM e
		RETURNING id`, name, run, n, url, due).Scan(&batch)
	if err != nil {
		return 0, fmt.Errorf("bench: fill: %w", err)
	}
	_, err = w.pool.Exec(ctx, `
		WITH j AS (
			INSERT INTO redrive.dead_jobs (environment, source, job_id, job_type, key_scope, idempotency_key, entity, tenant, category, payload_kind,
			                               fingerprint, died_at, attempt_count, status)
			SELECT 'production', 'bench', $1::bigint || '/' || i, $2, 'release', $1::bigint || ':' || i, $1::bigint || ':' || i, 't' || i % 50,
			       'transient', 'json', 'f', now(), 3, 'replaying'
			FROM generate_series(1, $3::integer) i
			RETURNING *),
		p AS (
			INSERT INTO redrive.payloads (dead_job_id, version, bytes, encoding, size, sha256, redacted, redact_version, origin)
			SELECT id, 1, '{"a": 1}', 'json', 8, '', '{"a": 1}', 1, 'capture' FROM j)
		INSERT INTO redrive.replays
			(batch_id, dead_job_id, generation, payload_version, environment, source, job_id, job_type, tenant, entity, key_scope, idempotency_key,
			 target_kind, destination, state, due_at, order_at)
		SELECT $1, id, generation, payload_version, environment, source, job_id, job_type, tenant, entity, key_scope, idempotency_key,
		       'http', $4, 'pending', $5, died_at
		FROM j`, batch, name, n, url, due)
	if err == nil && run {
		_, err = w.pool.Exec(ctx, `
			WITH b AS (INSERT INTO redrive.release_buckets (environment, job_type) VALUES ('production', $2) ON CONFLICT DO NOTHING)
			INSERT INTO redrive.runs (batch_id, environment, job_type, due_at)
			SELECT id, environment, job_type, due_at FROM redrive.batches WHERE id = $1`, batch, name)
	}
	if err != nil {
		return 0, fmt.Errorf("bench: fill: %w", err)
	}
	return batch, nil
}
