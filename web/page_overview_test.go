package web

import (
	"net/http"
	"strings"
	"testing"

	"github.com/PuerkitoBio/goquery"

	"github.com/redrive-dlq/redrive/rbac"
)

func TestOverviewSaysWhatBurns(t *testing.T) {
	t.Parallel()
	b := pageSetup(t)
	cl := b.as(t, rbac.Viewer)
	doc := cl.open(t, "/", http.StatusOK)
	if got := text(doc.Find("h1")); got != "No dead job has arrived yet" {
		t.Errorf("an empty store is titled %q", got)
	}
	if !strings.Contains(text(doc.Find("main")), "Three steps to the first dead job") {
		t.Error("the first day isn't explained")
	}
	ids := b.capture(t, welcome(t, nil),
		welcome(t, map[string]any{"job_id": "chg_1", "idempotency_key": "charge:1", "job_type": "charge_card", "effect": "unknown"}),
		welcome(t, map[string]any{"job_id": "s_1", "idempotency_key": "s", "environment": "staging", "source": "app-staging"}))
	b.order(t, ids[0], "succeeded", "")
	exec(t, b, `
		INSERT INTO redrive.sources (environment, name, kind, last_seen_at)
		VALUES ('production', 'main-river', 'river', $1::timestamptz - interval '14 minutes')`, b.now())
	doc = cl.open(t, "/?env=production", http.StatusOK)
	if got := text(doc.Find("h1")); got != "2 open dead jobs, production" {
		t.Errorf("titled %q", got)
	}
	figures := text(doc.Find(".figures"))
	for _, want := range []string{"Open now 2 1 with an unknown effect", "Died in the last hour 2", "Replays that succeeded 100 % 1 of 1 replays in 24 h"} {
		if !strings.Contains(strings.Join(strings.Fields(figures), " "), want) && !strings.Contains(strings.ReplaceAll(figures, " ", ""), strings.ReplaceAll(want, " ", "")) {
			t.Errorf("the figures lack %q: %s", want, figures)
		}
	}
	if got := text(doc.Find("#health")); !strings.Contains(got, "main-river") || !strings.Contains(got, "not read for 14 min") {
		t.Errorf("health says %q", got)
	}
	if link, _ := doc.Find("#types tr[data-row] a").First().Attr("href"); !strings.Contains(link, "env=production") {
		t.Errorf("a link loses the environment: %s", link)
	}
	groups := doc.Find("#groups")
	if link, _ := groups.Find("li a").First().Attr("href"); !strings.HasPrefix(link, "/groups/") || !strings.Contains(text(groups), "invalid recipient: ‹email›") || !strings.Contains(text(groups), "1 open") {
		t.Errorf("the groups say %q and lead to %q", text(groups), link)
	}
	if got := text(doc.Find("#under-way")); !strings.Contains(got, "nothing waits to leave") {
		t.Errorf("without a replay: %q", got)
	}
	limited := b.grant(t, rbac.Grant{Role: rbac.Viewer, Environment: "staging"}).open(t, "/", http.StatusOK)
	if got := text(limited.Find("h1")); got != "1 open dead job" || strings.Contains(text(limited.Find("main")), "charge_card") {
		t.Errorf("someone of staging is told %q", got)
	}
}

func TestOverviewListsReplaysThatWait(t *testing.T) {
	t.Parallel()
	b := pageSetup(t)
	b.takeAll()
	cl := b.as(t, rbac.Operator)
	id := b.schedule(t, cl, "wel_later")
	doc := cl.open(t, "/", http.StatusOK)
	got := text(doc.Find("#under-way"))
	for _, want := range []string{"send_welcome_email wel_later", "Scheduled", "due 2026-05-04 23:30:00 UTC"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q lacks %q", got, want)
		}
	}
	if doc.Find("#under-way a[href='/jobs/"+id+"']").Length() != 1 || !strings.Contains(text(doc.Find(".figures")), "1 more waits to leave") {
		t.Errorf("no way to the job, or no count: %s", text(doc.Find(".figures")))
	}
	if got := text(b.grant(t, rbac.Grant{Role: rbac.Viewer, Environment: "staging"}).open(t, "/", http.StatusOK).Find("#under-way")); strings.Contains(got, "wel_later") {
		t.Errorf("someone of staging is told of production's: %q", got)
	}
}

// The overview names the batches that have not ended, those that wait for a
// person first, and the destinations that fail.
func TestOverviewShowsBatchesAndDestinations(t *testing.T) {
	t.Parallel()
	b := pageSetup(t)
	b.capture(t, welcome(t, nil))
	running := b.ran(t, "running", underWay)
	stopped := b.ran(t, "paused", map[string]int{"succeeded": 14, "failed": 6, "pending": 30})
	asked := b.ran(t, "running", map[string]int{"plan.eligible": 9})
	b.ran(t, "done", reported)
	exec(t, b, `UPDATE redrive.batches SET state = 'waiting' WHERE id = $1::bigint`, asked)
	exec(t, b, `
		INSERT INTO redrive.destinations (environment, name, breaker, failing_since, retry_at)
		VALUES ('production', 'http://127.0.0.1:9010/jobs', 'open', $1::timestamptz - interval '12 minutes', $1::timestamptz + interval '2 minutes')`, b.now())
	doc := b.as(t, rbac.Approver).open(t, "/", http.StatusOK)
	var order []string
	doc.Find("#batches tr[data-row] a[data-open]").Each(func(_ int, a *goquery.Selection) {
		href, _ := a.Attr("href")
		order = append(order, href)
	})
	if want := "/batches/" + stopped + " /batches/" + asked + " /batches/" + running; strings.Join(order, " ") != want {
		t.Errorf("lists %v, want %s", order, want)
	}
	listed := text(doc.Find("#batches"))
	for _, want := range []string{"stopped by itself: 6 of 20 failed (limit 20 %)", "Waits for approval it waits for you", "4 of 51", "20 of 50"} {
		if !strings.Contains(strings.ReplaceAll(listed, "approvalit", "approval it"), want) {
			t.Errorf("%q lacks %q", listed, want)
		}
	}
	if got := text(doc.Find("#health")); !strings.Contains(got, "http://127.0.0.1:9010/jobs, production") || !strings.Contains(got, "failing for 12 min; a few replays try it at 03:04 UTC") {
		t.Errorf("health says %q", got)
	}
	limited := b.grant(t, rbac.Grant{Role: rbac.Approver, Environment: "staging"}).open(t, "/", http.StatusOK)
	if limited.Find("#batches").Length() != 0 || strings.Contains(text(limited.Find("#health")), "9010") {
		t.Error("someone of staging is told of production's batches")
	}
}
