package web

import (
	"encoding/csv"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/PuerkitoBio/goquery"

	"github.com/redrive-dlq/redrive/rbac"
)

var reported = map[string]int{"succeeded": 20, "already_done": 3, "failed": 4, "skipped": 5, "unconfirmed": 2, "cancelled": 1, "plan.key_done": 6, "plan.invalid_input": 7}

func number(t *testing.T, s *goquery.Selection) int {
	t.Helper()
	n, err := strconv.Atoi(strings.ReplaceAll(text(s), ",", ""))
	if err != nil {
		t.Fatalf("%q is no number", text(s))
	}
	return n
}

func TestReportAddsUp(t *testing.T) {
	t.Parallel()
	b := pageSetup(t)
	id := b.ran(t, "done", reported)
	cl := b.as(t, rbac.Operator)
	for _, path := range []string{"/batches/" + id, "/batches/" + id + "/report"} {
		doc := cl.open(t, path, http.StatusOK)
		if got := text(doc.Find("h1")); got != "23 of 35 send_welcome_email are done, 4 failed, 2 without a known outcome, production" {
			t.Errorf("titled %q", got)
		}
		sum, planned := 0, 0
		doc.Find("#totals tbody tr").Each(func(_ int, row *goquery.Selection) {
			n := number(t, row.Find("td.r"))
			if row.HasClass("sum-row") {
				planned = n
				return
			}
			sum += n
		})
		if sum != 48 || planned != 48 {
			t.Errorf("the lines add up to %d, all planned are %d, want 48", sum, planned)
		}
		blocked := text(doc.Find("#blocked"))
		for _, want := range []string{"Invalid input 7", "declare what was fixed", "Already done 6"} {
			if !strings.Contains(blocked, want) {
				t.Errorf("blocked says %q, not %q", blocked, want)
			}
		}
		who := text(doc.Find("#about"))
		for _, want := range []string{"the provider is <b>back</b>", "planner@elsewhere.test", "caller@elsewhere.test", "planhash1", "reviewhash1", "type:send_welcome_email status:open", "at most 120 a minute, 10 first"} {
			if !strings.Contains(who, want) {
				t.Errorf("who ordered it lacks %q: %s", want, who)
			}
		}
		if doc.Find("#about b").Length() != 0 {
			t.Error("a reason became markup")
		}
		if got := text(doc.Find("#skips")); !strings.Contains(got, "An earlier one of its entity failed 5") {
			t.Errorf("skipped: %q", got)
		}
		if html, _ := doc.Html(); strings.Contains(html, canary) {
			t.Error("a secret of an outcome is shown")
		}
		if doc.Find("[data-live]").Length() != 0 {
			t.Error("a report that is final still listens")
		}
	}
	items := cl.open(t, "/batches/"+id+"?outcome=unconfirmed", http.StatusOK).Find("#items")
	if items.Find("tr[data-row]").Length() != 2 || text(items.Find("[aria-current]")) != "Unconfirmed 2" {
		t.Errorf("the unconfirmed ones are %q", text(items))
	}
	items = cl.open(t, "/batches/"+id+"?verdict=key_done", http.StatusOK).Find("#items")
	if items.Find("tr[data-row]").Length() != 6 || !strings.Contains(text(items), "Blocked") {
		t.Errorf("the blocked ones are %q", text(items))
	}
	for _, bad := range []string{"outcome=nope", "cursor=zzz"} {
		cl.open(t, "/batches/"+id+"?"+bad, http.StatusUnprocessableEntity)
	}
}

func TestReplaysOfABatchArePaged(t *testing.T) {
	t.Parallel()
	b := pageSetup(t)
	id := b.ran(t, "running", map[string]int{"pending": 120, "succeeded": 1})
	cl := b.as(t, rbac.Viewer)
	path, seen := "/batches/"+id+"?outcome=pending", map[string]bool{}
	for pages := 1; path != ""; pages++ {
		doc := cl.open(t, path, http.StatusOK)
		doc.Find("#items tr[data-row] a").Each(func(_ int, a *goquery.Selection) { seen[text(a)] = true })
		path = ""
		doc.Find("#items .pager a").Each(func(_ int, a *goquery.Selection) {
			if href, _ := a.Attr("href"); text(a) == "Next" && strings.HasSuffix(href, "#items") && strings.Contains(href, "outcome=pending") {
				path = strings.TrimSuffix(href, "#items")
			}
		})
		if pages > 4 {
			t.Fatal("the pages have no end")
		}
	}
	if len(seen) != 120 {
		t.Errorf("%d replays were listed, want 120", len(seen))
	}
}

