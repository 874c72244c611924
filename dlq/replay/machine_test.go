package replay_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"pgregory.net/rapid"

	"github.com/redrive-dlq/redrive/dlq/envelope"
	"github.com/redrive-dlq/redrive/dlq/filter"
	"github.com/redrive-dlq/redrive/dlq/jobtype"
	"github.com/redrive-dlq/redrive/dlq/ledger"
	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/dlq/replay"
	"github.com/redrive-dlq/redrive/migrations/testdb"
	"github.com/redrive-dlq/redrive/rbac"
)

const machineCatalogue = `
environments: [production, staging]
types:
  send_welcome_email:
    side_effects: [{kind: email, text: sends one e-mail}]
    idempotency: {by: key, scope: welcome}
    rate: {per_minute: 60, burst: 3, per_tenant_per_minute: 30}
    batch: {approval_above: 6, canary: 2, stop_at_failure_pct: 50}
    targets:
      production: {http: {url: "http://127.0.0.1:1/production"}, outcome_within: 15m, concurrency: 4}
      staging: {http: {url: "http://127.0.0.1:1/staging"}, outcome_within: 15m, concurrency: 4}
  sync_contact:
    side_effects: [{kind: write, text: writes a contact}]
    idempotency: {by: key, scope: sync}
    rate: {per_minute: 120, burst: 2}
    targets:
      production: {http: {url: "http://127.0.0.1:1/production"}, outcome_within: 15m, concurrency: 4}
`

// breaker makes the database fail at a chosen statement: everything that a
// process does can end there, COMMIT too.
type statementBreaker struct{ left atomic.Int64 }

// TraceQueryStart implements pgx.QueryTracer.
func (s *statementBreaker) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	if s.left.Load() > 0 && s.left.Add(-1) == 0 {
		broken, cancel := context.WithCancelCause(ctx)
		cancel(errBroken)
		return broken
	}
	return ctx
}

// TraceQueryEnd implements pgx.QueryTracer.
func (s *statementBreaker) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

var errBroken = errors.New("the test broke this statement")

// machine is the whole life of batches on one store, by one clock.
type machine struct {
	*bundle
	broken   *statementBreaker
	clock    time.Time
	approver *rbac.Principal
	next     int
	batches  []int64
	effects  map[string]int // what the world saw, by environment and key
	released int
	out      map[int64]bool // replays that the target got and nobody worked on
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	cfg, err := pgxpool.ParseConfig(testdb.NewURL(t))
	if err != nil {
		t.Fatal(err)
	}
	m := &machine{broken: &statementBreaker{}}
	cfg.ConnConfig.Tracer = m.broken
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	cat, err := jobtype.Load(fstest.MapFS{"types.yaml": {Data: []byte(machineCatalogue)}}, "types.yaml")
	if err != nil {
		t.Fatal(err)
	}
	target := &countingTarget{left: map[int64]int{}}
	m.bundle = &bundle{pool: pool, target: target,
		oncall: &rbac.Principal{UserID: 1, Email: "oncall@demo.test", Grants: []rbac.Grant{{Role: rbac.OnCall}}}}
	m.approver = &rbac.Principal{UserID: 2, Email: "approver@demo.test", Grants: []rbac.Grant{{Role: rbac.Approver}}}
	m.seat(t, m.oncall, m.approver)
	m.svc = &replay.Service{Pool: pool, Types: func() *jobtype.Catalogue { return cat }, Sealer: envelope.Plain{},
		Targets: map[string]replay.Target{"http": target}, Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return m.clock }}
	return m
}

// reset empties the store for the next run; the audit log can't be emptied.
func (m *machine) reset(t *rapid.T) {
	m.broken.left.Store(0)
	for _, sql := range []string{
		`TRUNCATE redrive.dead_jobs, redrive.batches, redrive.ledger, redrive.counter_deltas, redrive.counters, redrive.type_counters,
		          redrive.release_buckets, redrive.tenant_buckets, redrive.destinations, redrive.holds, redrive.late_outcomes,
		          redrive.batch_counters, redrive.batch_deltas CASCADE`,
	} {
		if _, err := m.pool.Exec(context.Background(), sql); err != nil {
			t.Fatal(err)
		}
	}
	m.clock = time.Now().UTC().Truncate(time.Millisecond)
	m.batches, m.effects, m.out = nil, map[string]int{}, map[int64]bool{}
	m.target.left = map[int64]int{}
	for range 8 {
		m.dies(t)
	}
}

