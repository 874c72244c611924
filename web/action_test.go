package web

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/redrive-dlq/redrive/audit"
	"github.com/redrive-dlq/redrive/rbac"
)

// actCase is one simple act with what its form sends.
type actCase struct {
	action string
	fields []string
	state  string // SQL that makes the job ready for it
	after  string // status
	entry  string // the log's action
}

var actCases = []actCase{
	{"note", []string{"text", "looks odd"}, "", "open", "job.note"},
	{"assign", []string{"assignee", rbac.DemoEmail(rbac.OnCall)}, "", "open", "job.assign"},
	{"resolve", []string{"reason", "sent by hand", "reference", "OPS-1"}, "", "resolved", "job.resolve"},
	{"discard", []string{"reason", "a test account"}, "", "discarded", "job.discard"},
	{"reopen", []string{"reason", "was a mistake"}, "status = 'discarded'", "open", "job.reopen"},
	{"snooze", []string{"reason", "waits for them", "until", "2026-05-05T10:00"}, "", "snoozed", "job.snooze"},
	{"fix", []string{"reason", "new mailer runs", "kind", "worker_version", "reference", "mailer 2.4.1"}, "category = 'invalid_input'", "open", "job.declare_fix"},
	{"settle", []string{"reason", "asked the provider", "ended", "not"}, "effect = 'unknown'", "open", "effect.did_not_happen"},
	{"settle", []string{"reason", "asked the provider", "ended", "happened", "effect_id", "msg_1"}, "effect = 'unknown'", "resolved", "effect.happened"},
}

func (b *testBundle) welcomeJob(t *testing.T, name, state string) string {
	t.Helper()
	id := b.capture(t, welcome(t, map[string]any{"job_id": name, "idempotency_key": "welcome:" + name}))[0]
	if state != "" {
		exec(t, b, `UPDATE redrive.dead_jobs SET `+state+` WHERE id = $1::bigint`, id)
	}
	return id
}

func query[T any](t *testing.T, b *testBundle, sql string, args ...any) (v T) {
	t.Helper()
	if err := b.pool.QueryRow(t.Context(), sql, args...).Scan(&v); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return v
}

func TestActsChangeTheJobAndTheLog(t *testing.T) {
	t.Parallel()
	b := pageSetup(t)
	cl := b.as(t, rbac.Operator)
	for i, a := range actCases {
		id := b.welcomeJob(t, fmt.Sprintf("job_%d", i), a.state)
		path := "/jobs/" + id + "/" + a.action
		doc := cl.open(t, path, http.StatusOK)
		form := doc.Find("main form[method=post]")
		if action, _ := form.Attr("action"); action != path || form.Find("button[type=submit]").Length() != 1 || form.Find("a[href='/jobs/"+id+"']").Length() != 1 {
			t.Errorf("%s: the form posts to %q, or lacks its button or its way back", a.action, action)
		}
		words := text(form)
		if a.action != "note" && !strings.Contains(words, "sent") {
			t.Errorf("%s doesn't say what is sent: %s", a.action, words)
		}
		if strings.Contains("resolve discard reopen fix settle", a.action) && !strings.Contains(words, "sends one e-mail to the customer") {
			t.Errorf("%s doesn't name the side effect: %s", a.action, words)
		}
		fields := a.fields
		if version, ok := form.Find("input[name=version]").Attr("value"); ok {
			fields = append([]string{"version", version}, fields...)
		}
		w := cl.post(path, fields...)
		if w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/jobs/"+id {
			t.Errorf("%s: %d to %q\n%s", a.action, w.Code, w.Header().Get("Location"), w.Body)
			continue
		}
		if flash := text(cl.open(t, "/jobs/"+id, http.StatusOK).Find(".flash, [role=status]")); flash == "" {
			t.Errorf("%s: no message on the job's page", a.action)
		}
		if got := query[string](t, b, `SELECT status FROM redrive.dead_jobs WHERE id = $1::bigint`, id); got != a.after {
			t.Errorf("%s: status %s, want %s", a.action, got, a.after)
		}
		entries, err := audit.List(t.Context(), b.pool, audit.Scope{Everywhere: true}, audit.Query{Action: a.entry})
		if err != nil || len(entries.Records) != 1 || entries.Records[0].Actor.Name != rbac.DemoEmail(rbac.Operator) {
			t.Errorf("%s: entries %+v, %v", a.action, entries.Records, err)
		}
	}
}

