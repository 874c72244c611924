package acceptance

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/redrive-dlq/redrive/cmd/internal/console"
	"github.com/redrive-dlq/redrive/dlq/envelope"
	"github.com/redrive-dlq/redrive/dlq/filter"
	"github.com/redrive-dlq/redrive/dlq/jobtype"
	"github.com/redrive-dlq/redrive/dlq/replay"
	httptarget "github.com/redrive-dlq/redrive/dlq/target/http"
	"github.com/redrive-dlq/redrive/migrations/testdb"
	"github.com/redrive-dlq/redrive/rbac"
)

const (
	stormProcesses = 4
	stormJobs      = 600 // in each type, for each stormFor
	stormCap       = 5   // replays out at the shared destination
	// stormFor is how long processes are killed; REDRIVE_STORM overrides it.
	stormFor = 12 * time.Second
	// stormPatience is how long what is left may take after the storm, which
	// leaves more when it lasts longer.
	stormPatience = 90 * time.Second
)

// stormCatalogue has two types behind one destination and one of its own.
func stormCatalogue() (*jobtype.Catalogue, error) {
	url := os.Getenv(providerEnv)
	text := fmt.Sprintf(`
environments: [production]
types:
  charge:
    side_effects: [{kind: email, text: sends one e-mail}]
    idempotency: {by: key, scope: charge}
    rate: {per_minute: 6000, burst: 20, per_tenant_per_minute: 3000}
    batch: {approval_above: 100000, canary: 5, stop_at_failure_pct: 90, continue_entity: true}
    targets: {production: {http: {url: "%[1]s/shared"}, outcome_within: 8s, concurrency: %[2]d}}
  notify:
    side_effects: [{kind: email, text: sends one e-mail}]
    idempotency: {by: key, scope: notify}
    rate: {per_minute: 6000, burst: 10}
    batch: {approval_above: 100000, canary: 5, stop_at_failure_pct: 90, continue_entity: true}
    targets: {production: {http: {url: "%[1]s/shared"}, outcome_within: 8s, concurrency: %[2]d}}
  index:
    side_effects: [{kind: write, text: writes a document}]
    idempotency: {by: key, scope: index}
    rate: {per_minute: 3000, burst: 30}
    batch: {approval_above: 100000, canary: 5, stop_at_failure_pct: 90, continue_entity: true}
    targets: {production: {http: {url: "%[1]s/own"}, outcome_within: 8s, concurrency: 40}}
`, url, stormCap)
	return jobtype.Load(fstest.MapFS{"types.yaml": {Data: []byte(text)}}, "types.yaml")
}

