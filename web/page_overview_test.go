package web

import (
	"net/http"
	"strings"
	"testing"

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
