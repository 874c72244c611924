package web

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/redrive-dlq/redrive/dlq/replay"
	"github.com/redrive-dlq/redrive/rbac"
)

// freeze does the work that the engine does in a whole console.
func (b *testBundle) freeze(t *testing.T, w replay.Work, batch string) {
	t.Helper()
	id := query[int64](t, b, `SELECT id FROM redrive.batches WHERE id::text = '`+batch+`'`)
	for done := false; !done; {
		var err error
		if done, err = b.server.config.Replays.Do(context.Background(), w, id); err != nil {
			t.Fatal(err)
		}
	}
}

// TestFromSelectionToConfirmation walks the forms as a browser without scripts
// sends them.
func TestFromSelectionToConfirmation(t *testing.T) {
	t.Parallel()
	b := pageSetup(t)
	b.takeAll()
	for _, id := range []string{"a", "b", "c"} {
		b.welcomeJob(t, id, "category = 'transient', idempotency_key = '"+id+"'")
	}
	b.welcomeJob(t, "bad", "category = 'invalid_input', idempotency_key = 'bad'")
	oncall := b.as(t, rbac.OnCall)

	list := oncall.open(t, "/jobs", http.StatusOK)
	if n := list.Find("input[type=checkbox][name=ids]").Length(); n != 4 {
		t.Fatalf("%d rows can be ticked, want 4", n)
	}
	q, _ := list.Find("form[action='/batches/new'] input[name=q]").Attr("value")
	if q == "" {
		t.Fatal("the list's filter isn't in its form")
	}
	doc := oncall.open(t, "/batches/new?select=all&q="+strings.ReplaceAll(q, ":", "%3A"), http.StatusOK)
	if !strings.Contains(text(doc.Find("h1")), "all 4 jobs that match") {
		t.Errorf("titled %q", text(doc.Find("h1")))
	}
	if w := oncall.post("/batches/new", "q", q, "reason", ""); w.Code != http.StatusUnprocessableEntity {
		t.Errorf("without a reason: %d", w.Code)
	}
	for what, form := range map[string][]string{"nothing": {"reason", "because"}, "no match": {"q", "type:nobody", "reason", "because"}, "a bad id": {"ids", "x", "reason", "because"}} {
		if w := oncall.post("/batches/new", form...); w.Code != http.StatusUnprocessableEntity {
			t.Errorf("%s: %d", what, w.Code)
		}
	}
	if n := query[int](t, b, `SELECT count(*) FROM redrive.batches`); n != 0 {
		t.Fatalf("%d batches of refused plans", n)
	}
	w := oncall.post("/batches/new", "q", q, "reason", "mailer 2.4.1 is out")
	batch := strings.TrimPrefix(w.Header().Get("Location"), "/batches/")
	if w.Code != http.StatusSeeOther || batch == "" {
		t.Fatalf("plan: %d to %q", w.Code, w.Header().Get("Location"))
	}
	if got := text(oncall.open(t, "/batches/"+batch, http.StatusOK).Find("main")); !strings.Contains(got, "Being planned") {
		t.Errorf("while it is planned: %s", got)
	}
	b.freeze(t, replay.WorkPlan, batch)
	plan := oncall.open(t, "/batches/"+batch, http.StatusOK)
	for _, want := range []string{"3 of 4 jobs of send_welcome_email can be replayed", "Invalid input", "may send 3 e-mails"} {
		if !strings.Contains(text(plan.Find("main")), want) {
			t.Errorf("the plan lacks %q: %s", want, text(plan.Find("main")))
		}
	}
	if plan.Find("main a[href='/batches/"+batch+"/fix']").Length() == 0 {
		t.Error("no way to declare a fix")
	}
	if w := oncall.post("/batches/"+batch+"/fix", "kind", "ticket", "ref", "OPS-7", "reason", "the address form is mended"); w.Code != http.StatusSeeOther {
		t.Fatalf("fix: %d", w.Code)
	}
	b.freeze(t, replay.WorkPlan, batch)

	review := oncall.open(t, "/batches/"+batch+"/review", http.StatusOK)
	hash, _ := review.Find("input[name=plan_hash]").Attr("value")
	rate, _ := review.Find("input[name=rate_per_minute]").Attr("value")
	if w := oncall.post("/batches/"+batch+"/review", "plan_hash", hash, "reason", "all is mended", "rate_per_minute", "1000000000", "canary", "1"); w.Code != http.StatusUnprocessableEntity {
		t.Errorf("a rate above the limit: %d", w.Code)
	}
	w = oncall.post("/batches/"+batch+"/review", "plan_hash", hash, "reason", "all is mended", "when", "soon", "rate_per_minute", rate, "canary", "1")
	if w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/batches/"+batch+"/confirm" {
		t.Fatalf("review: %d to %q: %s", w.Code, w.Header().Get("Location"), text(page(t, w).Find("main")))
	}

	confirm := oncall.open(t, "/batches/"+batch+"/confirm", http.StatusOK)
	form := func(phrase string) []string {
		var out []string
		for _, name := range []string{"plan_hash", "review_hash", "nonce"} {
			value, _ := confirm.Find("input[name=" + name + "]").Attr("value")
			out = append(out, name, value)
		}
		return append(out, "phrase", phrase)
	}
	phrase := text(confirm.Find("#the-phrase"))
	if phrase != "replay 4 send_welcome_email in production" {
		t.Errorf("the phrase is %q", phrase)
	}
	if w := oncall.post("/batches/"+batch+"/confirm", form("replay 4 send_welcome_email in staging")...); w.Code != http.StatusUnprocessableEntity {
		t.Errorf("a wrong phrase: %d", w.Code)
	}
	if got := query[string](t, b, `SELECT state FROM redrive.batches`); got != "planned" {
		t.Errorf("%s after a wrong phrase", got)
	}
	if w := oncall.post("/batches/"+batch+"/confirm", form(phrase)...); w.Code != http.StatusSeeOther {
		t.Fatalf("confirm: %d: %s", w.Code, text(page(t, w).Find("main")))
	}
	if w := oncall.post("/batches/"+batch+"/confirm", form(phrase)...); w.Code != http.StatusConflict {
		t.Errorf("the same again: %d", w.Code)
	}
	if got := query[string](t, b, `SELECT state FROM redrive.batches`); got != "scheduled" {
		t.Errorf("%s after the confirmation, want scheduled", got)
	}
	if n := query[int](t, b, `SELECT count(*) FROM redrive.audit_entries WHERE action = 'batch.confirm'`); n != 1 {
		t.Errorf("%d entries of the confirmation", n)
	}
}

