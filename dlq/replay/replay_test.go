package replay_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/redrive-dlq/redrive/dlq"
	"github.com/redrive-dlq/redrive/dlq/envelope"
	"github.com/redrive-dlq/redrive/dlq/jobtype"
	"github.com/redrive-dlq/redrive/dlq/ledger"
	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/dlq/replay"
	"github.com/redrive-dlq/redrive/migrations/testdb"
	"github.com/redrive-dlq/redrive/rbac"
)

const catalogue = `
environments: [production, staging]
types:
  send_welcome_email:
    side_effects: [{kind: email, text: sends one e-mail}]
    idempotency: {by: key, scope: welcome}
    rate: {per_minute: 60000, burst: 1000}
    targets:
      production: {http: {url: "http://127.0.0.1:1/x"}, outcome_within: 15m}
      staging: {http: {url: "http://127.0.0.1:1/x"}, outcome_within: 15m}
  charge_card:
    side_effects: [{kind: money, text: charges a card}]
    idempotency: {by: key, scope: charge}
    targets:
      production: {http: {url: "http://127.0.0.1:1/x"}, outcome_within: 15m}
  sync_contact:
    side_effects: [{kind: write, text: writes a contact}]
    idempotency: {by: key, scope: sync, provider_deduplicates: true}
    targets:
      production: {http: {url: "http://127.0.0.1:1/x"}, outcome_within: 15m}
`

// countingTarget takes every replay and counts what left, by replay id.
type countingTarget struct {
	mu   sync.Mutex
	left map[int64]int
	fail atomic.Bool
	// written says that hand-overs are written to handed_over, too, as those of
	// real targets are: one whose transaction was undone never happened.
	written bool
}

func (c *countingTarget) Check(_ context.Context, _ pgx.Tx, items []replay.Item, _ [][]byte) ([]*replay.Refusal, error) {
	return make([]*replay.Refusal, len(items)), nil
}