// TestLifeOfBatches draws any mix of what people, workers, sources and broken
// statements do, and looks after each step at what must always hold. At the
// end everything that is open is let go on, and must end.
func TestLifeOfBatches(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	rapid.Check(t, func(rt *rapid.T) {
		m.reset(rt)
		rt.Repeat(map[string]func(*rapid.T){
			"":         m.invariants,
			"die":      m.dies,
			"dieAgain": m.diesAgain,
			"plan":     m.plan,
			"freeze":   func(t *rapid.T) { m.work(t, replay.WorkPlan) },
			"confirm":  m.confirm,
			"approve":  m.approve,
			"start":    func(t *rapid.T) { m.work(t, replay.WorkStart) },
			"end":      func(t *rapid.T) { m.work(t, replay.WorkCancel) },
			"release":  m.releases,
			"worker":   m.worker,
			"steer":    m.steer,
			"hold":     m.holds,
			"single":   m.single,
			"triage":   m.triage,
			"settle":   m.settle,
			"wait":     m.wait,
			"sweep":    m.sweep,
			"launch":   m.launch,
			"launch 2": m.launch,
			"run":      m.run,
			"run 2":    m.run,
			"run 3":    m.run,
		})
		m.finish(rt)
	})
	m.reached(t)
}

// reached expects that the drawn lives came everywhere: a machine that does
// nothing breaks nothing.
func (m *machine) reached(t *testing.T) {
	t.Helper()
	rows, err := m.pool.Query(context.Background(), `SELECT action, count(*) FROM redrive.audit_entries GROUP BY action`)
	if err != nil {
		t.Fatal(err)
	}
	acts := map[string]int{}
	var action string
	var n int
	if _, err := pgx.ForEachRow(rows, []any{&action, &n}, func() error { acts[action] = n; return nil }); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d releases; %v", m.released, acts)
	if testing.Short() {
		return // so few lives don't come everywhere
	}
	for _, want := range []string{"batch.plan", "batch.confirm", "batch.approve", "batch.pause", "batch.resume", "batch.cancel", "batch.start",
		"batch.canary_passed", "batch.stop", "replay.skipped", "hold.place", "hold.lift", "replay.order", "key.done"} {
		if acts[want] == 0 {
			t.Errorf("no life came to %s", want)
		}
	}
}

// try runs one act, now and then on a database that breaks in its middle. A
// refusal is an answer; anything else is a defect.
func (m *machine) try(t *rapid.T, what string, act func(ctx context.Context) error) {
	breakAt := 0
	if rapid.IntRange(0, 5).Draw(t, "break") == 0 {
		breakAt = rapid.IntRange(1, 15).Draw(t, "at")
	}
	m.broken.left.Store(int64(breakAt))
	err := act(context.Background())
	m.broken.left.Store(0)
	var p *problem.Error
	switch {
	case err == nil, breakAt > 0, ledger.IsBusy(err):
	case errors.As(err, &p) && p.Code != problem.Internal && p.Code != problem.Unavailable:
	default:
		t.Fatalf("%s: %v", what, err)
	}
}

func (m *machine) dies(t *rapid.T) {
	m.next++
	o := jobOpts{id: fmt.Sprint("job", m.next),
		env:      rapid.SampledFrom([]string{"production", "production", "staging"}).Draw(t, "env"),
		entity:   rapid.SampledFrom([]string{"", "", "e1", "e2"}).Draw(t, "entity"),
		category: rapid.SampledFrom([]string{"transient", "transient", "transient", "invalid_input"}).Draw(t, "category")}
	if o.env == "production" && rapid.Bool().Draw(t, "sync") {
		o.jobType, o.scope = "sync_contact", "sync"
	}
	if rapid.IntRange(0, 3).Draw(t, "keyed") > 0 {
		o.key = fmt.Sprint("k", rapid.IntRange(1, 6).Draw(t, "key"))
	}
	m.job2(t, o, rapid.SampledFrom([]string{"", "acme", "globex"}).Draw(t, "tenant"))
}

