package acceptance

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/redrive-dlq/redrive/dlq"
	"github.com/redrive-dlq/redrive/dlq/envelope"
	"github.com/redrive-dlq/redrive/dlq/filter"
	"github.com/redrive-dlq/redrive/dlq/jobtype"
	"github.com/redrive-dlq/redrive/dlq/replay"
	httptarget "github.com/redrive-dlq/redrive/dlq/target/http"
	"github.com/redrive-dlq/redrive/migrations/testdb"
)

const (
	workJobs = 16_000
	// workPatience is how long work on a batch may take after its process was
	// killed: another takes it up after ten seconds.
	workPatience = 45 * time.Second
)

// TestKillsWhileABatchIsWorkedOn kills the process that plans, starts and cancels
// a batch in the middle of each: another goes on soon, and nothing is lost or done
// twice.
func TestKillsWhileABatchIsWorkedOn(t *testing.T) {
	if testing.Short() {
		t.Skip("kills processes for a minute")
	}
	provider := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("something was sent before its time")
	}))
	defer provider.Close()
	t.Setenv(providerEnv, provider.URL)
	url := testdb.NewURL(t)
	pool, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	stormDeaths(t, pool, workJobs)
	if _, err := pool.Exec(t.Context(), `ANALYZE redrive.dead_jobs, redrive.payloads`); err != nil {
		t.Fatal(err)
	}
	console := &process{role: "storm", database: url, provider: provider.URL}
	console.start(t)
	defer func() { console.kill(t) }()
	catalogue, err := stormCatalogue()
	if err != nil {
		t.Fatal(err)
	}
	svc := &replay.Service{Pool: pool, Types: func() *jobtype.Catalogue { return catalogue }, Sealer: envelope.Plain{},
		Targets: map[string]replay.Target{"http": &httptarget.Target{}}, Enqueue: enqueueLarge(t, pool)}

	ids, err := svc.Plan(t.Context(), onCall(), replay.Selection{Filter: filter.Filter{Types: []string{"index"}}}, "the test says so")
	if err != nil {
		t.Fatal(err)
	}
	id := ids[0]
	for range 2 {
		killInTheMiddle(t, pool, console, "planning", `SELECT planned FROM redrive.batches WHERE state = 'planning'`)
	}
	awaitFor(t, workPatience, "planned", func() bool {
		return count(t, pool, `SELECT count(*) FROM redrive.batches WHERE state = 'planned'`) == 1
	})
	if n := count(t, pool, `SELECT count(DISTINCT dead_job_id) FROM redrive.replays WHERE verdict = 'eligible'`); n != workJobs {
		t.Errorf("%d of %d jobs are planned", n, workJobs)
	}
	confirmForLater(t, svc, id)
	killInTheMiddle(t, pool, console, "the start", `SELECT count(*) FROM redrive.replays WHERE state = 'pending' AND EXISTS (SELECT FROM redrive.batches WHERE activated_at IS NULL)`)
	awaitFor(t, workPatience, "started", func() bool {
		return count(t, pool, `SELECT count(*) FROM redrive.batches WHERE activated_at IS NOT NULL`) == 1
	})
	if n := count(t, pool, `SELECT count(*) FROM redrive.dead_jobs WHERE status = 'replaying'`); n != workJobs {
		t.Errorf("%d of %d jobs are taken", n, workJobs)
	}

	if _, _, err := svc.Cancel(t.Context(), onCall(), id, "the test says so"); err != nil {
		t.Fatal(err)
	}
	killInTheMiddle(t, pool, console, "cancelling", `SELECT count(*) FROM redrive.replays WHERE state = 'ended' AND EXISTS (SELECT FROM redrive.batches WHERE state = 'cancelling')`)
	awaitFor(t, workPatience, "cancelled", func() bool {
		return count(t, pool, `SELECT count(*) FROM redrive.batches WHERE state = 'cancelled'`) == 1
	})
	if _, err := dlq.FoldCounters(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	for what, sql := range map[string]string{
		"jobs that aren't open again":  `SELECT count(*) FROM redrive.dead_jobs WHERE status <> 'open'`,
		"replays that didn't end":      `SELECT count(*) FROM redrive.replays WHERE outcome IS DISTINCT FROM 'cancelled'`,
		"counts that are off":          `SELECT count(*) FROM redrive.batch_tallies WHERE n <> CASE tally WHEN 'cancelled' THEN (SELECT count(*) FROM redrive.replays) ELSE 0 END`,
		"replays beyond one for a job": `SELECT count(*) - count(DISTINCT dead_job_id) FROM redrive.replays`,
	} {
		if n := count(t, pool, sql); n != 0 {
			t.Errorf("%s: %d", what, n)
		}
	}
}

// killInTheMiddle kills the process once the number has grown, and starts another.
func killInTheMiddle(t *testing.T, pool *pgxpool.Pool, p *process, what, sql string) {
	t.Helper()
	at := func() (n int) {
		t.Helper()
		if err := pool.QueryRow(t.Context(), `SELECT coalesce((`+sql+`), -1)`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	first, until := at(), time.Now().Add(workPatience)
	for ; time.Now().Before(until); time.Sleep(5 * time.Millisecond) {
		if at() > max(first, 0) {
			p.kill(t)
			n := at()
			if n <= 0 {
				t.Fatalf("%s was over before the process was killed", what)
			}
			t.Logf("killed while at %d of %s", n, what)
			p.start(t)
			return
		}
	}
	t.Fatalf("%s doesn't get on: at %d", what, at())
}

// confirmForLater confirms the planned batch, to begin in an hour.
func confirmForLater(t *testing.T, svc *replay.Service, id int64) {
	t.Helper()
	var hash string
	if err := svc.Pool.QueryRow(t.Context(), `SELECT plan_hash FROM redrive.batches WHERE id = $1`, id).Scan(&hash); err != nil {
		t.Fatal(err)
	}
	review, err := svc.Review(t.Context(), onCall(), replay.ReviewOrder{Batch: id, PlanHash: hash, Reason: "the test says so", Canary: 5, StartAt: time.Now().Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	page, err := svc.Confirming(t.Context(), onCall(), id)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := svc.Confirm(t.Context(), onCall(), replay.ConfirmOrder{Batch: id, PlanHash: hash, ReviewHash: review, Phrase: page.Phrase, Nonce: page.Nonce}); err != nil {
		t.Fatal(err)
	}
}