func TestActsAreRefused(t *testing.T) {
	t.Parallel()
	b := pageSetup(t)
	viewer := b.as(t, rbac.Viewer)
	elsewhere := b.grant(t, rbac.Grant{Role: rbac.OnCall, Environment: "staging"})
	actions := append([]actCase{{action: "edit", fields: []string{"reason", "a reason", "version", "1.1", "confirm", "yes", "edit:/to_email", "a@example.com"}},
		{action: "replay", fields: []string{"reason", "a reason", "version", "1.1"}}}, actCases...)
	for i, a := range actions {
		id := b.welcomeJob(t, fmt.Sprintf("job_%d", i), a.state)
		before := query[string](t, b, `SELECT d::text FROM redrive.dead_jobs d WHERE id = $1::bigint`, id)
		for name, try := range map[string]struct {
			cl     *client
			status int
		}{"viewer": {viewer, http.StatusForbidden}, "elsewhere": {elsewhere, http.StatusNotFound}} {
			path := "/jobs/" + id + "/" + a.action
			if w := try.cl.get(path); w.Code != try.status {
				t.Errorf("GET %s as %s: %d, want %d", a.action, name, w.Code, try.status)
			}
			if w := try.cl.post(path, a.fields...); w.Code != try.status {
				t.Errorf("POST %s as %s: %d, want %d", a.action, name, w.Code, try.status)
			}
		}
		if got := query[string](t, b, `SELECT d::text FROM redrive.dead_jobs d WHERE id = $1::bigint`, id); got != before {
			t.Errorf("%s changed the job", a.action)
		}
		if offered := viewer.open(t, "/jobs/"+id, http.StatusOK).Find("[data-action], main form[method=post]").Length(); offered != 0 {
			t.Errorf("a viewer is offered %d actions", offered)
		}
	}
	if n := query[int](t, b, `SELECT count(*) FROM redrive.audit_entries WHERE dead_job_id IS NOT NULL`); n != 0 {
		t.Errorf("%d entries of refused acts", n)
	}
}

func TestActsKeepWhatWasTyped(t *testing.T) {
	t.Parallel()
	b := pageSetup(t)
	cl := b.as(t, rbac.Operator)
	for i, c := range []struct {
		action, state string
		fields        []string
		at            string // field with the message
		keeps         string // text that is still in the form
	}{
		{"note", "", []string{"text", "  "}, "note-text", ""},
		{"assign", "", []string{"assignee", "nobody@example.test"}, "assignee", "nobody@example.test"},
		{"resolve", "", []string{"reason", "sent by hand"}, "reference", "sent by hand"},
		{"resolve", "", []string{"reason", "ab", "reference", "OPS-1"}, "reason", "OPS-1"},
		{"discard", "", []string{"reason", ""}, "reason", ""},
		{"snooze", "", []string{"reason", "waits for them", "until", "2026-06-30T10:00"}, "until", "2026-06-30T10:00"},
		{"snooze", "", []string{"reason", "waits for them", "until", "tomorrow"}, "until", "waits for them"},
		{"fix", "", []string{"reason", "new mailer", "kind", "ticket"}, "reference", "new mailer"},
		{"settle", "effect = 'unknown'", []string{"reason", "asked them", "ended", "happened"}, "effect-id", "asked them"},
		{"settle", "effect = 'unknown'", []string{"reason", "asked them", "ended", "not", "effect_id", "msg_1"}, "effect-id", "msg_1"},
	} {
		id := b.welcomeJob(t, fmt.Sprintf("job_%d", i), c.state)
		w := cl.post("/jobs/"+id+"/"+c.action, c.fields...)
		doc := page(t, w)
		html, _ := doc.Find("main").Html()
		if w.Code != http.StatusUnprocessableEntity || doc.Find("#"+c.at+"[aria-invalid=true]").Length() != 1 || !strings.Contains(html, c.keeps) {
			t.Errorf("%s with %v: %d, no message at %s, or %q isn't kept\n%s", c.action, c.fields, w.Code, c.at, c.keeps, text(doc.Find("main")))
		}
		if doc.Find("[role=alert]").Length() == 0 {
			t.Errorf("%s: no message at the top", c.action)
		}
	}
	// Radio buttons have no such mark: their message stands in the form.
	id := b.welcomeJob(t, "radio", "effect = 'unknown'")
	for action, message := range map[string]string{"settle": "Choose how it ended", "fix": "Say what was fixed"} {
		w := cl.post("/jobs/"+id+"/"+action, "reason", "some reason", "reference", "x")
		if w.Code != http.StatusUnprocessableEntity || !strings.Contains(text(page(t, w).Find("form .field-error")), message) {
			t.Errorf("%s without a choice: %d %s", action, w.Code, text(page(t, w).Find("main")))
		}
	}
	if n := query[int](t, b, `SELECT count(*) FROM redrive.audit_entries WHERE dead_job_id IS NOT NULL`); n != 0 {
		t.Errorf("%d entries", n)
	}
}

