package replay_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/dlq/envelope"
	"github.com/redrive-dlq/redrive/dlq/jobtype"
	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/dlq/replay"
	"github.com/redrive-dlq/redrive/migrations/testdb"
	"github.com/redrive-dlq/redrive/rbac"
)

const ordersCatalogue = `
environments: [production, staging]
types:
  send_welcome_email:
    side_effects: [{kind: email, text: sends one e-mail}]
    idempotency: {by: key, scope: welcome}
    rate: {per_minute: 6000, burst: 100}
    batch: {approval_above: 1000, canary: 10, stop_at_failure_pct: 20}
    targets:
      production: {http: {url: "http://127.0.0.1:1/x"}, outcome_within: 15m}
      staging: {http: {url: "http://127.0.0.1:1/x"}, outcome_within: 15m}
  charge_card:
    side_effects: [{kind: money, text: charges a card}]
    idempotency: {by: key, scope: charge}
    targets:
      production: {http: {url: "http://127.0.0.1:1/x"}, outcome_within: 15m}
  import_catalog:
    side_effects: [{kind: write, text: writes a catalogue}]
    idempotency: {by: none}
    targets:
      production: {http: {url: "http://127.0.0.1:1/x"}, outcome_within: 15m}
`

// ordersBundle is a store with planned batches, a clock that tests move and a
// catalogue that they change.
type ordersBundle struct {
	*bundle
	clock              time.Time
	types              atomic.Pointer[jobtype.Catalogue]
	mu                 sync.Mutex
	work               []string // what was handed to the engine
	second, operator   *rbac.Principal
	approver, stranger *rbac.Principal
}

func principal(id int64, role rbac.Role, environment string) *rbac.Principal {
	return &rbac.Principal{UserID: id, Email: fmt.Sprintf("%s%d@demo.test", role, id), Grants: []rbac.Grant{{Role: role, Environment: environment}}}
}

func ordersSetup(t *testing.T) *ordersBundle {
	t.Helper()
	b := &ordersBundle{clock: time.Now().UTC().Truncate(time.Millisecond),
		second: principal(2, rbac.OnCall, ""), operator: principal(3, rbac.Operator, ""),
		approver: principal(4, rbac.Approver, ""), stranger: principal(5, rbac.OnCall, "staging")}
	b.declare(t, ordersCatalogue)
	pool, target := testdb.New(t), &countingTarget{left: map[int64]int{}}
	b.bundle = &bundle{pool: pool, target: target, oncall: principal(1, rbac.OnCall, "")}
	b.seat(t, b.oncall, b.second, b.operator, b.approver, b.stranger)
	b.svc = &replay.Service{Pool: pool, Types: b.types.Load, Targets: map[string]replay.Target{"http": target}, Sealer: envelope.Plain{},
		Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return b.clock }}
	b.svc.Enqueue = func(_ context.Context, _ pgx.Tx, w replay.Work, batch int64) error {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.work = append(b.work, fmt.Sprint(w, " ", batch))
		return nil
	}
	return b
}

// seat makes principals people of the store, with their roles.
func (b *bundle) seat(t *testing.T, people ...*rbac.Principal) {
	t.Helper()
	for _, p := range people {
		b.exec(t, `INSERT INTO redrive.users (id, email, password_hash) OVERRIDING SYSTEM VALUE VALUES ($1, $2, 'none')`, p.UserID, p.Email)
		for _, g := range p.Grants {
			b.exec(t, `INSERT INTO redrive.grants (user_id, role, environment, job_type) VALUES ($1, $2, $3, $4)`, p.UserID, g.Role, g.Environment, g.JobType)
		}
	}
}

// declare puts another catalogue in force.
func (b *ordersBundle) declare(t *testing.T, yaml string) {
	t.Helper()
	cat, err := jobtype.Load(fstest.MapFS{"types.yaml": {Data: []byte(yaml)}}, "types.yaml")
	if err != nil {
		t.Fatal(err)
	}
	b.types.Store(cat)
}

// without is the catalogue without a type's target or the type itself.
func without(jobType string) string {
	head, rest, _ := strings.Cut(ordersCatalogue, "  "+jobType+":")
	if _, after, ok := strings.Cut(rest, "\n  import_catalog:"); ok && jobType != "import_catalog" {
		return head + "  import_catalog:" + after
	}
	return head
}

// planned stores a batch as a completed plan leaves it, with members when n is
// small: jobs, and items that are all eligible.
func (b *ordersBundle) planned(t *testing.T, jobType string, n int) int64 {
	t.Helper()
	var id int64
	err := b.pool.QueryRow(t.Context(), `
		INSERT INTO redrive.batches
			(environment, job_type, kind, state, cutoff, reason, plan_hash, plan_revision, planned, eligible, planned_at, created_by, created_by_id,
			 target_kind, target, destination, verdicts)
		VALUES ('production', $1, 'batch', 'planned', $2, 'the bug is fixed', md5(random()::text), 1, $3, $3, $2, 'operator3@demo.test', 3,
		        'http', '{"url": "http://127.0.0.1:1/x", "outcome_within_ms": 900000}', 'http://127.0.0.1:1/x', jsonb_build_object('eligible', $3::integer))
		RETURNING id`, jobType, b.clock, n).Scan(&id)
	if err != nil {
		t.Fatal(err)
	}
	if n <= 100 {
		b.members(t, id, jobType, n)
	}
	return id
}

