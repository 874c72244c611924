package web

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/PuerkitoBio/goquery"

	"github.com/redrive-dlq/redrive/dlq/replay"
	"github.com/redrive-dlq/redrive/rbac"
)

// principalOf is the demo's account of a role, as a request would carry it.
func (b *testBundle) principalOf(t *testing.T, role rbac.Role) *rbac.Principal {
	t.Helper()
	id := query[int64](t, b, `SELECT id FROM redrive.users WHERE email = $1`, rbac.DemoEmail(role))
	return &rbac.Principal{UserID: id, Email: rbac.DemoEmail(role), Grants: []rbac.Grant{{Role: role}}, AuthenticatedAt: b.now()}
}

// work does all of a kind of work on a batch, as the engine would.
func (b *testBundle) work(t *testing.T, w replay.Work, batch int64) {
	t.Helper()
	for range 100 {
		done, err := b.server.config.Replays.Do(t.Context(), w, batch)
		if err != nil {
			t.Fatal(err)
		}
		if done {
			return
		}
	}
	t.Fatalf("%s of batch %d never ends", w, batch)
}

// confirmed plans the jobs, and confirms the batch for now.
func (b *testBundle) confirmed(t *testing.T, ids []string, canary int) int64 {
	t.Helper()
	svc, p := b.server.config.Replays, b.principalOf(t, rbac.OnCall)
	var jobs []int64
	for _, id := range ids {
		n, err := strconv.ParseInt(id, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		jobs = append(jobs, n)
	}
	planned, err := svc.Plan(t.Context(), p, replay.Selection{IDs: jobs}, "the provider is back")
	if err != nil || len(planned) != 1 {
		t.Fatalf("plan: %v, %v", planned, err)
	}
	batch := planned[0]
	b.work(t, replay.WorkPlan, batch)
	hash := query[string](t, b, `SELECT plan_hash FROM redrive.batches WHERE id = $1`, batch)
	review, err := svc.Review(t.Context(), p, replay.ReviewOrder{Batch: batch, PlanHash: hash, Reason: "the provider is back", Canary: canary})
	if err != nil {
		t.Fatal(err)
	}
	c, err := svc.Confirming(t.Context(), p, batch)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := svc.Confirm(t.Context(), p, replay.ConfirmOrder{Batch: batch, PlanHash: hash, ReviewHash: review, Phrase: c.Phrase, Nonce: c.Nonce}); err != nil {
		t.Fatal(err)
	}
	b.work(t, replay.WorkStart, batch)
	return batch
}

// play releases what may leave and gives each the outcome, until nothing leaves.
func (b *testBundle) play(t *testing.T, outcome string) {
	t.Helper()
	svc := b.server.config.Replays
	for range 50 {
		if _, err := svc.ReleaseDue(t.Context()); err != nil {
			t.Fatal(err)
		}
		items, err := svc.InFlight(t.Context(), "http", 0, 100)
		if err != nil {
			t.Fatal(err)
		}
		for _, it := range items {
			if _, err := svc.Record(t.Context(), it.ReplayID, replay.End{Outcome: outcome, Code: "test", Detail: "as the test says"}); err != nil {
				t.Fatal(err)
			}
		}
		if len(items) == 0 {
			break
		}
		b.advance(2 * time.Second)
	}
	if _, err := svc.EndBatches(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// A batch from its start to its report: it stops by itself, goes on with a new
// canary, and what failed is planned anew. The pages follow.
func TestBatchFromRunToReport(t *testing.T) {
	t.Parallel()
	b := pageSetup(t)
	b.takeAll()
	b.advance(time.Since(b.now())) // the store's own clock dates some of it
	var ids []string
	for i := range 40 {
		ids = append(ids, b.welcomeJob(t, "wel_"+strconv.Itoa(i), "category = 'transient'"))
	}
	cl := b.as(t, rbac.OnCall)
	batch := b.confirmed(t, ids, 5)
	path := "/batches/" + strconv.FormatInt(batch, 10)
	if got := text(cl.open(t, path, http.StatusOK).Find("h1")); got != "0 of 40 replays of send_welcome_email have ended, production" {
		t.Fatalf("begins as %q", got)
	}
	b.play(t, replay.Failed)
	doc := cl.open(t, path, http.StatusOK)
	if got := text(doc.Find("#stopped h2")); got != "Stopped by itself: 5 of 5 failed (limit 20 %)" {
		t.Fatalf("after the canary failed it says %q: %s", got, text(doc.Find("#live")))
	}
	for _, want := range []string{"5 failed", "35 left", "stopped it"} {
		if !strings.Contains(text(doc.Find("#progress")), want) {
			t.Errorf("the progress lacks %q: %s", want, text(doc.Find("#progress")))
		}
	}
	if w := cl.post(path+"/resume", "reason", "the provider is up again"); w.Code != http.StatusSeeOther {
		t.Fatalf("resume: %d\n%s", w.Code, w.Body)
	}
	if got := text(cl.open(t, path, http.StatusOK).Find("#progress")); !strings.Contains(got, "Canary of 5waits5 awaited") {
		t.Errorf("the new canary: %s", got)
	}
	b.play(t, replay.Succeeded)
	doc = cl.open(t, path, http.StatusOK)
	if got := text(doc.Find("h1")); got != "35 of 40 send_welcome_email are done, 5 failed, production" {
		t.Fatalf("ends as %q: %s", got, text(doc.Find("#live")))
	}
	trail := text(doc.Find("#audit"))
	for _, want := range []string{"confirmed", "resumed", "the provider is up again"} {
		if !strings.Contains(trail, want) {
			t.Errorf("the trail lacks %q: %s", want, trail)
		}
	}
	sum := 0
	doc.Find("#totals tbody tr:not(.sum-row) td.r").Each(func(_ int, n *goquery.Selection) { sum += number(t, n) })
	if sum != 40 {
		t.Errorf("the totals add up to %d", sum)
	}
	b.planFailedAnew(t, cl, path)
}

func (b *testBundle) planFailedAnew(t *testing.T, cl *client, path string) {
	t.Helper()
	link, _ := cl.open(t, path, http.StatusOK).Find("main a:contains('Plan the 5 that failed')").Attr("href")
	if link != path+"/plan-failed" {
		t.Fatalf("the report leads to %q", link)
	}
	if got := text(cl.open(t, link, http.StatusOK).Find("main form")); !strings.Contains(got, "Nothing is sent until that batch is reviewed and confirmed.") {
		t.Errorf("the question is %q", got)
	}
	if w := cl.post(link, "reason", ""); w.Code != http.StatusUnprocessableEntity || query[int](t, b, `SELECT count(*) FROM redrive.batches`) != 1 {
		t.Errorf("without a reason: %d", w.Code)
	}
	w := cl.post(link, "reason", "their templates are fixed")
	next := w.Header().Get("Location")
	got := query[string](t, b, `SELECT concat_ws(' ', '/batches/' || id, parent_batch, state) FROM redrive.batches ORDER BY id DESC LIMIT 1`)
	if w.Code != http.StatusSeeOther || got != next+" "+strings.TrimPrefix(path, "/batches/")+" planning" {
		t.Errorf("%d to %q: %s", w.Code, next, got)
	}
	cl.open(t, next, http.StatusOK)
	viewer := b.as(t, rbac.Viewer)
	if w := viewer.post(link, "reason", "because"); w.Code != http.StatusForbidden {
		t.Errorf("a viewer plans: %d", w.Code)
	}
	if viewer.open(t, path, http.StatusOK).Find("a[href$='/plan-failed']").Length() != 0 {
		t.Error("a viewer is offered to plan")
	}
}