// TestActsSayWhyTheStateRefuses: a conflict is a page that leads back.
func TestActsSayWhyTheStateRefuses(t *testing.T) {
	t.Parallel()
	b := pageSetup(t)
	cl := b.as(t, rbac.Operator)
	for i, a := range actCases {
		state := "status = 'replaying'"
		if a.action == "note" {
			continue // always allowed
		}
		id := b.welcomeJob(t, fmt.Sprintf("job_%d", i), state)
		path := "/jobs/" + id + "/" + a.action
		for _, w := range []interface {
			Result() *http.Response
		}{cl.get(path), cl.post(path, a.fields...)} {
			if w.Result().StatusCode != http.StatusConflict {
				t.Errorf("%s while replaying: %d", a.action, w.Result().StatusCode)
			}
		}
		doc := page(t, cl.post(path, a.fields...))
		if doc.Find("main a[href='/jobs/"+id+"']").Length() == 0 || doc.Find("main form").Length() != 0 || text(doc.Find("[role=alert]")) == "" {
			t.Errorf("%s: %s", a.action, text(doc.Find("main")))
		}
	}
	id := b.welcomeJob(t, "closed", "status = 'resolved'")
	if doc := page(t, cl.get("/jobs/"+id+"/discard")); doc.Find("a[href='/jobs/"+id+"/reopen']").Length() != 1 {
		t.Errorf("a resolved job doesn't offer to be reopened: %s", text(doc.Find("main")))
	}
	id = b.welcomeJob(t, "again", "generation = 2")
	for _, a := range actCases {
		if a.action == "note" || a.action == "assign" || a.action == "reopen" || a.action == "settle" {
			continue
		}
		if w := cl.post("/jobs/"+id+"/"+a.action, append([]string{"version", "1"}, a.fields...)...); w.Code != http.StatusConflict {
			t.Errorf("%s of a job that died again: %d", a.action, w.Code)
		}
	}
}

// TestActsNeverWithoutEntry breaks the log; then nothing may change.
func TestActsNeverWithoutEntry(t *testing.T) {
	t.Parallel()
	b := pageSetup(t)
	b.takeAll()
	cl := b.as(t, rbac.OnCall)
	cases := append([]actCase{{action: "edit", fields: []string{"reason", "a reason", "version", "1.1", "confirm", "yes", "edit:/to_email", "a@example.com"}},
		{action: "replay", fields: []string{"reason", "a reason", "version", "1.1"}, state: "category = 'transient'"}}, actCases...)
	ids := make([]string, len(cases))
	for i, a := range cases {
		ids[i] = b.welcomeJob(t, fmt.Sprintf("job_%d", i), a.state)
	}
	everything := `SELECT concat((SELECT json_agg(d ORDER BY id) FROM redrive.dead_jobs d), (SELECT json_agg(p ORDER BY p) FROM redrive.payloads p),
		(SELECT json_agg(n) FROM redrive.notes n), (SELECT json_agg(r) FROM redrive.replays r), (SELECT json_agg(x) FROM redrive.batches x),
		(SELECT json_agg(l) FROM redrive.ledger l))`
	before := query[string](t, b, everything)
	exec(t, b, `ALTER TABLE redrive.audit_entries ADD CONSTRAINT broken CHECK (false) NOT VALID`)
	for i, a := range cases {
		if w := cl.post("/jobs/"+ids[i]+"/"+a.action, a.fields...); w.Code != http.StatusInternalServerError {
			t.Errorf("%s with a broken log: %d\n%s", a.action, w.Code, text(page(t, w).Find("main")))
		}
	}
	if after := query[string](t, b, everything); after != before {
		t.Error("something changed without its entry")
	}
	exec(t, b, `ALTER TABLE redrive.audit_entries DROP CONSTRAINT broken`)
	for i, a := range cases { // the same forms are good: it was the log
		if w := cl.post("/jobs/"+ids[i]+"/"+a.action, a.fields...); w.Code != http.StatusSeeOther {
			t.Errorf("%s: %d\n%s", a.action, w.Code, text(page(t, w).Find("main")))
		}
	}
}

func TestUTCMinute(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]time.Time{
		"2026-01-31T16:05":     time.Date(2026, 1, 31, 16, 5, 0, 0, time.UTC),
		"2026-01-31T16:05:09":  time.Date(2026, 1, 31, 16, 5, 9, 0, time.UTC),
		"2026-01-31T16:05Z":    {},
		"2026-01-31 16:05":     {},
		"2026-02-30T16:05":     {},
		"":                     {},
		"99999-01-01T00:00":    {},
		"2026-01-31T16:05<br>": {},
	} {
		got, err := utcMinute("at", in)
		if !got.Equal(want) || (err == nil) == want.IsZero() {
			t.Errorf("%q: %v, %v", in, got, err)
		}
	}
}
