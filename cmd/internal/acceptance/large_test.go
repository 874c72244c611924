package acceptance

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"testing"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"github.com/redrive-dlq/redrive/cmd/internal/console"
	"github.com/redrive-dlq/redrive/dlq"
	"github.com/redrive-dlq/redrive/dlq/envelope"
	"github.com/redrive-dlq/redrive/dlq/filter"
	"github.com/redrive-dlq/redrive/dlq/jobtype"
	"github.com/redrive-dlq/redrive/dlq/replay"
	httptarget "github.com/redrive-dlq/redrive/dlq/target/http"
	"github.com/redrive-dlq/redrive/migrations"
	"github.com/redrive-dlq/redrive/migrations/testdb"
	"github.com/redrive-dlq/redrive/rbac"
)

// largeJobs is how many jobs the large batch has; REDRIVE_LARGE overrides it.
const largeJobs = 12_000

// largePatience bounds each wait: deliveries share the cores with everything else.
const largePatience = 6 * time.Minute

// TestLargeBatch plans, confirms, half runs and cancels a large batch while its
// pages are read: nothing hangs and every count is exact.
func TestLargeBatch(t *testing.T) {
	if testing.Short() {
		t.Skip("runs thousands of replays")
	}
	jobs := largeJobs
	if text := os.Getenv("REDRIVE_LARGE"); text != "" {
		var err error
		if jobs, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	provider := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer provider.Close()
	catalogue, err := jobtype.Load(fstest.MapFS{"types.yaml": {Data: []byte(`
environments: [production]
types:
  bulk:
    side_effects: [{kind: write, text: writes a document}]
    idempotency: {by: key, scope: bulk}
    rate: {per_minute: 600000, burst: 2000}
    batch: {approval_above: 10000000, canary: 10}
    targets: {production: {http: {url: "` + provider.URL + `"}, outcome_within: 10m, concurrency: 2000}}
`)}}, "types.yaml")
	if err != nil {
		t.Fatal(err)
	}
	pool := testdb.New(t)
	largeDeaths(t, pool, jobs)
	base := serveLarge(t, pool, catalogue)
	svc := &replay.Service{Pool: pool, Types: func() *jobtype.Catalogue { return catalogue }, Sealer: envelope.Plain{},
		Targets: map[string]replay.Target{"http": &httptarget.Target{}}, Enqueue: enqueueLarge(t, pool)}
	p := onCall()

	started := time.Now()
	ids, err := svc.Plan(t.Context(), p, replay.Selection{Filter: filter.Filter{Types: []string{"bulk"}}}, "the large batch")
	if err != nil {
		t.Fatal(err)
	}
	id := ids[0]
	state := func() (s string) {
		if err := pool.QueryRow(t.Context(), `SELECT state FROM redrive.batches WHERE id = $1`, id).Scan(&s); err != nil {
			t.Fatal(err)
		}
		return s
	}
	var pages []time.Duration
	look := func() {
		for _, path := range []string{"/api/v1/batches/" + strconv.FormatInt(id, 10), "/api/v1/dead-jobs?q=status:open&limit=50"} {
			pages = append(pages, getLarge(t, base+path))
		}
	}
	awaitFor(t, largePatience, "planned", func() bool { look(); return state() == "planned" })
	t.Logf("%d jobs planned after %s", jobs, time.Since(started).Round(time.Millisecond))
	var hash string
	if err := pool.QueryRow(t.Context(), `SELECT plan_hash FROM redrive.batches WHERE id = $1`, id).Scan(&hash); err != nil {
		t.Fatal(err)
	}
	review, err := svc.Review(t.Context(), p, replay.ReviewOrder{Batch: id, PlanHash: hash, Reason: "the large batch", Canary: 10})
	if err != nil {
		t.Fatal(err)
	}
	page, err := svc.Confirming(t.Context(), p, id)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := svc.Confirm(t.Context(), p, replay.ConfirmOrder{Batch: id, PlanHash: hash, ReviewHash: review, Phrase: page.Phrase, Nonce: page.Nonce}); err != nil {
		t.Fatal(err)
	}
	awaitFor(t, largePatience, "some of it ran", func() bool {
		look()
		return count(t, pool, `SELECT count(*) FROM redrive.replays WHERE outcome = 'succeeded'`) > min(jobs/2, 10_000)
	})
	stops, out, err := svc.Cancel(t.Context(), p, id, "enough of it")
	if err != nil {
		t.Fatal(err)
	}
	awaitFor(t, largePatience, "cancelled", func() bool { look(); return state() == "cancelled" })
	slices.Sort(pages)
	t.Logf("cancelled after %s: %d stopped, %d were out; pages p50 %s, slowest %s", time.Since(started).Round(time.Millisecond), stops, out,
		pages[len(pages)/2].Round(time.Microsecond), pages[len(pages)-1].Round(time.Microsecond))
	if _, err := dlq.FoldCounters(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	for what, want := range map[string]int{
		`SELECT sum(n) FROM redrive.batch_tallies`:                                                           jobs,
		`SELECT count(*) FROM redrive.replays WHERE state = 'ended' OR verdict <> 'eligible'`:                jobs,
		`SELECT count(*) FROM redrive.dead_jobs WHERE status NOT IN ('open', 'recovered')`:                   0,
		`SELECT sum(n) FROM redrive.type_counts WHERE job_type = 'bulk' AND status IN ('open', 'recovered')`: jobs,
		`SELECT count(*) FROM (SELECT redrive.tally_of(state, outcome, verdict) AS tally, count(*) AS n FROM redrive.replays GROUP BY 1) r
		 FULL JOIN redrive.batch_tallies c USING (tally) WHERE r.n IS DISTINCT FROM c.n`: 0,
	} {
		if got := count(t, pool, what); got != want {
			t.Errorf("%s = %d, want %d", what, got, want)
		}
	}
}

func largeDeaths(t *testing.T, pool *pgxpool.Pool, jobs int) {
	t.Helper()
	_, err := pool.Exec(t.Context(), `
		WITH j AS (
			INSERT INTO redrive.dead_jobs (environment, source, job_id, job_type, key_scope, idempotency_key, tenant, category, fingerprint, died_at, attempt_count)
			SELECT 'production', 'test', 'bulk' || i, 'bulk', 'bulk', 'k' || i, 't' || i % 200, 'transient', 'f' || i % 5, now() - interval '1 hour', 3
			FROM generate_series(1, $1::int) i
			RETURNING id)
		INSERT INTO redrive.payloads (dead_job_id, version, bytes, encoding, size, sha256, redacted, redact_version, origin)
		SELECT id, 1, '\x00'::bytea || convert_to('{"a": 1}', 'UTF8'), 'json', 8, '', '{"a": 1}', 1, 'capture'
		FROM j`, jobs)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec(t.Context(), `ANALYZE redrive.dead_jobs, redrive.payloads`); err != nil {
		t.Fatal(err)
	}
}

// serveLarge runs a whole console on the store and returns its address.
func serveLarge(t *testing.T, pool *pgxpool.Pool, catalogue *jobtype.Catalogue) string {
	t.Helper()
	people := rbac.New(pool, nil, rbac.NewHasher(2))
	if err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error { return people.SeedDemo(t.Context(), tx) }); err != nil {
		t.Fatal(err)
	}
	c, err := console.New(t.Context(), console.Config{Pool: pool, Catalogue: catalogue, Demo: true, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx, listener) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		c.Close()
	})
	return "http://" + listener.Addr().String()
}

func getLarge(t *testing.T, url string) time.Duration {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer demo-oncall-token")
	started := time.Now()
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }() // read whole below
	if _, err := io.Copy(io.Discard, res.Body); err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v", url, res.Status, err)
	}
	return time.Since(started)
}

// batchWork is the engine's job for work on a batch, as the console knows it.
type batchWork struct {
	Work  replay.Work `json:"work"`
	Batch int64       `json:"batch"`
}

// Kind implements river.JobArgs.
func (batchWork) Kind() string { return "redrive_batch" }

// enqueueLarge hands the test's own orders to the console's engine.
func enqueueLarge(t *testing.T, pool *pgxpool.Pool) func(context.Context, pgx.Tx, replay.Work, int64) error {
	t.Helper()
	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{Schema: migrations.Schema})
	if err != nil {
		t.Fatal(err)
	}
	return func(ctx context.Context, tx pgx.Tx, w replay.Work, batch int64) error {
		_, err := client.InsertTx(ctx, tx, batchWork{w, batch}, &river.InsertOpts{Queue: "batches"})
		return err
	}
}
