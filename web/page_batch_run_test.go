package web

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/redrive-dlq/redrive/rbac"
)

func TestRunPageSaysHowFarItIs(t *testing.T) {
	t.Parallel()
	b := pageSetup(t)
	id := b.ran(t, "running", map[string]int{"succeeded": 1200, "already_done": 10, "failed": 36, "skipped": 14, "released": 60, "ready": 80, "pending": 2600, "plan.key_done": 112})
	exec(t, b, `UPDATE redrive.replays SET wave = 0, canary_rank = 1 WHERE outcome = 'succeeded' AND job_id ~ '_[1-7]$'`)
	exec(t, b, `UPDATE redrive.replays SET wave = 0, canary_rank = 2 WHERE state = 'released' AND job_id ~ '_[1-3]$'`)
	exec(t, b, `UPDATE redrive.runs SET wave = 0`)
	exec(t, b, `UPDATE redrive.replays SET released_at = released_at - interval '1 minute' WHERE outcome IS NOT NULL`)
	doc := b.as(t, rbac.OnCall).open(t, "/batches/"+id, http.StatusOK)
	if got := text(doc.Find("h1")); got != "1,260 of 4,000 replays of send_welcome_email have ended, production" {
		t.Errorf("titled %q", got)
	}
	progress := text(doc.Find("#progress"))
	for _, want := range []string{"1,210 done", "36 failed", "14 skipped", "60 out, outcome awaited", "2,680 left", "10 had their effect in place already",
		"Leaving now6 a secondat most 2 a second (120 a minute)", "about 22 min 20 s", "Canary of 10is out7 succeeded, 3 awaited", "3 %36 of 1,246; it stops by itself above 20 %"} {
		if !strings.Contains(progress, want) {
			t.Errorf("the progress lacks %q: %s", want, progress)
		}
	}
	label, _ := doc.Find("#progress svg.parts").Attr("aria-label")
	if !strings.HasPrefix(label, "1,260 of 4,000 replays have ended: 1,210 done, 36 failed, 14 skipped, 60 out") || doc.Find("#progress [style]").Length() != 0 {
		t.Errorf("the bar is read as %q", label)
	}
	if got := text(doc.Find("#failures")); !strings.Contains(got, "36 failed") {
		t.Errorf("what failed: %q", got)
	}
	if got := text(doc.Find("#items [aria-current]")); got != "All 4,112" {
		t.Errorf("the items are filtered by %q", got)
	}
	if live, _ := doc.Find("[data-live]").Attr("data-live"); live != "/batches/"+id+"/events" || doc.Find("#live").Length() != 1 {
		t.Errorf("the page listens to %q", live)
	}
	if html, _ := doc.Html(); strings.Contains(html, canary) {
		t.Error("a secret of an outcome is shown")
	}
}