// A withdrawn plan and a report asked for too early say so.
func TestReportOfWhatWasNotRun(t *testing.T) {
	t.Parallel()
	b := pageSetup(t)
	cl := b.as(t, rbac.OnCall)
	id := b.ran(t, "cancelled", map[string]int{"plan.eligible": 5, "plan.key_done": 2})
	exec(t, b, `UPDATE redrive.batches SET due_at = NULL, confirmed_at = NULL`)
	if got := text(cl.open(t, "/batches/"+id, http.StatusOK).Find("h1")); got != "The plan of 7 replays of send_welcome_email was withdrawn, production" {
		t.Errorf("titled %q", got)
	}
	exec(t, b, `UPDATE redrive.batches SET state = 'planned', finished_at = NULL`)
	cl.open(t, "/batches/"+id+"/report", http.StatusConflict)
	running := b.ran(t, "running", underWay)
	if got := text(cl.open(t, "/batches/"+running+"/report", http.StatusOK).Find("h1")); got != "Report so far: 4 of 51 replays of send_welcome_email have ended, production" {
		t.Errorf("titled %q", got)
	}
}

// An export holds what the plan's hash was made of, is audited, and few fit
// into a minute.
func TestExportIsWholeAuditedAndLimited(t *testing.T) {
	t.Parallel()
	b := pageSetup(t)
	id := b.ran(t, "done", reported)
	exec(t, b, `UPDATE redrive.replays SET job_id = '=cmd|1' WHERE outcome = 'cancelled'`)
	cl := b.as(t, rbac.Viewer)
	if doc := cl.open(t, "/batches/"+id, http.StatusOK); doc.Find("form[method=post][action$='/export.csv'] button, form[method=post][action$='/export.json'] button").Length() != 2 {
		t.Fatal("the report offers no exports")
	}
	w := cl.post("/batches/" + id + "/export.csv")
	rows, err := csv.NewReader(w.Body).ReadAll()
	if w.Code != http.StatusOK || err != nil || len(rows) != 49 || w.Header().Get("Content-Disposition") != `attachment; filename="batch-`+id+`.csv"` {
		t.Fatalf("%d, %d rows, %v, %v", w.Code, len(rows), err, w.Header())
	}
	var formulas, outcomes int
	for _, row := range rows[1:] {
		for _, cell := range row {
			if strings.HasPrefix(cell, "=") {
				formulas++
			}
			if strings.Contains(cell, canary) {
				t.Error("a secret is exported")
			}
		}
		if row[8] != "" {
			outcomes++
		}
	}
	if formulas != 0 || outcomes != 35 {
		t.Errorf("%d formulas, %d outcomes", formulas, outcomes)
	}
	w = cl.post("/batches/" + id + "/export.json")
	var doc struct {
		PlanHash string `json:"plan_hash"`
		Items    []struct{ Verdict, Outcome string }
	}
	if err := json.Unmarshal(w.Body.Bytes(), &doc); err != nil || doc.PlanHash != "planhash1" || len(doc.Items) != 48 {
		t.Errorf("%v: %d items, hash %q", err, len(doc.Items), doc.PlanHash)
	}
	if n := b.entryCount(t, "batch.export"); n != 2 {
		t.Errorf("%d entries, want 2", n)
	}
	for range exportBurst {
		w = cl.post("/batches/" + id + "/export.csv")
	}
	if after, _ := strconv.Atoi(w.Header().Get("Retry-After")); w.Code != http.StatusTooManyRequests || after < 1 || after > 21 {
		t.Errorf("a burst: %d, again in %q", w.Code, w.Header().Get("Retry-After"))
	}
	if n := b.entryCount(t, "batch.export"); n != exportBurst {
		t.Errorf("%d entries, want %d", n, exportBurst)
	}
	if w := b.as(t, rbac.Operator).post("/batches/" + id + "/export.csv"); w.Code != http.StatusOK {
		t.Errorf("one person's burst counts for another: %d", w.Code)
	}
	b.advance(exportEvery)
	if w := cl.post("/batches/" + id + "/export.csv"); w.Code != http.StatusOK {
		t.Errorf("after the wait: %d", w.Code)
	}
	elsewhere := b.grant(t, rbac.Grant{Role: rbac.Viewer, Environment: "staging"})
	if w := elsewhere.post("/batches/" + id + "/export.csv"); w.Code != http.StatusNotFound {
		t.Errorf("out of scope: %d", w.Code)
	}
	if w := cl.get("/batches/" + id + "/export.csv"); w.Code != http.StatusMethodNotAllowed {
		t.Errorf("a link exports: %d", w.Code)
	}
}

func TestLimiterForgets(t *testing.T) {
	t.Parallel()
	l := newLimiter(exportBurst, exportEvery, "exported")
	now := time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	for user := range int64(1000) {
		if err := l.take(user, now); err != nil {
			t.Fatal(err)
		}
	}
	now = now.Add(2 * exportBurst * exportEvery)
	if err := l.take(1, now); err != nil || len(l.was) != 1 {
		t.Errorf("%d people are kept, %v", len(l.was), err)
	}
	if err := l.take(1, now.Add(-time.Hour)); err != nil {
		t.Errorf("a clock that goes back: %v", err)
	}
}
