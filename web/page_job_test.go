package web

import (
	"net/http"
	"strings"
	"testing"

	"github.com/PuerkitoBio/goquery"

	"github.com/redrive-dlq/redrive/rbac"
)

// offered lists the actions that a job's page offers.
func offered(doc *goquery.Document) string {
	var names []string
	doc.Find("a[data-action]").Each(func(_ int, s *goquery.Selection) {
		name, _ := s.Attr("data-action")
		if s.HasClass("btn-primary") {
			name = "*" + name
		}
		names = append(names, name)
	})
	if doc.Find("form[action$='/note']").Length() > 0 {
		names = append(names, "note")
	}
	return strings.Join(names, " ")
}

func TestJobPageSaysWhatHappenedAndWhatNow(t *testing.T) {
	t.Parallel()
	b := pageSetup(t)
	ids := b.capture(t, welcome(t, nil),
		welcome(t, map[string]any{"job_id": "chg_1", "idempotency_key": "charge:1", "job_type": "charge_card", "effect": "unknown",
			"attempts": []any{map[string]any{"at": "2026-05-04T02:10:00Z", "error_class": "TimeoutError", "message": "timed out after 30 s"}}}),
		welcome(t, map[string]any{"job_id": "net_1", "idempotency_key": "n1", "gave_up": "attempts",
			"attempts": []any{map[string]any{"at": "2026-05-04T02:10:00Z", "error_class": "HTTPError", "message": "503 service unavailable"}}}),
		welcome(t, map[string]any{"job_id": "who_1", "idempotency_key": "", "job_type": "nobody_declared_this", "gave_up": "attempts",
			"attempts": []any{map[string]any{"at": "2026-05-04T02:10:00Z", "error_class": "HTTPError", "message": "503 service unavailable"}}}))
	for _, c := range []struct {
		name, id             string
		role                 rbac.Role
		line, advice, blocks string
		offered              string
	}{
		{"invalid input", ids[0], rbac.OnCall, "Failed once with 400 invalid recipient: a•••@@example.com", "The payload was refused", "replaying it as it is would fail again", "*edit fix resolve snooze assign discard note"},
		{"a viewer", ids[0], rbac.Viewer, "Failed once", "The payload was refused", "replaying it as it is would fail again", ""},
		{"unknown effect", ids[1], rbac.OnCall, "nobody knows whether its effect happened", "Look up the key charge:1 at the provider", "nobody knows its end", "*settle resolve snooze assign discard note"},
		{"transient", ids[2], rbac.OnCall, "503 service unavailable", "Replay it once that has passed", "", "*replay edit resolve snooze assign discard note"},
		{"undeclared", ids[3], rbac.OnCall, "503 service unavailable", "Replay it once", "Nobody declared the type nobody_declared_this", "resolve snooze assign discard note"},
	} {
		doc := b.as(t, c.role).open(t, "/jobs/"+c.id, http.StatusOK)
		next := text(doc.Find("section.stage"))
		for _, want := range []string{c.line, c.advice, c.blocks} {
			if !strings.Contains(next, want) {
				t.Errorf("%s: %q lacks %q", c.name, next, want)
			}
		}
		if blocked := strings.Contains(next, "A replay is blocked"); blocked != (c.blocks != "") {
			t.Errorf("%s: blocked is %v in %q", c.name, blocked, next)
		}
		if got := offered(doc); got != c.offered {
			t.Errorf("%s: offers %q, want %q", c.name, got, c.offered)
		}
		if live, _ := doc.Find("[data-live]").Attr("data-live"); live != "/jobs/"+c.id+"/events" {
			t.Errorf("%s: lives on %q", c.name, live)
		}
	}
	if got := text(b.as(t, rbac.OnCall).open(t, "/jobs/"+ids[0], http.StatusOK).Find("h1")); got != "send_welcome_email wel_8821 is dead, production" {
		t.Errorf("titled %q", got)
	}
	// An operator may not move money, and is told who may.
	exec(t, b, `UPDATE redrive.dead_jobs SET effect = 'none', category = 'transient' WHERE id = $1`, ids[1])
	doc := b.as(t, rbac.Operator).open(t, "/jobs/"+ids[1], http.StatusOK)
	if got := text(doc.Find("section.stage")); !strings.Contains(got, "takes the rights of an on-call engineer") || strings.Contains(offered(doc), "replay") {
		t.Errorf("an operator is offered %q: %q", offered(doc), got)
	}
}