// What keeps replays back stands on the page: the start, a destination that
// fails, the catalogue, a person.
func TestRunPageSaysWhatItWaitsFor(t *testing.T) {
	t.Parallel()
	b := pageSetup(t)
	cl := b.as(t, rbac.Viewer)
	id := b.ran(t, "scheduled", map[string]int{"pending": 4000})
	live := func() string { return text(cl.open(t, "/batches/"+id, http.StatusOK).Find("#live")) }
	if got := live(); !strings.Contains(got, "4,000 replays of send_welcome_email to start at 03:07 UTC, production") || !strings.Contains(got, "Starts at 03:07 UTC, in 5 min.") {
		t.Errorf("scheduled: %s", got)
	}
	exec(t, b, `UPDATE redrive.batches SET state = 'running'`)
	exec(t, b, `
		INSERT INTO redrive.destinations (environment, name, breaker, failing_since, opened_at, retry_at, openings, why)
		VALUES ('production', 'http://127.0.0.1:9010/jobs', 'open', $1::timestamptz - interval '12 minutes', $1, $1::timestamptz + interval '2 minutes', 1, '')`, b.now())
	if got := live(); !strings.Contains(got, "http://127.0.0.1:9010/jobs has been failing for 12 min. A few replays try it at 03:04 UTC; the rest keep their place.") {
		t.Errorf("failing: %s", got)
	}
	exec(t, b, `UPDATE redrive.destinations SET breaker = 'half_open'`)
	if got := live(); !strings.Contains(got, "A few replays try it now; one that succeeds lets the others follow.") {
		t.Errorf("half open: %s", got)
	}
	b.items(t, id, "released", 100)
	b.ran(t, "running", map[string]int{"pending": 1})
	if got := live(); !strings.Contains(got, "http://127.0.0.1:9010/jobs has 100 out, and takes no more at once.") || !strings.Contains(got, "It shares the rate of its type (600 a minute) with 1 other batch or replay under way") {
		t.Errorf("at its limits: %s", got)
	}
	exec(t, b, `UPDATE redrive.replays SET behind = true WHERE job_id = 'wel_pending_1'`)
	if got := live(); !strings.Contains(got, "waits until an earlier replay of its entity, key or job has ended") {
		t.Error("a replay doesn't say what it waits behind")
	}
	exec(t, b, `UPDATE redrive.batches SET state = 'paused', pause_kind = 'catalogue', pause_why = 'send_welcome_email has no target in production', paused_at = $1`, b.now())
	if got := live(); !strings.Contains(got, "Paused by the catalogue.") || !strings.Contains(got, "has no target in production") {
		t.Errorf("paused by the catalogue: %s", got)
	}
}

func TestBatchEventsTellOfOutcomesHoldsAndBreakers(t *testing.T) {
	t.Parallel()
	b := pageSetup(t)
	id := b.ran(t, "running", map[string]int{"released": 3, "pending": 5})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	served := httptest.NewServer(b.server)
	t.Cleanup(served.Close)
	events := b.as(t, rbac.Viewer).follow(ctx, t, served.URL, "/batches/"+id+"/events")
	for _, change := range []string{
		`UPDATE redrive.replays SET state = 'ended', outcome = 'succeeded', outcome_at = now() WHERE id = (SELECT min(id) FROM redrive.replays WHERE state = 'released')`,
		`UPDATE redrive.replays SET state = 'ready' WHERE id = (SELECT min(id) FROM redrive.replays WHERE state = 'pending')`,
		`INSERT INTO redrive.holds (environment, job_type, placed_by) VALUES ('production', 'send_welcome_email', 'x')`,
		`UPDATE redrive.holds SET reason = 'because'`,
		`INSERT INTO redrive.destinations (environment, name, breaker) VALUES ('production', 'http://127.0.0.1:9010/jobs', 'open')`,
		`UPDATE redrive.batches SET rate_per_minute = 60`,
		`UPDATE redrive.runs SET wave = 0`,
	} {
		exec(t, b, change)
		if !changed(events) {
			t.Fatalf("nothing told of %s", change)
		}
	}
	b.advance(runBeat) // its speed falls although nothing is counted
	if !changed(events) {
		t.Fatal("nothing told of the time that passed")
	}
}

// queries counts what a request asks the database.
type queries struct{ n atomic.Int64 }

func (q *queries) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	q.n.Add(1)
	return ctx
}
func (q *queries) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// A batch's page asks as often for ten replays as for thousands.
func TestRunPageCostsTheSameForAnySize(t *testing.T) {
	t.Parallel()
	b := pageSetup(t)
	small := b.ran(t, "running", map[string]int{"succeeded": 2, "failed": 1, "skipped": 1, "pending": 5})
	large := b.ran(t, "running", map[string]int{"succeeded": 900, "failed": 300, "skipped": 300, "pending": 1500})
	asked := &queries{}
	config := b.pool.Config().Copy()
	config.ConnConfig.Tracer = asked
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	b.server.config.Pool = pool
	cl := b.as(t, rbac.OnCall)
	count := func(id string) int64 {
		cl.open(t, "/batches/"+id, http.StatusOK)
		asked.n.Store(0)
		cl.open(t, "/batches/"+id, http.StatusOK)
		return asked.n.Load()
	}
	of, than := count(large), count(small)
	if of != than || of == 0 || of > 15 {
		t.Errorf("a large batch's page asks %d times, a small one's %d", of, than)
	}
}