// TestSecondPersonSeesTheSame sends money through both hands.
func TestSecondPersonSeesTheSame(t *testing.T) {
	t.Parallel()
	b := pageSetup(t)
	b.takeAll()
	id := b.welcomeJob(t, "ch_1", "category = 'transient', job_type = 'charge_card', key_scope = 'charge', idempotency_key = 'ch_1'")
	oncall, approver, viewer := b.as(t, rbac.OnCall), b.as(t, rbac.Approver), b.as(t, rbac.Viewer)
	w := oncall.post("/batches/new", "ids", id, "reason", "the provider is back")
	batch := strings.TrimPrefix(w.Header().Get("Location"), "/batches/")
	b.freeze(t, replay.WorkPlan, batch)
	hash := query[string](t, b, `SELECT plan_hash FROM redrive.batches`)
	if w := oncall.post("/batches/"+batch+"/review", "plan_hash", hash, "reason", "the provider is back", "when", "now", "rate_per_minute", "1", "canary", "0"); w.Code != http.StatusSeeOther {
		t.Fatalf("review: %d: %s", w.Code, text(page(t, w).Find("main")))
	}
	agree := func(cl *client, path string) int {
		doc := cl.open(t, "/batches/"+batch+path, http.StatusOK)
		var form []string
		for _, name := range []string{"plan_hash", "review_hash", "nonce"} {
			value, _ := doc.Find("input[name=" + name + "]").Attr("value")
			form = append(form, name, value)
		}
		return cl.post("/batches/"+batch+path, append(form, "phrase", text(doc.Find("#the-phrase")))...).Code
	}
	if code := agree(oncall, "/confirm"); code != http.StatusSeeOther {
		t.Fatalf("confirm: %d", code)
	}
	if got := query[string](t, b, `SELECT state FROM redrive.batches`); got != "waiting" {
		t.Fatalf("%s, want waiting for a second person", got)
	}
	if w := oncall.get("/batches/" + batch + "/approve"); w.Code != http.StatusForbidden {
		t.Errorf("the first person's page: %d", w.Code)
	}
	if w := viewer.get("/batches/" + batch + "/approve"); w.Code != http.StatusForbidden {
		t.Errorf("a viewer's page: %d", w.Code)
	}
	doc := approver.open(t, "/batches/"+batch+"/approve", http.StatusOK)
	for _, want := range []string{"asks for a second person", "move money once", "the provider is back"} {
		if !strings.Contains(text(doc.Find("main")), want) {
			t.Errorf("the second person doesn't see %q: %s", want, text(doc.Find("main")))
		}
	}
	if code := agree(approver, "/approve"); code != http.StatusSeeOther {
		t.Fatalf("approve: %d", code)
	}
	if got := query[string](t, b, `SELECT state FROM redrive.batches`); got != "running" {
		t.Errorf("%s after the approval, want running", got)
	}
}
