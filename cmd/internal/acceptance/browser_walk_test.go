package acceptance

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/redrive-dlq/redrive/cmd/internal/demo"
	"github.com/redrive-dlq/redrive/views/route"
)

// walk is the article's example, in one environment and one look. The two jobs
// share their send id: neither environment may block the other.
type walk struct {
	theme, environment string
	corrected          string // the address that the person puts in
}

// TestWalkOfTheArticle is the whole way from a dead job to its recovery: a
// welcome e-mail died of a mistyped address, a person corrects it, replays it,
// and its effect happens exactly once.
func TestWalkOfTheArticle(t *testing.T) {
	t.Parallel()
	for _, w := range []walk{
		{"light", "production", "alex@example.com"},
		{"dark", "staging", "sam@example.com"},
	} {
		t.Run(w.theme, func(t *testing.T) {
			t.Parallel()
			w.run(t)
		})
	}
}

// recovered holds on the page of a job that a replay has settled.
const recovered = `document.querySelector(".page-head").innerText.includes("Recovered")`

func (w walk) run(t *testing.T) {
	b := newTab(t)
	b.prefers("light")
	b.signIn("oncall")
	w.choose(b)
	job := w.find(b)
	w.blocked(b, job)

	// Another person has the page open meanwhile.
	watcher := newTab(t)
	watcher.signIn("viewer")
	watcher.open(job)
	watcher.read(`window.sameDocument = true`)

	w.correct(b, job)
	w.replay(b, job)
	b.wait("the outcome", recovered)
	watcher.wait("the outcome, by itself", recovered)
	if watcher.read(`window.sameDocument`) != "true" {
		t.Error("the watcher's page was loaded anew instead of updating by itself")
	}
	w.onceAtTheProvider(t, b.demo)
	w.refusedAgain(b, job)
	w.audited(t, job)
	w.shut(watcher, job)
}

// choose takes the theme by the button of the page.
func (w walk) choose(b *tab) {
	b.t.Helper()
	if w.theme == "dark" {
		b.read(`document.querySelector("[data-theme-switch]").click()`)
		b.open(route.Jobs)
	}
	if got := b.read(`getComputedStyle(document.documentElement).colorScheme`); got != w.theme {
		b.t.Errorf("the page is %s, want %s", got, w.theme)
	}
}

// find goes from the list to the job by filters and returns its path.
func (w walk) find(b *tab) string {
	b.t.Helper()
	// The source reads in the background; the list is looked at once it has.
	id := b.demo.find(b.t, "key:"+demo.ArticleSendID+" env:"+w.environment)[0]
	b.open(route.Jobs)
	for field, value := range map[string]string{"#f-type": "send_welcome_email", "#f-category": "invalid_input", "#f-env": w.environment} {
		b.read(`document.querySelector("` + field + `").value = "` + value + `"`)
	}
	b.fill("#f-key", demo.ArticleSendID)
	b.follow(`form[action="/jobs"]:has(#f-type) button[type=submit]`)
	if rows := b.read(`document.querySelectorAll("tr[data-row]").length`); rows != "1" {
		b.t.Fatalf("%s rows for the key of one job\n%s", rows, b.here())
	}
	for _, want := range []string{"env=" + w.environment, "type=send_welcome_email", "category=invalid_input"} {
		if !strings.Contains(b.path(), want) {
			b.t.Errorf("the filter is not in the address: %s lacks %s", b.path(), want)
		}
	}
	b.follow("tr[data-row] a[data-open]")
	if got := b.path(); got != route.Job(jobPath(id)) {
		b.t.Fatalf("opened %s, want job %d", got, id.ID)
	}
	return b.path()
}

// blocked: the page says what happened and why a replay is refused, offers
// none, and refuses one by its address.
func (w walk) blocked(b *tab, job string) {
	b.t.Helper()
	b.says("invalid recipient", "A replay is blocked", w.environment)
	if got := b.main(); strings.Contains(got, "alex@@example.com") || strings.Contains(got, "sam@@example.com") {
		b.t.Error("the page shows the whole address")
	}
	if b.offers(`[data-action="replay"]`) {
		b.t.Errorf("a replay is offered although it is blocked\n%s", b.here())
	}
	if got := b.post(job+"/replay", url.Values{"reason": {"trying it as it is"}, "when": {"now"}}); got < 400 || got > 499 {
		b.t.Errorf("a blocked replay answers %d", got)
	}
}

// correct changes the address, looks at the difference and saves it.
func (w walk) correct(b *tab, job string) {
	b.t.Helper()
	b.follow(`[data-action="edit"]`)
	b.fill("#edit-0", w.corrected)
	b.fill("#reason", "customer confirmed the address, in "+w.theme)
	b.follow(`main form button[type=submit]`)
	b.says("Version 1 and the new version 2", "customer confirmed the address")
	if got := b.main(); strings.Contains(got, w.corrected) {
		b.t.Error("the difference shows the whole address")
	}
	b.follow(`main form button[type=submit]`)
	if got := b.path(); !strings.HasPrefix(got, job) || strings.HasPrefix(got, job+"/") {
		b.t.Fatalf("saving leads to %s\n%s", got, b.here())
	}
	if strings.Contains(b.main(), "A replay is blocked") {
		b.t.Errorf("a replay is still blocked after the edit\n%s", b.here())
	}
}

