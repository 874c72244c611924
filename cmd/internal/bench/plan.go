package bench

import (
	"context"
	"fmt"
	"log/slog"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/redrive-dlq/redrive/dlq/envelope"
	"github.com/redrive-dlq/redrive/dlq/filter"
	"github.com/redrive-dlq/redrive/dlq/jobtype"
	"github.com/redrive-dlq/redrive/dlq/replay"
	httptarget "github.com/redrive-dlq/redrive/dlq/target/http"
)

const (
	planSmall  = 100_000
	planRounds = 3
)

// planTypes are what is planned: a type as most are, one with a schema, one
// with a check.
const planTypes = `
environments: [production]
types:
  plan_plain:
    side_effects: [{kind: email, text: sends one e-mail}]
    idempotency: {by: key, scope: plan}
    valid_for: 720h
    targets:
      production: {http: {url: "http://127.0.0.1:9/"}, outcome_within: 15m}
  plan_schema:
    side_effects: [{kind: email, text: sends one e-mail}]
    idempotency: {by: key, scope: plan}
    schema: {1: plan.json}
    targets:
      production: {http: {url: "http://127.0.0.1:9/"}, outcome_within: 15m}
  plan_checks:
    side_effects: [{kind: email, text: sends one e-mail}]
    idempotency: {by: key, scope: plan}
    targets:
      production: {http: {url: "http://127.0.0.1:9/"}, outcome_within: 15m}
    checks:
      - {name: customer exists, sql: "select 1 from public.bench_customers where id = $1", args: [/user_id]}
`

const planSchema = `{
  "type": "object", "required": ["user_id", "template", "to_email"],
  "properties": {
    "user_id": {"type": "integer", "minimum": 0},
    "template": {"enum": ["welcome", "invoice"]},
    "to_email": {"type": "string", "minLength": 3}
  }
}`

// planner plans without the console's engine, so that nothing else runs.
func (b *bench) planner() (*replay.Service, error) {
	types, err := jobtype.Load(fstest.MapFS{"types.yaml": {Data: []byte(planTypes)}, "plan.json": {Data: []byte(planSchema)}}, "types.yaml")
	if err != nil {
		return nil, err
	}
	return &replay.Service{Pool: b.pool, Types: func() *jobtype.Catalogue { return types }, Sealer: envelope.Plain{},
		Targets: map[string]replay.Target{"http": &httptarget.Target{}}, Log: slog.New(slog.DiscardHandler),
		CheckDB: func(string) *pgxpool.Pool { return b.pool }}, nil
}

// plans compares freezing a plan, with all its verdicts, order and hash, with a
// plain INSERT … SELECT of the same items into the same table: what the items
// cost to write at all. Runs are interleaved.
func (b *bench) plans(ctx context.Context) error {
	s, err := b.planner()
	if err != nil {
		return err
	}
	if _, err := b.pool.Exec(ctx, `
		CREATE TABLE IF NOT EXISTS public.bench_customers (id bigint PRIMARY KEY);
		INSERT INTO public.bench_customers SELECT i FROM generate_series(0, 9999) i WHERE i % 10 <> 0 ON CONFLICT DO NOTHING`); err != nil {
		return fmt.Errorf("plan: %w", err)
	}
	n := min(planSmall, b.Plan)
	for _, one := range []struct{ jobType, name string }{
		{"plan_plain", "plan_100k_vs_insert"}, {"plan_schema", "plan_100k_schema_vs_insert"}, {"plan_checks", "plan_100k_checks_vs_insert"},
	} {
		if err := b.plan(ctx, s, one.jobType, one.name, n, planRounds); err != nil {
			return err
		}
	}
	if b.Plan <= planSmall {
		return nil
	}
	return b.plan(ctx, s, "plan_plain", "plan_1m_vs_insert", b.Plan, 1)
}

