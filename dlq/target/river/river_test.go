package river_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/riverqueue/river/rivertype"

	"github.com/redrive-dlq/redrive/dlq/envelope"
	"github.com/redrive-dlq/redrive/dlq/jobtype"
	"github.com/redrive-dlq/redrive/dlq/ledger"
	"github.com/redrive-dlq/redrive/dlq/replay"
	target "github.com/redrive-dlq/redrive/dlq/target/river"
	"github.com/redrive-dlq/redrive/migrations/testdb"
	"github.com/redrive-dlq/redrive/rbac"
)

const catalogue = `
environments: [production, staging]
sources:
  - {name: app-prod, environment: production, kind: river, schema: app}
types:
  mail:
    side_effects: [{kind: email, text: sends one e-mail}]
    idempotency: {by: key, scope: mail}
    targets:
      production: {river: {client: app-prod, queue: default}, outcome_within: 15m}
`

type bundle struct {
	pool    *pgxpool.Pool // the store
	app     *pgxpool.Pool // River's database
	svc     *replay.Service
	target  *target.Target
	watcher *target.Watcher
	handed  []int64
	oncall  *rbac.Principal
}

// setup makes a store and a River in schema app, in the same database or in
// another one.
func setup(t *testing.T, same bool) *bundle {
	t.Helper()
	ctx := t.Context()
	b := &bundle{pool: testdb.New(t), oncall: &rbac.Principal{UserID: 1, Email: "oncall@demo.test", Grants: []rbac.Grant{{Role: rbac.OnCall}}}}
	b.app = b.pool
	if !same {
		var err error
		if b.app, err = pgxpool.New(ctx, testdb.Empty(t)); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(b.app.Close)
	}
	b.exec(t, b.app, `CREATE SCHEMA app`)
	m, err := rivermigrate.New(riverpgxv5.New(b.app), &rivermigrate.Config{Schema: "app", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		t.Fatal(err)
	}
	cat, err := jobtype.Load(fstest.MapFS{"types.yaml": {Data: []byte(catalogue)}}, "types.yaml")
	if err != nil {
		t.Fatal(err)
	}
	b.target, err = target.New(&target.Client{Name: "app-prod", Environment: "production", Schema: "app", Pool: b.app, Same: same})
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	b.svc = &replay.Service{Pool: b.pool, Types: func() *jobtype.Catalogue { return cat },
		Targets: map[string]replay.Target{"river": b.target}, Sealer: envelope.Plain{}, Log: log}
	b.target.Payload = func(ctx context.Context, tx pgx.Tx, id int64, version int) ([]byte, error) {
		return b.svc.Payload(ctx, tx, id, version)
	}
	b.target.HandOver = func(_ context.Context, _ pgx.Tx, replayIDs []int64) error {
		b.handed = append(b.handed, replayIDs...)
		return nil
	}
	b.watcher = &target.Watcher{Target: b.target, Service: b.svc, Log: log}
	return b
}

func (b *bundle) exec(t *testing.T, pool *pgxpool.Pool, sql string, args ...any) {
	t.Helper()
	if _, err := pool.Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

type rowOpts struct {
	state                string
	attempt, maxAttempts int
	args                 string
	unique               string
}

// dead writes a River row that ended badly and its dead job here.
func (b *bundle) dead(t *testing.T, o rowOpts) (riverID, jobID int64) {
	t.Helper()
	if o.state == "" {
		o.state = "discarded"
	}
	if o.attempt == 0 {
		o.attempt = 3
	}
	if o.maxAttempts == 0 {
		o.maxAttempts = o.attempt
	}
	if o.args == "" {
		o.args = `{"to": "a@example.com"}`
	}
	var unique any
	if o.unique != "" {
		unique = []byte(o.unique)
	}
	err := b.app.QueryRow(t.Context(), `
		INSERT INTO app.river_job (state, attempt, max_attempts, args, kind, queue, attempted_at, finalized_at, errors, unique_key, unique_states)
		VALUES ($1::text::app.river_job_state, $2, $3, $4::text::jsonb, 'mail', 'default', now(), now(), ARRAY['{"attempt":3,"at":"2026-01-01T00:00:00Z","error":"boom","trace":""}'::jsonb], $5, CASE WHEN $5::bytea IS NULL THEN NULL ELSE B'11110101'::bit(8) END)
		RETURNING id`, o.state, o.attempt, o.maxAttempts, o.args, unique).Scan(&riverID)
	if err != nil {
		t.Fatal(err)
	}
	return riverID, b.job(t, riverID, o.attempt, o.args, 1)
}

func (b *bundle) job(t *testing.T, riverID int64, attempt int, args string, version int) int64 {
	t.Helper()
	sealed, err := envelope.Plain{}.Seal([]byte(args), nil)
	if err != nil {
		t.Fatal(err)
	}
	var id int64
	err = b.pool.QueryRow(t.Context(), `
		WITH j AS (
			INSERT INTO redrive.dead_jobs (environment, source, job_id, job_type, key_scope, idempotency_key, fingerprint, died_at, attempt_count, source_ref, payload_version)
			VALUES ('production', 'app-prod', $1::text, 'mail', 'mail', 'key-' || $1::text, 'f', now(), $2, jsonb_build_object('river_id', $1::text::bigint, 'attempt', $2::int), $4) RETURNING id)
		INSERT INTO redrive.payloads (dead_job_id, version, bytes, encoding, size, sha256, redacted, redact_version, origin)
		SELECT id, $4, $3, 'json', 8, '', '{}', 1, 'capture' FROM j
		RETURNING dead_job_id`, fmt.Sprint(riverID), attempt, sealed, version).Scan(&id)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func (b *bundle) replay(t *testing.T, jobID int64, version int) replay.Ordered {
	t.Helper()
	o, err := b.svc.One(t.Context(), b.oncall, replay.Order{DeadJobID: jobID, Generation: 1, PayloadVersion: version, Reason: "the test says so"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.svc.ReleaseDue(t.Context()); err != nil {
		t.Fatal(err)
	}
	return o
}

type riverRow struct {
	State       string
	Attempt     int
	MaxAttempts int
	Args        string
	Replay      string
	HasUnique   bool
}

func (b *bundle) row(t *testing.T, id int64) riverRow {
	t.Helper()
	rows, err := b.app.Query(t.Context(), `
		SELECT state::text, attempt, max_attempts, args::text, coalesce(metadata ->> 'redrive:replay', ''), unique_key IS NOT NULL
		FROM app.river_job WHERE id = $1`, id)
	if err != nil {
		t.Fatal(err)
	}
	r, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[riverRow])
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (b *bundle) end(t *testing.T, replayID int64) (state, outcome, code string) {
	t.Helper()
	err := b.pool.QueryRow(t.Context(), `SELECT state, coalesce(outcome, ''), outcome_code FROM redrive.replays WHERE id = $1`, replayID).Scan(&state, &outcome, &code)
	if err != nil {
		t.Fatal(err)
	}
	return state, outcome, code
}

func TestReentry(t *testing.T) {
	t.Parallel()
	b := setup(t, true)
	for _, o := range []rowOpts{
		{},
		{state: "cancelled", attempt: 1, maxAttempts: 25}, // a cancelled row gets one attempt, not 24
	} {
		id, job := b.dead(t, o)
		before := b.row(t, id)
		r := b.replay(t, job, 1)
		after := b.row(t, id)
		if after.State != "available" || after.MaxAttempts != after.Attempt+1 || after.Attempt != before.Attempt ||
			after.Args != before.Args || after.Replay != fmt.Sprint(r.ReplayID) {
			t.Errorf("%+v after re-entry: %+v", o, after)
		}
	}
}

func TestReentryRefusals(t *testing.T) {
	t.Parallel()
	b := setup(t, true)
	check := func(name string, id, job int64, want string) {
		t.Helper()
		before := b.row(t, id)
		r := b.replay(t, job, 1)
		if _, outcome, code := b.end(t, r.ReplayID); outcome != replay.Skipped || code != want {
			t.Errorf("%s: %s %s, want skipped %s", name, outcome, code, want)
		}
		if after := b.row(t, id); after != before {
			t.Errorf("%s: the row changed: %+v → %+v", name, before, after)
		}
	}
	id, job := b.dead(t, rowOpts{})
	b.exec(t, b.app, `UPDATE app.river_job SET state = 'completed' WHERE id = $1`, id)
	check("completed outside", id, job, "changed_at_source")

	id, job = b.dead(t, rowOpts{})
	b.exec(t, b.app, `UPDATE app.river_job SET attempt = 4, max_attempts = 4 WHERE id = $1`, id)
	check("died again, not captured yet", id, job, "changed_at_source")

	id, job = b.dead(t, rowOpts{unique: "u1"})
	b.exec(t, b.app, `
		INSERT INTO app.river_job (state, max_attempts, args, kind, unique_key, unique_states)
		VALUES ('available', 3, '{}', 'mail', 'u1', B'11110101'::bit(8))`)
	check("a live job holds the unique key", id, job, "unique_conflict")

	id, job = b.dead(t, rowOpts{attempt: 32767})
	check("no attempts left to count", id, job, "attempts_exhausted")
}

func TestEditedArgsKeepTheUniqueKey(t *testing.T) {
	t.Parallel()
	b := setup(t, true)
	id, job := b.dead(t, rowOpts{unique: "u2"})
	edited := `{"to": "alex@example.com"}`
	sealed, err := envelope.Plain{}.Seal([]byte(edited), nil)
	if err != nil {
		t.Fatal(err)
	}
	b.exec(t, b.pool, `
		INSERT INTO redrive.payloads (dead_job_id, version, bytes, encoding, size, sha256, redacted, redact_version, origin)
		VALUES ($1, 2, $2, 'json', 8, '', '{}', 1, 'edit')`, job, sealed)
	b.exec(t, b.pool, `UPDATE redrive.dead_jobs SET payload_version = 2 WHERE id = $1`, job)
	b.replay(t, job, 2)
	if r := b.row(t, id); r.Args != edited || !r.HasUnique || r.State != "available" {
		t.Fatalf("%+v", r)
	}
}

func TestRowGoneBecomesANewRow(t *testing.T) {
	t.Parallel()
	b := setup(t, true)
	id, job := b.dead(t, rowOpts{})
	b.exec(t, b.app, `DELETE FROM app.river_job WHERE id = $1`, id)
	r := b.replay(t, job, 1)
	var kind, args, jobID, key string
	var attempts int
	err := b.app.QueryRow(t.Context(), `
		SELECT kind, args::text, max_attempts, metadata ->> 'redrive:job_id', metadata ->> 'redrive:key'
		FROM app.river_job WHERE metadata ->> 'redrive:replay' = $1`, fmt.Sprint(r.ReplayID)).Scan(&kind, &args, &attempts, &jobID, &key)
	if err != nil {
		t.Fatal(err)
	}
	if kind != "mail" || args != `{"to": "a@example.com"}` || attempts != 1 || jobID != fmt.Sprint(id) || key != "key-"+fmt.Sprint(id) {
		t.Fatal(kind, args, attempts, jobID, key)
	}
}

func TestWhatRiverCantCarry(t *testing.T) {
	t.Parallel()
	b := setup(t, true)
	for payload, want := range map[string]string{
		`{"a": 1}`: replay.Eligible,
		`{"d": 1.10, "n": 9007199254740993, "big": 12345678901234567890}`: replay.Eligible,
		`{"a": 1E3}`:       replay.TargetCantCarry,
		`{"a": 1, "a": 2}`: replay.TargetCantCarry,
		`{"a": "\u0000"}`:  replay.TargetCantCarry,
		"\x00\xff":         replay.TargetCantCarry,
		``:                 replay.TargetCantCarry,
		`{"a":1}`:          replay.TargetCantCarry, // jsonb would add a space: not these bytes
	} {
		job := b.job(t, time.Now().UnixNano(), 1, payload, 1)
		v, err := b.svc.Judge(t.Context(), b.oncall, job)
		if err != nil || v.Code != want {
			t.Errorf("%q: %s %v, want %s", payload, v.Code, err, want)
		}
	}
}

type mailArgs struct {
	To string `json:"to"`
}

func (mailArgs) Kind() string { return "mail" }

type mailWorker struct {
	river.WorkerDefaults[mailArgs]
	work func(ctx context.Context, j *river.Job[mailArgs]) error
}

func (w *mailWorker) Work(ctx context.Context, j *river.Job[mailArgs]) error { return w.work(ctx, j) }

// workers runs a real River client on the application's queue.
func (b *bundle) workers(t *testing.T, work func(context.Context, *river.Job[mailArgs]) error) {
	t.Helper()
	ws := river.NewWorkers()
	river.AddWorker(ws, &mailWorker{work: work})
	c, err := river.NewClient(riverpgxv5.New(b.app), &river.Config{Schema: "app", Workers: ws, FetchPollInterval: 100 * time.Millisecond,
		Queues: map[string]river.QueueConfig{"default": {MaxWorkers: 4}}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := c.StopAndCancel(ctx); err != nil {
			t.Error(err)
		}
	})
}

func (b *bundle) await(t *testing.T, replayID int64) (outcome, code string) {
	t.Helper()
	for range 200 {
		if err := b.watcher.Round(t.Context()); err != nil {
			t.Fatal(err)
		}
		if state, outcome, code := b.end(t, replayID); state == "ended" {
			return outcome, code
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatal("no outcome in 10 s")
	return "", ""
}

func TestOutcomesOfRealRuns(t *testing.T) {
	t.Parallel()
	b := setup(t, true)
	_, good := b.dead(t, rowOpts{args: `{"to": "good"}`})
	_, bad := b.dead(t, rowOpts{args: `{"to": "bad"}`})
	_, already := b.dead(t, rowOpts{args: `{"to": "already"}`})
	_, unfinished := b.dead(t, rowOpts{args: `{"to": "unfinished"}`})
	b.workers(t, func(ctx context.Context, j *river.Job[mailArgs]) error {
		k := ledger.Key{Environment: "production", Scope: "mail", Key: fmt.Sprintf("key-%d", j.ID)}
		switch j.Args.To {
		case "bad":
			return errors.New("400 token=hunter2hunter2 refused")
		case "already":
			return river.RecordOutput(ctx, "already_done")
		}
		if _, err := ledger.Begin(ctx, b.pool, k); err != nil {
			return err
		}
		if j.Args.To == "unfinished" {
			return nil
		}
		return ledger.Finish(ctx, b.pool, k, json.RawMessage(`{"id":"m_77"}`))
	})
	want := map[int64][2]string{
		good:       {replay.Succeeded, "completed"},
		bad:        {replay.Failed, "discarded"},
		already:    {replay.AlreadyDone, "worker"},
		unfinished: {replay.Unconfirmed, "begun_without_end"},
	}
	ids := map[int64]int64{}
	for job := range want {
		ids[job] = b.replay(t, job, 1).ReplayID
	}
	for job, w := range want {
		outcome, code := b.await(t, ids[job])
		if outcome != w[0] || code != w[1] {
			t.Errorf("job %d: %s %s, want %v", job, outcome, code, w)
		}
	}
	var effect, status, effectID, detail string
	if err := b.pool.QueryRow(t.Context(), `SELECT effect, status, effect_id FROM redrive.dead_jobs WHERE id = $1`, good).Scan(&effect, &status, &effectID); err != nil {
		t.Fatal(err)
	}
	if effect != "done" || status != "recovered" || effectID != "m_77" {
		t.Error("good:", effect, status, effectID)
	}
	if err := b.pool.QueryRow(t.Context(), `SELECT outcome_detail FROM redrive.replays WHERE id = $1`, ids[bad]).Scan(&detail); err != nil {
		t.Fatal(err)
	}
	if detail == "" || detail == "400 token=hunter2hunter2 refused" {
		t.Errorf("outcome detail isn't redacted: %q", detail)
	}
}

func TestRowGoneAfterReleaseIsUnconfirmed(t *testing.T) {
	t.Parallel()
	b := setup(t, true)
	id, job := b.dead(t, rowOpts{})
	r := b.replay(t, job, 1)
	b.exec(t, b.app, `DELETE FROM app.river_job WHERE id = $1`, id)
	if outcome, code := b.await(t, r.ReplayID); outcome != replay.Unconfirmed || code != "gone" {
		t.Fatal(outcome, code)
	}
}

func TestStagingNeverReachesProduction(t *testing.T) {
	t.Parallel()
	b := setup(t, true)
	id, job := b.dead(t, rowOpts{})
	before := b.row(t, id)
	o, err := b.svc.One(t.Context(), b.oncall, replay.Order{DeadJobID: job, Generation: 1, PayloadVersion: 1, Reason: "the test says so"})
	if err != nil {
		t.Fatal(err)
	}
	b.exec(t, b.pool, `UPDATE redrive.dead_jobs SET environment = 'staging' WHERE id = $1`, job)
	b.exec(t, b.pool, `UPDATE redrive.replays SET environment = 'staging' WHERE id = $1`, o.ReplayID)
	b.exec(t, b.pool, `INSERT INTO redrive.release_buckets VALUES ('staging', 'mail')`)
	if _, err := b.svc.ReleaseDue(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, outcome, code := b.end(t, o.ReplayID); outcome != replay.Skipped || code != replay.NotReplayable {
		t.Fatal(outcome, code)
	}
	// Whatever a broken catalogue or row says, the client refuses another environment.
	err = pgx.BeginFunc(t.Context(), b.pool, func(tx pgx.Tx) error {
		to := jobtype.Target{River: &jobtype.RiverTarget{Client: "app-prod", Queue: "default"}}
		outs, err := b.target.Release(t.Context(), tx, []replay.Item{{ReplayID: o.ReplayID, DeadJobID: job, PayloadVersion: 1, Environment: "staging", Target: to}})
		if err == nil && (outs[0].Refusal == nil || outs[0].Refusal.Code != "environment") {
			t.Errorf("%+v", outs[0])
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if after := b.row(t, id); after != before {
		t.Fatalf("a staging replay touched production: %+v", after)
	}
}

func TestAnotherDatabaseReleasesOnce(t *testing.T) {
	t.Parallel()
	b := setup(t, false)
	id, job := b.dead(t, rowOpts{})
	r := b.replay(t, job, 1)
	if len(b.handed) != 1 || b.handed[0] != r.ReplayID {
		t.Fatalf("handed over: %v", b.handed)
	}
	if b.row(t, id).State != "discarded" {
		t.Fatal("the release itself touched the other database")
	}
	w := &target.HandOverWorker{Target: b.target, Service: b.svc}
	work := func() error {
		return w.Work(t.Context(), &river.Job[target.HandOverArgs]{JobRow: &rivertype.JobRow{Attempt: 1}, Args: target.HandOverArgs{ReplayID: r.ReplayID}})
	}
	if err := work(); err != nil {
		t.Fatal(err)
	}
	// The confirmation is lost, as if the process died before it: the marker keeps a second retry away.
	b.exec(t, b.pool, `UPDATE redrive.replays SET delivered_at = NULL WHERE id = $1`, r.ReplayID)
	b.exec(t, b.app, `UPDATE app.river_job SET state = 'discarded', finalized_at = now(), attempt = 4 WHERE id = $1`, id)
	if err := work(); err != nil {
		t.Fatal(err)
	}
	if row := b.row(t, id); row.State != "discarded" || row.Attempt != 4 {
		t.Fatalf("retried twice: %+v", row)
	}
	if outcome, code := b.await(t, r.ReplayID); outcome != replay.Failed || code != "discarded" {
		t.Fatal(outcome, code)
	}
}

// TestReleaseGivesWayToAWorker: a worker's transaction holds its River row and
// then asks for the key that the release holds.
func TestReleaseGivesWayToAWorker(t *testing.T) {
	t.Parallel()
	b := setup(t, true)
	id, job := b.dead(t, rowOpts{})
	o, err := b.svc.One(t.Context(), b.oncall, replay.Order{DeadJobID: job, Generation: 1, PayloadVersion: 1, Reason: "the test says so"})
	if err != nil {
		t.Fatal(err)
	}
	worker, err := b.app.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = worker.Rollback(context.Background()) }()
	if _, err := worker.Exec(t.Context(), `UPDATE app.river_job SET priority = 2 WHERE id = $1`, id); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { _, err := b.svc.ReleaseDue(context.Background()); done <- err }()
	time.Sleep(100 * time.Millisecond)
	if err := ledger.Finish(t.Context(), worker, ledger.Key{Environment: "production", Scope: "mail", Key: "key-" + fmt.Sprint(id)}, nil); err != nil {
		t.Fatalf("the worker lost: %v", err)
	}
	if err := worker.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if _, err := b.svc.ReleaseDue(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, outcome, code := b.end(t, o.ReplayID); outcome != replay.AlreadyDone || b.row(t, id).State != "discarded" {
		t.Fatal(outcome, code, b.row(t, id))
	}
}