// replay confirms on the page that names the side effect.
func (w walk) replay(b *tab, job string) {
	b.t.Helper()
	b.follow(`[data-action="replay"]`)
	b.says("sends one e-mail to the customer", "In "+w.environment)
	b.fill("#reason", "replaying the corrected mail, in "+w.theme)
	b.follow(`main form button[type=submit]`)
	if got := b.path(); !strings.HasPrefix(got, job) || strings.HasPrefix(got, job+"/") {
		b.t.Fatalf("the replay leads to %s\n%s", got, b.here())
	}
}

// onceAtTheProvider asks the mail provider itself.
func (w walk) onceAtTheProvider(t *testing.T, d *demoProcess) {
	t.Helper()
	sent := d.effects(t, "mail/messages", w.environment, demo.ArticleSendID)
	if len(sent) != 1 || sent[0].Requests != 1 {
		t.Fatalf("the mail provider has %d messages of %s in %s: %+v", len(sent), demo.ArticleSendID, w.environment, sent)
	}
	if got := string(sent[0].Detail); !strings.Contains(got, w.corrected) {
		t.Errorf("sent %s, want it to %s", got, w.corrected)
	}
}

// refusedAgain: the same replay once more is refused on the page, by its
// address and by the API, each with the earlier result.
func (w walk) refusedAgain(b *tab, job string) {
	b.t.Helper()
	id := b.demo.effects(b.t, "mail/messages", w.environment, demo.ArticleSendID)[0].ID
	b.open(job)
	b.says("Recovered", id)
	if b.offers(`[data-action="replay"]`) {
		b.t.Error("a recovered job offers a replay")
	}
	if status := b.open(job + "/replay"); status >= 500 {
		b.t.Errorf("the page of the replay answers %d", status)
	}
	b.says("already", id)
	if b.offers(`main form button[type=submit]`) {
		b.t.Errorf("the page of a refused replay has a button\n%s", b.here())
	}
	if got := b.post(job+"/replay", url.Values{"reason": {"once more"}, "when": {"now"}}); got < 400 || got > 499 {
		b.t.Errorf("a second replay answers %d", got)
	}
	status, text := b.demo.call(b.t, "oncall", http.MethodPost, "/dead-"+strings.TrimPrefix(job, "/")+"/replay", []byte(`{"reason":"once more","generation":1,"payload_revision":2}`))
	if status != http.StatusConflict || !strings.Contains(string(text), id) {
		b.t.Errorf("a second replay by the API answers %d %s", status, text)
	}
	w.onceAtTheProvider(b.t, b.demo)
}

// audited: the auditor sees each step, by whom and why.
func (w walk) audited(t *testing.T, job string) {
	t.Helper()
	b := newTab(t)
	b.prefers(w.theme)
	b.signIn("auditor")
	pairs := []string{route.ParamEnvironment, w.environment}
	if w.environment == "production" {
		pairs = []string{route.ParamObject, demo.ArticleSendID} // an auditor starts from a key
	}
	b.open(route.AuditWhere(pairs...))
	b.says("oncall@demo.test", "customer confirmed the address, in "+w.theme, "replaying the corrected mail, in "+w.theme)
	if got := b.main(); strings.Contains(got, w.corrected) {
		t.Error("the audit log shows the whole address")
	}
	b.open(job)
	b.says("customer confirmed the address, in "+w.theme, "replaying the corrected mail, in "+w.theme)
	w.shut(b, job)
}

// shut: who may only read is offered no action and refused each by its address.
func (w walk) shut(b *tab, settled string) {
	b.t.Helper()
	open := b.demo.find(b.t, "status:open env:"+w.environment)[0]
	for _, job := range []string{settled, route.Job(jobPath(open))} {
		if status := b.open(job); status != 200 {
			b.t.Fatalf("%s answers %d", job, status)
		}
		if offered := b.read(`[...document.querySelectorAll("main [data-action], main form[method=post]")].map((e) => e.outerHTML.slice(0, 80)).join()`); offered != "" {
			b.t.Errorf("%s offers %s to who may only read", job, offered)
		}
		for _, action := range route.Actions {
			path := job + "/" + string(action)
			fields := url.Values{"reason": {"none of my business"}, "text": {"none"}, "when": {"now"}, "confirm": {"yes"}}
			if got := b.post(path, fields); got != http.StatusForbidden {
				b.t.Errorf("POST %s answers %d to who may only read", path, got)
			}
			if got := b.open(path); got != http.StatusForbidden {
				b.t.Errorf("GET %s answers %d to who may only read", path, got)
			}
		}
	}
}