func (b *ordersBundle) members(t *testing.T, batch int64, jobType string, n int) {
	t.Helper()
	scope := map[string]string{"charge_card": "charge", "send_welcome_email": "welcome"}[jobType]
	for i := range n {
		name := fmt.Sprintf("%d/%d", batch, i)
		job := b.job(t, jobOpts{id: name, key: name, jobType: jobType, scope: scope})
		_, err := b.pool.Exec(t.Context(), `
			INSERT INTO redrive.replays
				(batch_id, dead_job_id, generation, payload_version, environment, source, job_id, job_type, key_scope, idempotency_key,
				 target_kind, destination, state, canary_rank)
			SELECT $1, id, generation, payload_version, environment, source, job_id, job_type, key_scope, idempotency_key,
			       'http', 'http://127.0.0.1:1/x', 'planned', $3
			FROM redrive.dead_jobs
			WHERE id = $2`, batch, job, i+1)
		if err != nil {
			t.Fatal(err)
		}
	}
}

func (b *ordersBundle) planHash(t *testing.T, id int64) (hash string) {
	t.Helper()
	if err := b.pool.QueryRow(t.Context(), `SELECT plan_hash FROM redrive.batches WHERE id = $1`, id).Scan(&hash); err != nil {
		t.Fatal(err)
	}
	return hash
}

// review reviews a batch with five minutes' delay and a canary of two.
func (b *ordersBundle) review(t *testing.T, id int64) string {
	t.Helper()
	hash, err := b.svc.Review(t.Context(), b.oncall, b.reviewOrder(t, id))
	if err != nil {
		t.Fatal(err)
	}
	return hash
}

func (b *ordersBundle) reviewOrder(t *testing.T, id int64) replay.ReviewOrder {
	t.Helper()
	return replay.ReviewOrder{Batch: id, PlanHash: b.planHash(t, id), Reason: "the bug is fixed", StartAfter: 5 * time.Minute, Canary: 2, AcceptRepeat: true}
}

// page asks for the second page and fills it in.
func (b *ordersBundle) page(t *testing.T, p *rbac.Principal, id int64) replay.ConfirmOrder {
	t.Helper()
	c, err := b.svc.Confirming(t.Context(), p, id)
	if err != nil {
		t.Fatal(err)
	}
	return replay.ConfirmOrder{Batch: id, PlanHash: c.PlanHash, ReviewHash: c.ReviewHash, Phrase: c.Phrase, Nonce: c.Nonce}
}

// confirmed reviews and confirms a batch and returns its state.
func (b *ordersBundle) confirmed(t *testing.T, id int64) string {
	t.Helper()
	b.review(t, id)
	state, err := b.svc.Confirm(t.Context(), b.oncall, b.page(t, b.oncall, id))
	if err != nil {
		t.Fatal(err)
	}
	return state
}

func (b *ordersBundle) state(t *testing.T, id int64) (state string) {
	t.Helper()
	if err := b.pool.QueryRow(t.Context(), `SELECT state FROM redrive.batches WHERE id = $1`, id).Scan(&state); err != nil {
		t.Fatal(err)
	}
	return state
}

func (b *ordersBundle) entries(t *testing.T, action string) int {
	t.Helper()
	return b.count(t, `SELECT count(*) FROM redrive.audit_entries WHERE action = $1`, action)
}

// refused checks an answer's code, and that nothing at all was written.
func (b *ordersBundle) refused(t *testing.T, what string, code problem.Code, words string, act func() error) {
	t.Helper()
	before := b.checksum(t)
	err := act()
	if !problem.Is(err, code) || !strings.Contains(fmt.Sprint(err), words) {
		t.Errorf("%s: %v, want %s with %q", what, err, code, words)
	}
	if after := b.checksum(t); after != before {
		t.Errorf("%s: refused, and yet something was changed", what)
	}
}

// checksum is over every row that an order could touch.
func (b *ordersBundle) checksum(t *testing.T) (sum string) {
	t.Helper()
	err := b.pool.QueryRow(t.Context(), `
		SELECT md5(coalesce(string_agg(x, ' ' ORDER BY x), ''))
		FROM (SELECT b::text FROM redrive.batches b
		      UNION ALL SELECT r::text FROM redrive.replays r
		      UNION ALL SELECT d::text FROM redrive.dead_jobs d
		      UNION ALL SELECT u::text FROM redrive.runs u
		      UNION ALL SELECT h::text FROM redrive.holds h
		      UNION ALL SELECT c::text FROM redrive.confirmations c
		      UNION ALL SELECT id::text FROM redrive.audit_entries) AS rows (x)`).Scan(&sum)
	if err != nil {
		t.Fatal(err)
	}
	return sum
}