func TestJobPageShowsTheEarlierResultOfADoneKey(t *testing.T) {
	t.Parallel()
	b := pageSetup(t)
	id := b.capture(t, welcome(t, nil))[0]
	exec(t, b, `SELECT redrive.finish_effect('production', 'send_welcome_email', 'send_welcome_email:welcome:snd_5f2a', '{"id": "msg_01HX3", "password": "`+canary+`"}')`)
	doc := b.as(t, rbac.OnCall).open(t, "/jobs/"+id, http.StatusOK)
	if got := text(doc.Find("section.stage")); !strings.Contains(got, "This has already succeeded") || !strings.Contains(got, "msg_01HX3") {
		t.Errorf("says %q", got)
	}
	if got := offered(doc); got != "note" {
		t.Errorf("offers %q", got)
	}
	if got := text(doc.Find("#ledger")); !strings.Contains(got, "Done") || !strings.Contains(got, "msg_01HX3") {
		t.Errorf("the ledger says %q", got)
	}
	if html, _ := doc.Html(); strings.Contains(html, canary) {
		t.Error("the result isn't redacted")
	}
}

func TestJobPageShowsVersionsAndTheirDifference(t *testing.T) {
	t.Parallel()
	b := pageSetup(t)
	id := b.capture(t, welcome(t, nil))[0]
	exec(t, b, `
		INSERT INTO redrive.payloads (dead_job_id, version, bytes, encoding, size, sha256, redacted, redact_version, hidden, origin, created_by, reason, created_at)
		SELECT dead_job_id, 2, bytes, encoding, size, sha256, convert_to(replace(convert_from(redacted, 'UTF8'), '@@', '@'), 'UTF8'),
		       redact_version, hidden, 'edit', 'oncall@demo.test', 'two at signs', $2
		FROM redrive.payloads
		WHERE dead_job_id = $1`, id, b.now())
	exec(t, b, `UPDATE redrive.dead_jobs SET payload_version = 2, fix_kind = 'edit', fix_ref = '2' WHERE id = $1`, id)
	cl := b.as(t, rbac.OnCall)
	doc := cl.open(t, "/jobs/"+id+"?view=diff", http.StatusOK)
	if gone, come := text(doc.Find("tr.gone")), text(doc.Find("tr.come")); !strings.Contains(gone, `"a•••@@example.com"`) || !strings.Contains(come, `"a•••@example.com"`) {
		t.Errorf("the difference is %q, %q", gone, come)
	}
	if got := text(doc.Find("#payload")); !strings.Contains(got, "two at signs") || !strings.Contains(got, "edited by oncall@demo.test") {
		t.Errorf("the payload says %q", got)
	}
	if got := text(doc.Find("#timeline")); !strings.Contains(got, "Version 2 by oncall@demo.test") {
		t.Errorf("the timeline says %q", got)
	}
	if got := offered(doc); !strings.HasPrefix(got, "*replay") {
		t.Errorf("after the edit it offers %q", got)
	}
	if got := text(cl.open(t, "/jobs/"+id+"?version=1&view=raw", http.StatusOK).Find("#payload-text")); !strings.Contains(got, "a•••@@example.com") {
		t.Errorf("version 1 is %q", got)
	}
	for path, status := range map[string]int{
		"?version=3": 404, "?version=x": 422, "?version=0": 422, "?view=php": 422, "/payload?version=3": 404, "/payload?version=-1": 422,
	} {
		cl.open(t, "/jobs/"+id+path, status)
	}
}

func TestJobPayloadIsARedactedFile(t *testing.T) {
	t.Parallel()
	b := pageSetup(t)
	id := b.capture(t, welcome(t, map[string]any{"job_id": "../<b>\"x", "payload": map[string]any{"password": canary, "note": "<script>alert(1)</script>"}}))[0]
	w := b.as(t, rbac.Viewer).get("/jobs/" + id + "/payload")
	if w.Code != http.StatusOK || strings.Contains(w.Body.String(), canary) || !strings.Contains(w.Body.String(), "alert(1)") {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	for header, want := range map[string]string{"Content-Type": "application/json", "X-Content-Type-Options": "nosniff",
		"Content-Disposition": `attachment; filename=payload-____b__x-v1-redacted.json`, "Content-Security-Policy": "default-src 'none'; sandbox"} {
		if got := w.Header().Get(header); got != want {
			t.Errorf("%s is %q", header, got)
		}
	}
}

func TestJobPageHidesWhatIsOutOfScope(t *testing.T) {
	t.Parallel()
	b := pageSetup(t)
	id := b.capture(t, welcome(t, nil))[0]
	for _, g := range []rbac.Grant{{Role: rbac.OnCall, Environment: "staging"}, {Role: rbac.OnCall, JobType: "charge_card"}} {
		cl := b.grant(t, g)
		for _, path := range []string{"", "/payload", "/events", "?version=1"} {
			cl.open(t, "/jobs/"+id+path, http.StatusNotFound)
		}
		if doc := cl.open(t, "/jobs?status=any", http.StatusOK); doc.Find("tr[data-row]").Length() != 0 {
			t.Errorf("%+v is shown the job in the list", g)
		}
	}
	cl := b.as(t, rbac.Viewer)
	for _, path := range []string{"/jobs/999999", "/jobs/abc", "/jobs/0", "/jobs/999999/payload", "/jobs/999999/events", "/jobs/99999999999999999999"} {
		cl.open(t, path, http.StatusNotFound)
	}
}
