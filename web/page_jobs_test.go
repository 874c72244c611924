package web

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/PuerkitoBio/goquery"

	"github.com/redrive-dlq/redrive/rbac"
)

func TestJobsPageListsOpenJobsAndFilters(t *testing.T) {
	t.Parallel()
	b := pageSetup(t)
	ids := b.capture(t, welcome(t, nil),
		welcome(t, map[string]any{"job_id": "wel_2", "idempotency_key": "k2", "environment": "staging", "source": "app-staging"}),
		welcome(t, map[string]any{"job_id": "chg_1", "idempotency_key": "k3", "job_type": "charge_card"}))
	exec(t, b, `UPDATE redrive.dead_jobs SET status = 'resolved' WHERE id = $1`, ids[2])
	cl := b.as(t, rbac.Viewer)
	for _, c := range []struct {
		query, title string
		jobs         []string
	}{
		{"", "2 open dead jobs", []string{"wel_8821", "wel_2"}},
		{"?status=any", "3 dead jobs", []string{"wel_8821", "wel_2", "chg_1"}},
		{"?status=", "3 dead jobs", []string{"wel_8821", "wel_2", "chg_1"}},
		{"?status=resolved", "1 resolved dead job", []string{"chg_1"}},
		{"?env=staging", "1 open dead job, staging", []string{"wel_2"}},
		{"?type=charge_card&status=any", "1 dead job of charge_card", []string{"chg_1"}},
		{"?job=chg_1", "1 dead job", []string{"chg_1"}},
		{"?key=k3", "1 dead job", []string{"chg_1"}},
		{"?class=mail.InvalidRecipient&env=production", "1 open dead job, production", []string{"wel_8821"}},
		{"?category=invalid_input&from=2026-05-04&to=2026-05-04&env=production", "1 open dead job, production", []string{"wel_8821"}},
		{"?from=2026-05-05", "0 open dead jobs", nil},
		{"?q=" + url.QueryEscape("type:charge_card env:production"), "1 dead job of charge_card, production", []string{"chg_1"}},
	} {
		doc := cl.open(t, "/jobs"+c.query, http.StatusOK)
		if got := text(doc.Find("h1")); got != c.title {
			t.Errorf("%q is titled %q, want %q", c.query, got, c.title)
		}
		rows := doc.Find("tr[data-row]")
		if rows.Length() != len(c.jobs) {
			t.Errorf("%q lists %d jobs, want %d", c.query, rows.Length(), len(c.jobs))
		}
		for _, job := range c.jobs {
			if !strings.Contains(rows.Text(), job) {
				t.Errorf("%q lacks %s", c.query, job)
			}
		}
	}
	doc := cl.open(t, "/jobs?env=staging", http.StatusOK)
	if got, _ := doc.Find(`[aria-label="Remove the filter status open"]`).Attr("href"); got != "/jobs?env=staging&status=any" {
		t.Errorf("the chip of the status leads to %q", got)
	}
	if got := text(doc.Find("nav .count")); got != "1open" {
		t.Errorf("navigation counts %q", got)
	}
}

func TestJobsPageTurnsPages(t *testing.T) {
	t.Parallel()
	b := pageSetup(t)
	var docs []string
	for i := range 120 {
		docs = append(docs, welcome(t, map[string]any{"job_id": fmt.Sprint("wel_", i), "idempotency_key": ""}))
	}
	b.capture(t, docs...)
	cl := b.as(t, rbac.Viewer)
	seen := map[string]bool{}
	next := "/jobs?env=production&type=send_welcome_email"
	var last string
	for n := 0; next != "" && n < 5; n++ {
		doc := cl.open(t, next, http.StatusOK)
		doc.Find("tr[data-row] a[data-open] + .mono").Each(func(_ int, s *goquery.Selection) { seen[text(s)] = true })
		last = next
		next, _ = doc.Find(`nav.pager a:contains("Next")`).Attr("href")
	}
	if len(seen) != 120 {
		t.Errorf("the pages list %d different jobs, want 120", len(seen))
	}
	doc := cl.open(t, last, http.StatusOK)
	if first, _ := doc.Find(`nav.pager a:contains("First")`).Attr("href"); first != "/jobs?env=production&type=send_welcome_email" {
		t.Errorf("First leads to %q", first)
	}
	cl.open(t, "/jobs?cursor=zzz", http.StatusUnprocessableEntity)
}

func TestJobsPageSaysWhatIsWrongWithAFilter(t *testing.T) {
	t.Parallel()
	b := pageSetup(t)
	b.capture(t, welcome(t, nil))
	cl := b.as(t, rbac.Viewer)
	for query, want := range map[string]string{
		"status=opne": "open", "q=stauts:open": "status", "from=yesterday": "2026-01-31", "category=bad": "transient",
		"q=%00": "NUL", "class=" + url.QueryEscape("password="+canary): "secret",
	} {
		doc := cl.open(t, "/jobs?"+query, http.StatusUnprocessableEntity)
		if got := text(doc.Find("[role=alert]")); !strings.Contains(got, want) {
			t.Errorf("%s: %q doesn't say %q", query, got, want)
		}
		if doc.Find("tr[data-row]").Length() != 0 {
			t.Errorf("%s: shows rows", query)
		}
		if html, _ := doc.Html(); strings.Contains(html, canary) {
			t.Errorf("%s: the page repeats a secret", query)
		}
	}
}
