package acceptance

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/redrive-dlq/redrive/views/route"
)

// scripts are what attackers put where others will look at it. Each calls a
// function that does not exist, so that the console would tell of it.
var scripts = []string{
	`<script>planted()</script>`,
	`"><img src=x onerror=planted()>`,
	`' autofocus onfocus='planted()' x='`,
	`</title></textarea></pre></style><svg onload=planted()>`,
	`javascript:planted()`,
	`<iframe srcdoc="<script>parent.planted()</script>"></iframe>`,
	`<a href="javascript:planted()" id="main" data-live="/evil">click</a>`,
	`<base href="https://evil.example.com/"><meta http-equiv="refresh" content="0;url=https://evil.example.com/">`,
	`<form action="https://evil.example.com/"><button formaction="javascript:planted()">x</button></form>`,
	`<link rel=stylesheet href="https://evil.example.com/x.css"><style>*{display:none}</style>`,
	`{{constructor.constructor('planted()')()}}`,
	`<math><mtext><table><mglyph><style><img src=x onerror=planted()></style></mglyph></table></mtext></math>`,
	"\u202e<b onmouseover=planted()>\u2028",
}

// hostile builds a document with a script in every field.
func hostile(t *testing.T, i int, script string) []byte {
	t.Helper()
	document, err := json.Marshal(map[string]any{
		"job_type": "type " + script, "job_id": fmt.Sprintf("%d %s", i, script), "idempotency_key": fmt.Sprintf("%d %s", i, script),
		"queue": script, "tenant": script, "entity": script, "event": script, "destination": script,
		"payload": map[string]any{script: script, "list": []string{script}, "url": script},
		"headers": map[string]any{"x-test": script, script: script},
		"attempts": []any{map[string]any{
			"at": "2026-11-01T05:00:00Z", "error_class": "E" + script, "message": script, "stack": script + "\n  at " + script,
			"cause": map[string]any{"error_class": script, "message": script}, "worker": script, "worker_version": script,
		}},
		"reason": map[string]any{"code": script, "text": script}, "unknown": script,
	})
	if err != nil {
		t.Fatal(err)
	}
	return document
}

// TestHostileJobsStayText captures jobs with scripts in every field and opens
// every page that shows them: nothing runs, nothing is asked for elsewhere, no
// dialog opens, and the content policy has nothing to refuse.
func TestHostileJobsStayText(t *testing.T) {
	t.Parallel()
	b := newTab(t)
	var ids []int64
	for i, script := range scripts {
		ids = append(ids, b.demo.capture(t, hostile(t, i, script)))
	}
	for _, name := range []string{"01-nul-in-error-and-payload", "08-markup-in-every-field", "10-ansi-colours-and-terminal-codes"} {
		document, err := os.ReadFile(filepath.Join("..", "..", "..", "dlq", "testdata", "cases", name+".json"))
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, b.demo.capture(t, document))
	}
	b.signIn("oncall")
	for _, id := range ids {
		job := strconv.FormatInt(id, 10)
		b.unharmed(route.Job(job))
		b.unharmed(route.Job(job) + "?view=raw")
		// A note of a person is as hostile as a job.
		if id == ids[0] {
			if status := b.post(route.JobAction(job, route.Note), url.Values{"text": {strings.Join(scripts, "\n")}}); status >= 400 {
				t.Errorf("a note answers %d", status)
			}
			if status := b.post(route.JobAction(job, route.Discard), url.Values{"reason": {strings.Join(scripts[:4], "\n")}, "version": {"1"}}); status >= 500 {
				t.Errorf("discarding answers %d", status)
			}
			b.unharmed(route.Job(job))
			for _, action := range route.Actions {
				b.unharmed(route.JobAction(job, action))
			}
		}
	}
	paths := []string{route.Overview, "/jobs?status=any", "/jobs?status=any&env=production", route.Groups, route.Batches, route.Types, route.Sources, route.Targets}
	for _, script := range scripts {
		paths = append(paths, "/jobs?q="+url.QueryEscape(script), "/jobs?status=any&type="+url.QueryEscape("type "+script), "/groups/"+url.PathEscape(script), "/login?next="+url.QueryEscape(script))
	}
	for _, path := range paths {
		b.unharmed(path)
	}
	b.signOut()
	b.signIn("auditor")
	b.unharmed(route.Audit)
	b.unharmed("/audit?object=" + url.QueryEscape(scripts[1]) + "&actor=" + url.QueryEscape(scripts[0]))
}

// unharmed opens a page and looks for what a script would have left there.
func (b *tab) unharmed(path string) {
	b.t.Helper()
	if status := b.open(path); status >= 500 {
		b.t.Errorf("%s answers %d", path, status)
	}
	found := b.read(`[
		...[...document.querySelectorAll("main script, main style, main iframe, main base, main meta, main link, main object, main embed")].map((e) => e.tagName),
		...[...document.querySelectorAll("*")].flatMap((e) => e.getAttributeNames().filter((name) => name.startsWith("on") || name === "style" || name === "srcdoc")),
		...[...document.querySelectorAll("[href], [src], [action], [formaction]")].flatMap((e) => ["href", "src", "action", "formaction"]
			.filter((name) => e.hasAttribute(name)).map((name) => new URL(e.getAttribute(name), location.href))
			.filter((to) => !/^https?:$/.test(to.protocol) || to.hostname === "evil.example.com").map((to) => to.href.slice(0, 100))),
	].join(", ")`)
	if found != "" {
		b.t.Errorf("%s has %s", path, found)
	}
}