// job2 stores a dead job of a tenant.
func (m *machine) job2(t *rapid.T, o jobOpts, tenant string) {
	if o.jobType == "" {
		o.jobType, o.scope = "send_welcome_email", "welcome"
	}
	sealed, err := envelope.Plain{}.Seal([]byte(`{"a": 1}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = m.pool.Exec(context.Background(), `
		WITH j AS (
			INSERT INTO redrive.dead_jobs (environment, source, job_id, job_type, key_scope, idempotency_key, entity, tenant, category, fingerprint, died_at, captured_at, attempt_count)
			VALUES ($1, 'test', $2, $3, $4, $5, $6, $7, $8, 'f', $9, $9, 3) RETURNING id)
		INSERT INTO redrive.payloads (dead_job_id, version, bytes, encoding, size, sha256, redacted, redact_version, origin)
		SELECT id, 1, $10, 'json', 8, '', '{"a": 1}', 1, 'capture' FROM j`,
		o.env, o.id, o.jobType, o.scope, o.key, o.entity, tenant, o.category, m.clock, sealed)
	if err != nil {
		t.Fatal(err)
	}
}

// diesAgain is a source that tells of a later death.
func (m *machine) diesAgain(t *rapid.T) {
	id := m.pick(t, "job", `SELECT id FROM redrive.dead_jobs WHERE status <> 'recovered' ORDER BY id`)
	if id == 0 {
		return
	}
	m.try(t, "die again", func(ctx context.Context) error {
		_, err := m.pool.Exec(ctx, `
			UPDATE redrive.dead_jobs
			SET generation = generation + 1, status = 'open', died_at = $2, updated_at = $2, fix_kind = ''
			WHERE id = $1 AND NOT EXISTS (SELECT FROM redrive.replays r WHERE r.dead_job_id = $1 AND r.state = 'released')`, id, m.clock)
		return err
	})
}

func (m *machine) plan(t *rapid.T) {
	kind := rapid.SampledFrom([]string{"send_welcome_email", "sync_contact"}).Draw(t, "type")
	sel := replay.Selection{Filter: filter.Filter{Types: []string{kind}}}
	if rapid.IntRange(0, 2).Draw(t, "by id") == 0 {
		sel = replay.Selection{}
		for range rapid.IntRange(0, 4).Draw(t, "n") {
			if id := m.pick(t, "job", `SELECT id FROM redrive.dead_jobs ORDER BY id`); id != 0 {
				sel.IDs = append(sel.IDs, id)
			}
		}
	}
	m.try(t, "plan", func(ctx context.Context) error {
		ids, err := m.svc.Plan(ctx, m.oncall, sel, "the machine says so")
		if err == nil && len(sel.IDs) == 0 && len(sel.Filter.Types) == 0 {
			t.Fatal("an empty selection was planned")
		}
		m.batches = append(m.batches, ids...)
		return err
	})
}

func (m *machine) work(t *rapid.T, w replay.Work) {
	if id := m.batch(t); id != 0 {
		m.try(t, string(w), func(ctx context.Context) error {
			_, err := m.svc.Do(ctx, w, id)
			return err
		})
	}
}

func (m *machine) confirm(t *rapid.T) {
	id := m.batch(t)
	if id == 0 {
		return
	}
	after := time.Duration(rapid.IntRange(0, 2).Draw(t, "minutes")) * time.Minute
	canary := rapid.IntRange(0, 2).Draw(t, "canary")
	m.try(t, "confirm", func(ctx context.Context) error { return m.agree(ctx, id, after, canary) })
}

// agree reviews and confirms a batch.
func (m *machine) agree(ctx context.Context, id int64, after time.Duration, canary int) error {
	var hash string
	var eligible int
	if err := m.pool.QueryRow(ctx, `SELECT plan_hash, eligible FROM redrive.batches WHERE id = $1`, id).Scan(&hash, &eligible); err != nil {
		return err
	}
	review, err := m.svc.Review(ctx, m.oncall, replay.ReviewOrder{Batch: id, PlanHash: hash, Reason: "the machine says so", StartAfter: after,
		Canary: min(canary, eligible)})
	if err != nil {
		return err
	}
	page, err := m.svc.Confirming(ctx, m.oncall, id)
	if err != nil {
		return err
	}
	_, err = m.svc.Confirm(ctx, m.oncall, replay.ConfirmOrder{Batch: id, PlanHash: hash, ReviewHash: review, Phrase: page.Phrase, Nonce: page.Nonce})
	return err
}

func (m *machine) approve(t *rapid.T) {
	id := m.batch(t)
	if id == 0 {
		return
	}
	who := rapid.SampledFrom([]*rbac.Principal{m.approver, m.approver, m.oncall}).Draw(t, "who")
	m.try(t, "approve", func(ctx context.Context) error {
		page, err := m.svc.Confirming(ctx, who, id)
		if err != nil {
			return err
		}
		_, err = m.svc.Approve(ctx, who, replay.ConfirmOrder{Batch: id, PlanHash: page.PlanHash, ReviewHash: page.ReviewHash, Phrase: page.Phrase, Nonce: page.Nonce})
		if err == nil && who == m.oncall {
			t.Fatal("somebody approved what they asked for")
		}
		return err
	})
}

// launch takes a batch all the way to its first releases, since drawn acts
// alone rarely come so far.
func (m *machine) launch(t *rapid.T) {
	kind := rapid.SampledFrom([]string{"send_welcome_email", "sync_contact"}).Draw(t, "type")
	ctx := context.Background()
	ids, err := m.svc.Plan(ctx, m.oncall, replay.Selection{Filter: filter.Filter{Types: []string{kind}, Status: []string{"open"}}}, "the machine says so")
	if problem.Is(err, problem.Invalid) {
		return // nothing is open
	}
	if err != nil {
		t.Fatal(err)
	}
	m.batches = append(m.batches, ids...)
	canary := rapid.IntRange(0, 2).Draw(t, "canary")
	for _, id := range ids {
		for done := false; !done; {
			if done, err = m.svc.Do(ctx, replay.WorkPlan, id); err != nil {
				t.Fatal(err)
			}
		}
		m.try(t, "launch", func(ctx context.Context) error {
			if err := m.agree(ctx, id, 0, canary); err != nil {
				return err
			}
			if page, err := m.svc.Confirming(ctx, m.approver, id); err == nil {
				order := replay.ConfirmOrder{Batch: id, PlanHash: page.PlanHash, ReviewHash: page.ReviewHash, Phrase: page.Phrase, Nonce: page.Nonce}
				if _, err := m.svc.Approve(ctx, m.approver, order); err != nil {
					return err
				}
			}
			_, err := m.svc.Do(ctx, replay.WorkStart, id)
			return err
		})
	}
}

// run lets a few replays leave and be worked on.
func (m *machine) run(t *rapid.T) {
	for range rapid.IntRange(1, 4).Draw(t, "times") {
		m.releases(t)
		m.worker(t)
		m.worker(t)
		m.clock = m.clock.Add(time.Second)
	}
}

func (m *machine) releases(t *rapid.T) {
	m.try(t, "release", func(ctx context.Context) error {
		_, err := m.svc.ReleaseDue(ctx)
		return err
	})
}

// pick draws one id that the query returns; 0 when there is none.
func (m *machine) pick(t *rapid.T, name, sql string, args ...any) int64 {
	rows, err := m.pool.Query(context.Background(), sql, args...)
	if err != nil {
		t.Fatal(err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		t.Fatal(err)
	}
	if len(ids) == 0 {
		return 0
	}
	return rapid.SampledFrom(ids).Draw(t, name)
}

func (m *machine) batch(t *rapid.T) int64 {
	return m.pick(t, "batch", `SELECT id FROM redrive.batches WHERE kind = 'batch' ORDER BY id`)
}