// plan measures plans of the first n jobs of a type.
func (b *bench) plan(ctx context.Context, s *replay.Service, jobType, name string, n, rounds int) error {
	if err := b.planned(ctx, jobType, n); err != nil {
		return err
	}
	var frozen, plain []time.Duration
	for range rounds {
		var batch int64
		f, err := timed(func() (err error) {
			batch, err = b.freeze(ctx, s, jobType)
			return err
		})
		if err != nil {
			return err
		}
		p, err := timed(func() error { return b.copyItems(ctx, batch, n) })
		if err != nil {
			return err
		}
		frozen, plain = append(frozen, f), append(plain, p)
		if _, err := b.pool.Exec(ctx, `DELETE FROM redrive.replays WHERE batch_id = $1`, batch); err != nil {
			return fmt.Errorf("forget a plan: %w", err)
		}
		if _, err := b.pool.Exec(ctx, `VACUUM ANALYZE redrive.replays`); err != nil {
			return fmt.Errorf("forget a plan: %w", err)
		}
	}
	b.print(name+"_rows_per_s", float64(n)/median(frozen))
	b.print(name, median(plain)/median(frozen))
	return nil
}

// planned brings the store to n open jobs of a type, each with a payload.
func (b *bench) planned(ctx context.Context, jobType string, n int) error {
	_, err := b.pool.Exec(ctx, `
		WITH j AS (
			INSERT INTO redrive.dead_jobs
				(environment, source, job_id, job_type, key_scope, idempotency_key, entity, tenant, category, error_class, error_message,
				 fingerprint, attempt_count, died_at, payload_size)
			SELECT 'production', 'plan', $1 || '-' || i, $1, 'plan', $1 || ':' || i, 'order:' || i % greatest($2::bigint / 2, 1), 't' || i % 500,
			       'transient', 'HttpError', 'provider answered 503 for order ' || i, md5((i % 300)::text), 3,
			       now() - make_interval(secs => 1209600 * (1 - i / $2::float8)), 80
			FROM generate_series((SELECT count(*) FROM redrive.dead_jobs WHERE job_type = $1), $2::bigint - 1) i
			RETURNING id, entity)
		INSERT INTO redrive.payloads (dead_job_id, version, bytes, encoding, size, sha256, redacted, redact_version, origin)
		SELECT id, 1, '\x00'::bytea || convert_to('{"user_id": ' || id % 10000 || ', "template": "welcome", "to_email": "lena.hofer@example.com"}', 'UTF8'),
		       'json', 80, '', '{}', 1, 'capture'
		FROM j`, jobType, n)
	if err != nil {
		return fmt.Errorf("jobs to plan: %w", err)
	}
	for _, table := range []string{"dead_jobs", "payloads"} {
		if _, err := b.pool.Exec(ctx, `VACUUM ANALYZE redrive.`+table); err != nil {
			return fmt.Errorf("jobs to plan: %w", err)
		}
	}
	return nil
}

// freeze plans all of a type and waits until the plan is complete.
func (b *bench) freeze(ctx context.Context, s *replay.Service, jobType string) (int64, error) {
	ids, err := s.Plan(ctx, b.person, replay.Selection{Filter: filter.Filter{Types: []string{jobType}}}, "measured")
	if err != nil {
		return 0, err
	}
	for done := false; !done; {
		if done, err = s.Do(ctx, replay.WorkPlan, ids[0]); err != nil {
			return 0, err
		}
	}
	return ids[0], nil
}

// copyItems writes the n items of a batch into another one and takes it back.
func (b *bench) copyItems(ctx context.Context, batch int64, n int) error {
	tx, err := b.pool.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }() // the items are not wanted
	tag, err := tx.Exec(ctx, `
		WITH c AS (
			INSERT INTO redrive.batches (environment, job_type, kind, state, reason, created_by, cutoff)
			VALUES ('production', 'bench', 'batch', 'planned', 'measured', 'bench', now())
			RETURNING id)
		INSERT INTO redrive.replays
			(batch_id, dead_job_id, generation, payload_version, environment, source, job_id, job_type, tenant, entity, key_scope,
			 idempotency_key, target_kind, destination, state, verdict, verdict_detail, order_at, fingerprint, behind, canary_rank)
		SELECT c.id, r.dead_job_id, r.generation, r.payload_version, r.environment, r.source, r.job_id, r.job_type, r.tenant, r.entity, r.key_scope,
		       r.idempotency_key, r.target_kind, r.destination, r.state, r.verdict, r.verdict_detail, r.order_at, r.fingerprint, r.behind, r.canary_rank
		FROM redrive.replays r, c
		WHERE r.batch_id = $1`, batch)
	if err != nil {
		return fmt.Errorf("copy items: %w", err)
	}
	if got := tag.RowsAffected(); got != int64(n) {
		return fmt.Errorf("the plan holds %d items, want %d", got, n)
	}
	return nil
}
