package sample_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/PuerkitoBio/goquery"
	"github.com/a-h/templ"

	"github.com/redrive-dlq/redrive/views/internal/sample"
	"github.com/redrive-dlq/redrive/views/job"
	"github.com/redrive-dlq/redrive/views/jobs"
	"github.com/redrive-dlq/redrive/views/route"
)

func render(t *testing.T, page templ.Component) *goquery.Document {
	t.Helper()
	var out bytes.Buffer
	if err := page.Render(templ.WithNonce(t.Context(), "nonce"), &out); err != nil {
		t.Fatal(err)
	}
	doc, err := goquery.NewDocumentFromReader(&out)
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

func TestEveryPageIsWhole(t *testing.T) {
	t.Parallel()
	for _, page := range sample.All("dark") {
		doc := render(t, page.View)
		if n := doc.Find("h1").Length(); n != 1 {
			t.Errorf("%s: %d h1 elements, want 1", page.Name, n)
		}
		if n := doc.Find("main").Length(); n != 1 {
			t.Errorf("%s: %d main elements, want 1", page.Name, n)
		}
		if title := doc.Find("title").Text(); !strings.HasSuffix(title, " · Redrive") || len(title) < 15 {
			t.Errorf("%s: the title is %q", page.Name, title)
		}
		if theme, _ := doc.Find("html").Attr("data-theme"); theme != "dark" {
			t.Errorf("%s: the theme is %q", page.Name, theme)
		}
		if nonce, _ := doc.Find("script").Attr("nonce"); nonce != "nonce" {
			t.Errorf("%s: the script's nonce is %q", page.Name, nonce)
		}
		seen := map[string]bool{}
		doc.Find("[id]").Each(func(_ int, s *goquery.Selection) {
			id, _ := s.Attr("id")
			if seen[id] {
				t.Errorf("%s: the id %q stands twice", page.Name, id)
			}
			seen[id] = true
		})
		for _, problem := range unsafeParts(doc) {
			t.Errorf("%s: %s", page.Name, problem)
		}
		// Five requests or fewer: the page, one style, one script, one icon.
		if n := doc.Find("link[href], script[src]").Length(); n > 4 {
			t.Errorf("%s: %d files are loaded", page.Name, n)
		}
	}
}

// TestActionsAreOfferedByPermission walks each action alone.
func TestActionsAreOfferedByPermission(t *testing.T) {
	t.Parallel()
	p := sample.Detail("")
	for name, can := range map[string]job.Can{
		"":        {},
		"edit":    {Edit: true},
		"fix":     {Fix: true},
		"settle":  {Settle: true},
		"replay":  {Replay: true},
		"resolve": {Resolve: true},
		"discard": {Discard: true},
		"reopen":  {Reopen: true},
		"snooze":  {Snooze: true},
		"assign":  {Assign: true},
	} {
		p.Can = can
		doc := render(t, job.Detail(p))
		var offered []string
		doc.Find("[data-action]").Each(func(_ int, s *goquery.Selection) {
			action, _ := s.Attr("data-action")
			offered = append(offered, action)
			if href, _ := s.Attr("href"); href != route.JobAction(p.ID, route.Action(action)) {
				t.Errorf("the link of %s leads to %s", action, href)
			}
		})
		if got := strings.Join(offered, " "); got != name {
			t.Errorf("who may %q is offered %q", name, got)
		}
		if n := doc.Find("form[action$='/note']").Length(); n != 0 {
			t.Errorf("who may %q is offered to write notes", name)
		}
	}
}

func TestNavigationHoldsOnlyWhatOneMayOpen(t *testing.T) {
	t.Parallel()
	p := sample.Jobs("", 1)
	p.Page.Viewer.MayAdmin, p.Page.Viewer.MayAudit = false, false
	nav := render(t, jobs.List(p)).Find("nav[aria-label=Sections]")
	for _, path := range []string{route.Audit, route.Users, route.Tokens} {
		if nav.Find("a[href='"+path+"']").Length() != 0 {
			t.Errorf("%s is offered", path)
		}
	}
	if nav.Find("a[href='"+route.Jobs+"'][aria-current=page]").Length() != 1 {
		t.Error("Jobs is not lit")
	}
}

func TestChipsRemoveOneFilterAndTheCursor(t *testing.T) {
	t.Parallel()
	doc := render(t, jobs.List(sample.Jobs("", 1)))
	var hrefs []string
	doc.Find(".chip a").Each(func(_ int, s *goquery.Selection) {
		href, _ := s.Attr("href")
		hrefs = append(hrefs, href)
	})
	want := []string{
		"/jobs?from=2026-03-01&status=any&type=send_welcome_email", // none would mean open
		"/jobs?from=2026-03-01&status=open",
		"/jobs?status=open&type=send_welcome_email",
	}
	if got := strings.Join(hrefs, "\n"); got != strings.Join(want, "\n") {
		t.Errorf("the chips lead to\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
}

func TestPayloadKeepsEveryDigit(t *testing.T) {
	t.Parallel()
	p := sample.Detail("")
	numbers := []string{"9007199254740993", "1E3", "-0.0", "1e400", "1.10", "18446744073709551616"}
	p.Payload.Text = `{"n":[` + strings.Join(numbers, ",") + `],"n":"second of the same key"}`
	tree := render(t, job.Detail(p)).Find(".tree")
	var shown []string
	tree.Find(".lit").Each(func(_ int, s *goquery.Selection) { shown = append(shown, s.Text()) })
	if got := strings.Join(shown, " "); got != strings.Join(numbers, " ") {
		t.Errorf("the tree shows %s", got)
	}
	if n := tree.Find(".key").Length(); n != 2 {
		t.Errorf("%d keys are shown, want both of the repeated one", n)
	}
	p.Payload.View = "raw"
	if got := render(t, job.Detail(p)).Find("#payload-text").Text(); got != p.Payload.Text {
		t.Errorf("the raw view shows %q", got)
	}
}

func TestEmptyAndBinaryPayloadsAreNeverBlank(t *testing.T) {
	t.Parallel()
	p := sample.Detail("")
	p.Payload = job.Payload{Kind: "empty", Version: 1}
	if text := render(t, job.Detail(p)).Find("#payload").Text(); !strings.Contains(text, "empty (0 bytes)") {
		t.Errorf("an empty payload reads %q", text)
	}
	u := sample.Unknown("")
	if text := render(t, job.Detail(u)).Find("#payload").Text(); !strings.Contains(text, "00000000  08 96 01 12") {
		t.Errorf("a binary payload reads %q", text)
	}
	u.Payload.View = "base64"
	if text := render(t, job.Detail(u)).Find("#payload").Text(); !strings.Contains(text, "CJYBEgdvcmRlci05AP/+GgVoZWxsbyIC") {
		t.Errorf("a binary payload in base64 reads %q", text)
	}
}