// runStormConsole is one of the processes until it is killed.
func runStormConsole() error {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, os.Getenv(databaseEnv))
	if err != nil {
		return err
	}
	catalogue, err := stormCatalogue()
	if err != nil {
		return err
	}
	c, err := console.New(ctx, console.Config{Pool: pool, Catalogue: catalogue, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	return c.Run(ctx, listener)
}

// stormWorld is the provider that all replays reach: it sees what really
// happened.
type stormWorld struct {
	mu       sync.Mutex
	replays  map[string]int // deliveries of each replay
	keys     map[string]int // effects of each key
	flying   map[string]int // by destination
	most     map[string]int
	last     map[string]int // the last job of an entity, by type
	unorder  []string
	failures int
}

func (w *stormWorld) ServeHTTP(res http.ResponseWriter, req *http.Request) {
	var job struct {
		Entity string
		Seq    int
	}
	if err := json.NewDecoder(req.Body).Decode(&job); err != nil {
		res.WriteHeader(http.StatusBadRequest)
		return
	}
	kind := req.Header.Get(httptarget.HeaderJobType)
	w.mu.Lock()
	w.replays[req.Header.Get(httptarget.HeaderReplay)]++
	w.flying[req.URL.Path]++
	w.most[req.URL.Path] = max(w.most[req.URL.Path], w.flying[req.URL.Path])
	if job.Entity != "" {
		at := kind + " " + job.Entity
		if job.Seq <= w.last[at] {
			w.unorder = append(w.unorder, fmt.Sprintf("%s: %d after %d", at, job.Seq, w.last[at]))
		}
		w.last[at] = job.Seq
	}
	fails := rand.IntN(20) == 0
	if !fails {
		w.keys[kind+" "+req.Header.Get(httptarget.HeaderKey)]++
	} else {
		w.failures++
	}
	w.mu.Unlock()
	time.Sleep(time.Duration(rand.IntN(20)) * time.Millisecond)
	w.mu.Lock()
	w.flying[req.URL.Path]--
	w.mu.Unlock()
	if fails {
		res.WriteHeader(http.StatusUnprocessableEntity) // surely nothing happened
	}
}

// TestStorm lets four processes run three batches while they are killed at
// random: every eligible job leaves exactly once, within rate and concurrency,
// in order within its entity, and no key has two effects.
func TestStorm(t *testing.T) {
	if testing.Short() {
		t.Skip("kills processes for a while")
	}
	lasts := stormFor
	if text := os.Getenv("REDRIVE_STORM"); text != "" {
		var err error
		if lasts, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	world := &stormWorld{replays: map[string]int{}, keys: map[string]int{}, flying: map[string]int{}, most: map[string]int{}, last: map[string]int{}}
	provider := httptest.NewServer(world)
	defer provider.Close()
	t.Setenv(providerEnv, provider.URL)
	url := testdb.NewURL(t)
	pool, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	stormDeaths(t, pool, max(stormJobs, int(lasts*stormJobs/stormFor)))
	var processes []*process
	for range stormProcesses {
		p := &process{role: "storm", database: url, provider: provider.URL}
		p.start(t)
		processes = append(processes, p)
		defer func() { p.kill(t) }()
	}
	orderStorm(t, pool)
	killed := 0
	for until := time.Now().Add(lasts); time.Now().Before(until); killed++ {
		time.Sleep(time.Duration(200+rand.IntN(1200)) * time.Millisecond)
		p := processes[rand.IntN(len(processes))]
		p.kill(t)
		time.Sleep(time.Duration(rand.IntN(200)) * time.Millisecond)
		p.start(t)
	}
	last := time.Now()
	awaitFor(t, stormPatience+lasts, "every batch ended", func() bool {
		if time.Since(last) > 10*time.Second {
			last = time.Now()
			t.Log(stormState(t, pool))
		}
		return count(t, pool, `SELECT count(*) FROM redrive.batches WHERE state <> 'done'`) == 0
	})
	stormHolds(t, pool, world)
	t.Logf("%d kills; %d deliveries, %d effects, %d failures, at most %v out", killed, len(world.replays), len(world.keys), world.failures, world.most)
}

// stormState says how far the batches and their destinations are.
func stormState(t *testing.T, pool *pgxpool.Pool) (state string) {
	t.Helper()
	err := pool.QueryRow(t.Context(), `
		SELECT concat_ws(E'\n',
			(SELECT string_agg(format('%s %s %s: %s', b.job_type, b.state, b.pause_why,
			        (SELECT jsonb_object_agg(tally, n) FROM redrive.batch_tallies WHERE batch_id = b.id)), E'\n' ORDER BY b.id) FROM redrive.batches b),
			(SELECT string_agg(format('%s %s: %s', d.name, d.breaker, d.why), E'\n') FROM redrive.destinations d))`).Scan(&state)
	if err != nil {
		t.Fatal(err)
	}
	return state
}

// stormDeaths stores jobs of 20 tenants; every other one belongs to an entity.
func stormDeaths(t *testing.T, pool *pgxpool.Pool, jobs int) {
	t.Helper()
	for _, kind := range []string{"charge", "notify", "index"} {
		_, err := pool.Exec(t.Context(), `
			WITH j AS (
				INSERT INTO redrive.dead_jobs (environment, source, job_id, job_type, key_scope, idempotency_key, entity, tenant, category, fingerprint, enqueued_at, died_at, attempt_count)
				SELECT 'production', 'test', $1 || i, $1, $1, 'k' || i, CASE WHEN i % 2 = 0 THEN $1 || ' e' || i % 120 ELSE '' END, 't' || i % 20,
				       'transient', 'f' || i % 3, now() - interval '1 day' + i * interval '1 second', now() - interval '1 hour', 3
				FROM generate_series(1, $2::int) i
				RETURNING id, entity, job_id)
			INSERT INTO redrive.payloads (dead_job_id, version, bytes, encoding, size, sha256, redacted, redact_version, origin)
			SELECT id, 1, '\x00'::bytea || convert_to(json_build_object('entity', entity, 'seq', substr(job_id, length($1) + 1)::int)::text, 'UTF8'),
			       'json', 8, '', '{}', 1, 'capture'
			FROM j`, kind, jobs)
		if err != nil {
			t.Fatal(err)
		}
	}
}

// orderStorm plans, reviews and confirms one batch a type.
func orderStorm(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	catalogue, err := stormCatalogue()
	if err != nil {
		t.Fatal(err)
	}
	svc := &replay.Service{Pool: pool, Types: func() *jobtype.Catalogue { return catalogue }, Sealer: envelope.Plain{},
		Targets: map[string]replay.Target{"http": &httptarget.Target{}}}
	finish := func(w replay.Work, id int64) {
		for done := false; !done; {
			if done, err = svc.Do(t.Context(), w, id); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i, kind := range []string{"charge", "notify", "index"} {
		p := &rbac.Principal{UserID: int64(i + 1), Email: "oncall@demo.test", Grants: []rbac.Grant{{Role: rbac.OnCall}}}
		ids, err := svc.Plan(t.Context(), p, replay.Selection{Filter: filter.Filter{Types: []string{kind}}}, "the storm")
		if err != nil {
			t.Fatal(err)
		}
		finish(replay.WorkPlan, ids[0])
		var hash string
		if err := pool.QueryRow(t.Context(), `SELECT plan_hash FROM redrive.batches WHERE id = $1`, ids[0]).Scan(&hash); err != nil {
			t.Fatal(err)
		}
		review, err := svc.Review(t.Context(), p, replay.ReviewOrder{Batch: ids[0], PlanHash: hash, Reason: "the storm", Canary: 5})
		if err != nil {
			t.Fatal(err)
		}
		page, err := svc.Confirming(t.Context(), p, ids[0])
		if err != nil {
			t.Fatal(err)
		}
		if _, err := svc.Confirm(t.Context(), p, replay.ConfirmOrder{Batch: ids[0], PlanHash: hash, ReviewHash: review, Phrase: page.Phrase, Nonce: page.Nonce}); err != nil {
			t.Fatal(err)
		}
		finish(replay.WorkStart, ids[0])
	}
}

// stormHolds looks at what must hold after the storm.
func stormHolds(t *testing.T, pool *pgxpool.Pool, world *stormWorld) {
	t.Helper()
	world.mu.Lock()
	defer world.mu.Unlock()
	for id, n := range world.replays {
		if n > 1 {
			t.Errorf("replay %s was delivered %d times", id, n)
		}
	}
	for key, n := range world.keys {
		if n > 1 {
			t.Errorf("key %s has %d effects", key, n)
		}
	}
	for _, u := range world.unorder {
		t.Errorf("out of order: %s", u)
	}
	if n := world.most["/shared"]; n > stormCap {
		t.Errorf("%d were out at once at the shared destination, its cap is %d", n, stormCap)
	}
	for what, sql := range map[string]string{
		"jobs that never left":          `SELECT count(*) FROM redrive.replays WHERE released_at IS NULL`,
		"jobs without a replay":         `SELECT count(*) FROM redrive.dead_jobs d WHERE NOT EXISTS (SELECT FROM redrive.replays r WHERE r.dead_job_id = d.id)`,
		"replays that didn't end":       `SELECT count(*) FROM redrive.replays WHERE state <> 'ended'`,
		"jobs that are still replaying": `SELECT count(*) FROM redrive.dead_jobs WHERE status = 'replaying'`,
		"windows above burst and rate": `
			SELECT count(*)
			FROM (SELECT job_type, released_at, row_number() OVER (PARTITION BY job_type ORDER BY released_at, id) AS n FROM redrive.replays) a
			JOIN (SELECT job_type, released_at, row_number() OVER (PARTITION BY job_type ORDER BY released_at, id) AS n FROM redrive.replays) b
			  ON b.job_type = a.job_type AND b.n >= a.n
			JOIN (VALUES ('charge', 20, 100), ('notify', 10, 100), ('index', 30, 50)) l(job_type, burst, rate) ON l.job_type = a.job_type
			WHERE b.n - a.n + 1 > l.burst + l.rate * extract(epoch FROM b.released_at - a.released_at) + 0.01`,
	} {
		if n := count(t, pool, sql); n != 0 {
			t.Errorf("%s: %d", what, n)
		}
	}
}