func (c *countingTarget) Release(ctx context.Context, tx pgx.Tx, items []replay.Item) ([]replay.Released, error) {
	out := make([]replay.Released, len(items))
	for _, it := range items {
		if !c.written || c.fail.Load() {
			break
		}
		if _, err := tx.Exec(ctx, `INSERT INTO public.handed_over VALUES ($1)`, it.ReplayID); err != nil {
			return nil, err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, it := range items {
		if c.fail.Load() {
			out[i].Refusal = &replay.Refusal{Code: "no", Detail: "the test says so"}
			continue
		}
		c.left[it.ReplayID]++
		out[i].Delivered = true
	}
	return out, nil
}

type bundle struct {
	pool   *pgxpool.Pool
	svc    *replay.Service
	target *countingTarget
	oncall *rbac.Principal
}

func setup(t *testing.T) *bundle {
	t.Helper()
	pool := testdb.New(t)
	cat, err := jobtype.Load(fstest.MapFS{"types.yaml": {Data: []byte(catalogue)}}, "types.yaml")
	if err != nil {
		t.Fatal(err)
	}
	target := &countingTarget{left: map[int64]int{}}
	return &bundle{
		pool:   pool,
		target: target,
		svc: &replay.Service{Pool: pool, Types: func() *jobtype.Catalogue { return cat },
			Targets: map[string]replay.Target{"http": target}, Sealer: envelope.Plain{}, Log: slog.New(slog.DiscardHandler)},
		oncall: &rbac.Principal{UserID: 1, Email: "oncall@demo.test", Grants: []rbac.Grant{{Role: rbac.OnCall}}},
	}
}

type jobOpts struct {
	env, jobType, scope, id, key, entity, category, effect, kind string
}

func (b *bundle) job(t *testing.T, o jobOpts) int64 {
	t.Helper()
	def := func(s *string, v string) {
		if *s == "" {
			*s = v
		}
	}
	def(&o.env, "production")
	def(&o.jobType, "send_welcome_email")
	def(&o.scope, "welcome")
	def(&o.category, "transient")
	def(&o.effect, "none")
	def(&o.kind, "json")
	sealed, err := envelope.Plain{}.Seal([]byte(`{"a": 1}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	var id int64
	err = b.pool.QueryRow(t.Context(), `
		WITH j AS (
			INSERT INTO redrive.dead_jobs (environment, source, job_id, job_type, key_scope, idempotency_key, entity, category, effect, payload_kind, fingerprint, died_at, attempt_count)
			VALUES ($1, 'test', $2, $3, $4, $5, $6, $7, $8, $9, 'f', now(), 3) RETURNING id)
		INSERT INTO redrive.payloads (dead_job_id, version, bytes, encoding, size, sha256, redacted, redact_version, origin)
		SELECT id, 1, $10, 'json', 8, '', '{"a": 1}', 1, 'capture' FROM j
		RETURNING dead_job_id`, o.env, o.id, o.jobType, o.scope, o.key, o.entity, o.category, o.effect, o.kind, sealed).Scan(&id)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func (b *bundle) order(id int64) (replay.Ordered, error) {
	return b.svc.One(context.Background(), b.oncall, replay.Order{DeadJobID: id, Generation: 1, PayloadVersion: 1, Reason: "the test says so"})
}

func (b *bundle) status(t *testing.T, id int64) (status, effect, effectID string) {
	t.Helper()
	err := b.pool.QueryRow(t.Context(), `SELECT status, effect, effect_id FROM redrive.dead_jobs WHERE id = $1`, id).Scan(&status, &effect, &effectID)
	if err != nil {
		t.Fatal(err)
	}
	return status, effect, effectID
}

func (b *bundle) outcome(t *testing.T, replayID int64) (state, outcome, code string) {
	t.Helper()
	err := b.pool.QueryRow(t.Context(), `SELECT state, coalesce(outcome, ''), outcome_code FROM redrive.replays WHERE id = $1`, replayID).Scan(&state, &outcome, &code)
	if err != nil {
		t.Fatal(err)
	}
	return state, outcome, code
}

func (b *bundle) release(t *testing.T) int {
	t.Helper()
	n, err := b.svc.ReleaseDue(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func (b *bundle) count(t *testing.T, sql string, args ...any) int {
	t.Helper()
	var n int
	if err := b.pool.QueryRow(t.Context(), sql, args...).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestFiftyParallelOrdersMakeOneReplay(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.job(t, jobOpts{id: "1", key: "k1"})
	var won, conflicts atomic.Int32
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			_, err := b.order(id)
			switch {
			case err == nil:
				won.Add(1)
			case problem.Is(err, problem.Conflict):
				conflicts.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if won.Load() != 1 || conflicts.Load() != 49 {
		t.Fatalf("won %d, conflicts %d", won.Load(), conflicts.Load())
	}
	if n := b.count(t, `SELECT count(*) FROM redrive.audit_entries WHERE action = 'replay.order'`); n != 1 {
		t.Fatalf("%d audit entries for one order", n)
	}
	if b.release(t) != 1 || b.release(t) != 0 {
		t.Fatal("released more or less than once")
	}
}

func TestSameKeyEndsAlreadyDone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first, second := b.job(t, jobOpts{id: "1", key: "k"}), b.job(t, jobOpts{id: "2", key: "k"})
	staging := b.job(t, jobOpts{id: "3", key: "k", env: "staging"})
	one, err := b.order(first)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.order(second); !problem.Is(err, problem.Conflict) {
		t.Fatalf("a second replay of one key in flight: %v", err)
	}
	b.release(t)
	key := ledger.Key{Environment: "production", Scope: "welcome", Key: "k"}
	if err := ledger.Finish(t.Context(), b.pool, key, json.RawMessage(`{"id":"m_1"}`)); err != nil {
		t.Fatal(err)
	}
	if s, e, id := b.status(t, second); s != "resolved" || e != "done" || id != "m_1" {
		t.Fatalf("the other job of the key is %s, %s, %q", s, e, id)
	}
	if _, err := b.svc.Record(t.Context(), one.ReplayID, replay.End{Outcome: replay.Succeeded}); err != nil {
		t.Fatal(err)
	}
	if s, e, id := b.status(t, first); s != "recovered" || e != "done" || id != "m_1" {
		t.Fatalf("the replayed job is %s, %s, %q", s, e, id)
	}
	if s, _, _ := b.status(t, staging); s != "open" {
		t.Fatalf("a staging job ended by a production key: %s", s)
	}
	v, err := b.svc.Judge(t.Context(), b.oncall, first)
	if err != nil || v.Code != replay.KeyDone || v.EffectID != "m_1" {
		t.Fatalf("replaying again: %+v, %v", v, err)
	}
}

func TestVerdicts(t *testing.T) {
	t.Parallel()
	b := setup(t)
	cases := []struct {
		name string
		opts jobOpts
		want string
		lift replay.Lift
	}{
		{"open and transient", jobOpts{}, replay.Eligible, ""},
		{"invalid input without fix", jobOpts{category: "invalid_input"}, replay.InvalidInput, replay.LiftDeclareFix},
		{"auth without fix", jobOpts{category: "auth"}, replay.AuthNotFixed, replay.LiftDeclareFix},
		{"effect unknown", jobOpts{effect: "unknown"}, replay.EffectUnknown, replay.LiftSettle},
		{"effect unknown, the provider deduplicates", jobOpts{effect: "unknown", jobType: "sync_contact", scope: "sync"}, replay.Eligible, ""},
		{"undeclared type", jobOpts{jobType: "nobody_knows"}, replay.TypeUnknown, replay.LiftCatalogue},
		{"no target in its environment", jobOpts{jobType: "charge_card", env: "staging"}, replay.NotReplayable, replay.LiftCatalogue},
		{"printout", jobOpts{kind: "printout"}, replay.PayloadMissing, ""},
	}
	for i, c := range cases {
		c.opts.id = c.name
		id := b.job(t, c.opts)
		v, err := b.svc.Judge(t.Context(), b.oncall, id)
		if err != nil {
			t.Fatal(err)
		}
		if v.Code != c.want || v.Lift != c.lift {
			t.Errorf("%d %s: %s (lift %q), want %s (lift %q)", i, c.name, v.Code, v.Lift, c.want, c.lift)
		}
		if v.Code != replay.Eligible {
			if _, err := b.order(id); !problem.Is(err, problem.Conflict) {
				t.Errorf("%s: ordering it gave %v", c.name, err)
			}
		}
	}
	if n := b.count(t, `SELECT count(*) FROM redrive.replays`); n != 0 {
		t.Errorf("judging and refusing wrote %d replays", n)
	}
}

func TestRights(t *testing.T) {
	t.Parallel()
	b := setup(t)
	money := b.job(t, jobOpts{id: "m", jobType: "charge_card", scope: "charge"})
	mail := b.job(t, jobOpts{id: "w"})
	as := func(r rbac.Role, env string) *rbac.Principal {
		return &rbac.Principal{UserID: 2, Email: "p@demo.test", Grants: []rbac.Grant{{Role: r, Environment: env}}}
	}
	order := func(p *rbac.Principal, id int64) problem.Code {
		_, err := b.svc.One(t.Context(), p, replay.Order{DeadJobID: id, Generation: 1, PayloadVersion: 1, Reason: "a good reason"})
		return problem.CodeOf(err)
	}
	if c := order(as(rbac.Viewer, ""), mail); c != problem.Forbidden {
		t.Errorf("viewer: %s", c)
	}
	if c := order(as(rbac.OnCall, "staging"), mail); c != problem.NotFound {
		t.Errorf("on-call of another environment: %s", c)
	}
	if c := order(as(rbac.Operator, ""), money); c != problem.Forbidden {
		t.Errorf("operator and money: %s", c)
	}
	if c := order(as(rbac.Operator, ""), mail); c != "" {
		t.Errorf("operator and mail: %s", c)
	}
}

func TestEntityLeavesOneAtATime(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first := b.job(t, jobOpts{id: "1", key: "a", entity: "order:1"})
	second := b.job(t, jobOpts{id: "2", key: "b", entity: "order:1"})
	one, err := b.order(first)
	if err != nil {
		t.Fatal(err)
	}
	two, err := b.order(second)
	if err != nil {
		t.Fatal(err)
	}
	if n := b.release(t); n != 1 {
		t.Fatalf("%d of one entity left at once", n)
	}
	if state, _, _ := b.outcome(t, two.ReplayID); state != "pending" {
		t.Fatalf("the later one is %s", state)
	}
	if _, err := b.svc.Record(t.Context(), one.ReplayID, replay.End{Outcome: replay.Succeeded}); err != nil {
		t.Fatal(err)
	}
	if n := b.release(t); n != 1 {
		t.Fatalf("after the first ended, %d left", n)
	}
}

func TestFirstOutcomeWins(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.job(t, jobOpts{id: "1", key: "k"})
	o, err := b.order(id)
	if err != nil {
		t.Fatal(err)
	}
	b.release(t)
	var first atomic.Int32
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			kind := []string{replay.Succeeded, replay.Failed}[i%2]
			ok, err := b.svc.Record(context.Background(), o.ReplayID, replay.End{Outcome: kind})
			if err != nil && !isLockTimeout(err) {
				t.Error(err)
			}
			if ok {
				first.Add(1)
			}
		})
	}
	wg.Wait()
	if first.Load() != 1 {
		t.Fatalf("%d outcomes were first", first.Load())
	}
}

func TestDeadlineLeavesTheEffectUnknown(t *testing.T) {
	t.Parallel()
	b := setup(t)
	now := time.Now()
	b.svc.Now = func() time.Time { return now }
	id := b.job(t, jobOpts{id: "1", key: "k"})
	o, err := b.order(id)
	if err != nil {
		t.Fatal(err)
	}
	b.release(t)
	now = now.Add(14 * time.Minute)
	if n, err := b.svc.Expire(t.Context()); n != 0 || err != nil {
		t.Fatal("expired early", n, err)
	}
	now = now.Add(2 * time.Minute)
	if n, err := b.svc.Expire(t.Context()); n != 1 || err != nil {
		t.Fatal("not expired", n, err)
	}
	if _, out, code := b.outcome(t, o.ReplayID); out != replay.Unconfirmed || code != "deadline" {
		t.Fatal(out, code)
	}
	if s, e, _ := b.status(t, id); s != "open" || e != "unknown" {
		t.Fatal(s, e)
	}
	if _, err := b.order(id); !problem.Is(err, problem.Conflict) {
		t.Fatalf("an unknown effect was replayed unasked: %v", err)
	}
	if err := ledger.Settle(t.Context(), b.pool, b.oncall, id, ledger.Settlement{Reason: "the provider has nothing"}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.order(id); err != nil {
		t.Fatalf("after it was settled: %v", err)
	}
}

func TestSettleHappenedClosesEveryJobOfTheKey(t *testing.T) {
	t.Parallel()
	b := setup(t)
	a := b.job(t, jobOpts{id: "1", key: "k", effect: "unknown"})
	c := b.job(t, jobOpts{id: "2", key: "k"})
	err := ledger.Settle(t.Context(), b.pool, b.oncall, a, ledger.Settlement{Happened: true, EffectID: "ch_9", Reason: "found it at the provider"})
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []int64{a, c} {
		if s, e, eid := b.status(t, id); s != "resolved" || e != "done" || eid != "ch_9" {
			t.Errorf("job %d: %s %s %s", id, s, e, eid)
		}
	}
	if v, err := b.svc.Judge(t.Context(), b.oncall, c); err != nil || v.Code != replay.KeyDone {
		t.Errorf("%+v %v", v, err)
	}
}

func TestRefusalOpensTheJobAgainAndIsWrittenDown(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.target.fail.Store(true)
	id := b.job(t, jobOpts{id: "1"})
	o, err := b.order(id)
	if err != nil {
		t.Fatal(err)
	}
	if b.release(t) != 0 {
		t.Fatal("a refused replay counts as released")
	}
	if _, out, code := b.outcome(t, o.ReplayID); out != replay.Skipped || code != "no" {
		t.Fatal(out, code)
	}
	if s, _, _ := b.status(t, id); s != "open" {
		t.Fatal(s)
	}
	if n := b.count(t, `SELECT count(*) FROM redrive.audit_entries WHERE action = 'replay.skipped' AND dead_job_id = $1`, id); n != 1 {
		t.Fatalf("%d entries for the skip", n)
	}
	if n := b.count(t, `SELECT count(*) FROM redrive.batches WHERE state = 'done'`); n != 1 {
		t.Fatal("the batch didn't end")
	}
}

func TestManyReleasersReleaseOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for i := range 60 {
		id := b.job(t, jobOpts{id: string(rune('A' + i)), key: "k" + string(rune('A'+i))})
		if _, err := b.order(id); err != nil {
			t.Fatal(err)
		}
	}
	var released atomic.Int32
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				n, err := b.svc.ReleaseDue(context.Background())
				if err != nil {
					t.Error(err)
				}
				released.Add(int32(n))
			}
		})
	}
	wg.Wait()
	if released.Load() != 60 {
		t.Fatalf("released %d of 60", released.Load())
	}
	for id, n := range b.target.left {
		if n != 1 {
			t.Errorf("replay %d left %d times", id, n)
		}
	}
}

func TestNoOrderWithoutItsEntry(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.job(t, jobOpts{id: "1"})
	_, err := b.pool.Exec(t.Context(), `ALTER TABLE redrive.audit_entries ADD CONSTRAINT refuse CHECK (action <> 'replay.order') NOT VALID`)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.order(id); err == nil {
		t.Fatal("ordered without its audit entry")
	}
	if s, _, _ := b.status(t, id); s != "open" {
		t.Fatal("half done: ", s)
	}
	if n := b.count(t, `SELECT count(*) FROM redrive.replays`); n != 0 {
		t.Fatal("half done: a replay exists")
	}
}

func TestScheduledReplayStandsInNobodysWay(t *testing.T) {
	t.Parallel()
	b := setup(t)
	now := time.Now()
	b.svc.Now = func() time.Time { return now }
	sooner, later := b.job(t, jobOpts{id: "2", key: "b", entity: "order:1"}), b.job(t, jobOpts{id: "1", key: "a", entity: "order:1"})
	tomorrow, err := b.svc.One(t.Context(), b.oncall, replay.Order{DeadJobID: later, Generation: 1, PayloadVersion: 1, Reason: "tomorrow", At: now.Add(24 * time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	today, err := b.order(sooner)
	if err != nil {
		t.Fatal(err)
	}
	if n := b.release(t); n != 1 {
		t.Fatalf("%d left; the one of today should", n)
	}
	if _, err := b.svc.Record(t.Context(), today.ReplayID, replay.End{Outcome: replay.Succeeded}); err != nil {
		t.Fatal(err)
	}
	if n := b.release(t); n != 0 {
		t.Fatal("the one of tomorrow left today")
	}
	now = now.Add(25 * time.Hour)
	if n := b.release(t); n != 1 {
		t.Fatal("the one of tomorrow didn't leave when it was due")
	}
	if err := b.svc.CancelOne(t.Context(), b.oncall, tomorrow.ReplayID, "too late"); !problem.Is(err, problem.Conflict) {
		t.Fatalf("cancelled what has left: %v", err)
	}
}

func TestCancelBeforeItLeaves(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.job(t, jobOpts{id: "1", key: "a"})
	o, err := b.svc.One(t.Context(), b.oncall, replay.Order{DeadJobID: id, Generation: 1, PayloadVersion: 1, Reason: "tomorrow", At: time.Now().Add(24 * time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.svc.CancelOne(t.Context(), &rbac.Principal{UserID: 3, Email: "v@demo.test", Grants: []rbac.Grant{{Role: rbac.Viewer}}}, o.ReplayID, "no reason"); !problem.Is(err, problem.Forbidden) {
		t.Fatalf("a viewer cancelled: %v", err)
	}
	if err := b.svc.CancelOne(t.Context(), b.oncall, o.ReplayID, "changed my mind"); err != nil {
		t.Fatal(err)
	}
	if _, out, _ := b.outcome(t, o.ReplayID); out != replay.Cancelled {
		t.Fatal(out)
	}
	if s, _, _ := b.status(t, id); s != "open" {
		t.Fatal(s)
	}
	if n := b.count(t, `SELECT count(*) FROM redrive.audit_entries WHERE action = 'replay.cancel' AND reason = 'changed my mind'`); n != 1 {
		t.Fatalf("%d entries", n)
	}
	if _, err := b.order(id); err != nil {
		t.Fatalf("ordering again: %v", err)
	}
}

func TestBatchEndsWhenItsKeyIsDoneElsewhere(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.job(t, jobOpts{id: "1", key: "a"})
	if _, err := b.order(id); err != nil {
		t.Fatal(err)
	}
	if err := ledger.Finish(t.Context(), b.pool, ledger.Key{Environment: "production", Scope: "welcome", Key: "a"}, nil); err != nil {
		t.Fatal(err)
	}
	if n := b.count(t, `SELECT count(*) FROM redrive.batches WHERE state = 'done'`); n != 1 {
		t.Fatal("the batch is stuck")
	}
	if b.release(t) != 0 {
		t.Fatal("released a key that is done")
	}
}

func TestBegunByAnotherJobOfTheKeyCanBeSettled(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.job(t, jobOpts{id: "1", key: "k"})
	if _, err := ledger.Begin(t.Context(), b.pool, ledger.Key{Environment: "production", Scope: "welcome", Key: "k"}); err != nil {
		t.Fatal(err)
	}
	v, err := b.svc.Judge(t.Context(), b.oncall, id)
	if err != nil || v.Code != replay.EffectUnknown {
		t.Fatal(v.Code, err)
	}
	if err := ledger.Settle(t.Context(), b.pool, b.oncall, id, ledger.Settlement{Reason: "the provider has nothing"}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.order(id); err != nil {
		t.Fatalf("after it was settled: %v", err)
	}
}

// A run may die after its effect was written: whether its source or its outcome
// is faster, nothing is left to do.
func TestDeathOfARunWhoseEffectIsDone(t *testing.T) {
	t.Parallel()
	for _, deathFirst := range []bool{true, false} {
		b := setup(t)
		id := b.job(t, jobOpts{id: "1", key: "k"})
		o, err := b.order(id)
		if err != nil {
			t.Fatal(err)
		}
		b.release(t)
		if err := ledger.Finish(t.Context(), b.pool, ledger.Key{Environment: "production", Scope: "welcome", Key: "k"}, json.RawMessage(`{"id":"m_1"}`)); err != nil {
			t.Fatal(err)
		}
		die := func() {
			t.Helper()
			doc := &dlq.Document{Environment: "production", Source: "test", JobType: "send_welcome_email", JobID: "1", IdempotencyKey: "k",
				Payload: []byte(`{"a": 1}`), AttemptCount: 4, DeadAt: json.RawMessage(`"2026-03-01T00:00:00Z"`), Effect: "none",
				Attempts: []dlq.AttemptDoc{{ErrorClass: "Killed", Message: "stuck job rescued"}}}
			err := pgx.BeginFunc(t.Context(), b.pool, func(tx pgx.Tx) error {
				out, err := dlq.NewCapturer(welcomeScope{}, nil, nil).Capture(t.Context(), tx, []*dlq.Document{doc})
				if err == nil && out[0].Outcome != dlq.CaptureUpdated {
					t.Errorf("captured as %+v", out[0])
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		if deathFirst {
			die()
		}
		if _, err := b.svc.Record(t.Context(), o.ReplayID, replay.End{Outcome: replay.Failed, Code: "discarded"}); err != nil {
			t.Fatal(err)
		}
		if !deathFirst {
			die()
		}
		if s, e, eid := b.status(t, id); s != "recovered" || e != "done" || eid != "m_1" {
			t.Errorf("death first: %v: the job is %s, %s, %q", deathFirst, s, e, eid)
		}
		if n := b.count(t, `SELECT generation FROM redrive.dead_jobs WHERE id = $1`, id); n != 2 {
			t.Errorf("death first: %v: generation %d, the death isn't kept", deathFirst, n)
		}
	}
}

type welcomeScope struct{}

func (welcomeScope) Scope(string) string        { return "welcome" }
func (welcomeScope) HasSideEffects(string) bool { return true }
