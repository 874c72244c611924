package web

import (
	"net/http"
	"strings"
	"testing"

	"github.com/redrive-dlq/redrive/rbac"
)

func (b *testBundle) holdsInForce(t *testing.T) string {
	t.Helper()
	return query[string](t, b, `
		SELECT coalesce(string_agg(concat_ws('/', environment, job_type, destination, reason), ' ' ORDER BY id), '')
		FROM redrive.holds
		WHERE lifted_at IS NULL`)
}

// A hold is one press without a reason; every page of its environment says so
// until it is lifted with one.
func TestHoldOneClickThenExplainedThenLifted(t *testing.T) {
	t.Parallel()
	b := pageSetup(t)
	cl := b.as(t, rbac.Operator)
	b.capture(t, welcome(t, nil))
	id := b.ran(t, "running", map[string]int{"ready": 3})
	form := cl.open(t, "/?env=production", http.StatusOK).Find("#holds form[action='/holds']")
	if form.Length() != 1 || !strings.Contains(text(form), "Hold all replays in production") || form.Find("textarea, input[required]").Length() != 0 {
		t.Fatalf("the overview offers %q", text(form))
	}
	next, _ := form.Find("input[name=next]").Attr("value")
	w := cl.post("/holds", "environment", "production", "next", next)
	if w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/?env=production" || b.holdsInForce(t) != "production///" {
		t.Fatalf("%d to %q: %s\n%s", w.Code, w.Header().Get("Location"), b.holdsInForce(t), w.Body)
	}
	doc := cl.open(t, "/?env=production", http.StatusOK)
	if !strings.Contains(text(doc.Find("main [role=status]")), "All replays in production are held.") || doc.Find("main [role=status] a[href='/holds/1/explain']").Length() != 1 {
		t.Errorf("the message is %q", text(doc.Find("main [role=status]")))
	}
	for path, shown := range map[string]bool{"/": true, "/jobs?env=production": true, "/jobs?env=staging": false, "/batches/" + id: true, "/audit": false, "/holds": true, "/account": true} {
		if path == "/audit" {
			continue // an operator can't open it
		}
		banner := text(cl.open(t, path, http.StatusOK).Find("header .held"))
		if strings.Contains(banner, "All replays in production are held since ") != shown {
			t.Errorf("%s says %q, want it %v", path, banner, shown)
		}
	}
	if got := text(cl.open(t, "/batches/"+id, http.StatusOK).Find("#live")); !strings.Contains(got, "Nothing of this batch leaves until the hold is lifted.") {
		t.Errorf("the batch doesn't say what it waits for: %s", got)
	}
	// Once more is the same hold.
	if w := cl.post("/holds", "environment", "production"); w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/holds" || b.entryCount(t, "hold.place") != 1 {
		t.Errorf("twice: %d to %q, %d entries", w.Code, w.Header().Get("Location"), b.entryCount(t, "hold.place"))
	}
	row := cl.open(t, "/holds", http.StatusOK).Find(".hold-row")
	if row.Length() != 1 || !strings.Contains(text(row), "no reason yet") || !strings.Contains(text(row), "1 batch waits") {
		t.Errorf("the list says %q", text(row))
	}
	if w := cl.post("/holds/1/explain", "reason", ""); w.Code != http.StatusUnprocessableEntity || page(t, w).Find("#reason[aria-invalid=true]").Length() != 1 {
		t.Errorf("explained without words: %d", w.Code)
	}
	if w := cl.post("/holds/1/explain", "reason", "double <b>charges</b>"); w.Code != http.StatusSeeOther || b.holdsInForce(t) != "production///double <b>charges</b>" {
		t.Errorf("explained: %d, %s", w.Code, b.holdsInForce(t))
	}
	doc = cl.open(t, "/jobs", http.StatusOK)
	if banner := doc.Find("header .held"); !strings.Contains(text(banner), "double <b>charges</b>") || banner.Find("b").Length() != 0 {
		t.Errorf("the banner says %q", text(banner))
	}
	if w := cl.post("/holds/1/explain", "reason", "another reason"); w.Code != http.StatusConflict {
		t.Errorf("explained twice: %d", w.Code)
	}
	if w := cl.post("/holds/1/lift", "reason", " "); w.Code != http.StatusUnprocessableEntity || b.entryCount(t, "hold.lift") != 0 {
		t.Errorf("lifted without a reason: %d", w.Code)
	}
	if got := text(cl.open(t, "/holds/1/lift", http.StatusOK).Find("main form")); !strings.Contains(got, "begins to leave within a second") {
		t.Errorf("lifting says %q", got)
	}
	if w := cl.post("/holds/1/lift", "reason", "the provider refunded"); w.Code != http.StatusSeeOther || b.holdsInForce(t) != "" || b.entryCount(t, "hold.lift") != 1 {
		t.Errorf("lifted: %d, %s", w.Code, b.holdsInForce(t))
	}
	if cl.open(t, "/jobs", http.StatusOK).Find("header .held").Length() != 0 {
		t.Error("the banner outlives its hold")
	}
	for _, method := range []string{"GET", "POST"} {
		if w := cl.do(method, "/holds/1/lift", formType(Route{Method: method, Audience: Browser}), ""); w.Code != http.StatusNotFound {
			t.Errorf("%s of a lifted hold: %d", method, w.Code)
		}
	}
}

func TestHoldOfTypeAndDestination(t *testing.T) {
	t.Parallel()
	b := pageSetup(t)
	cl := b.as(t, rbac.Approver)
	offers := cl.open(t, "/holds?env=production", http.StatusOK).Find("form[action='/holds']")
	if offers.Length() != 3 || offers.Find("select[name=job_type] option[value=charge_card]").Length() != 1 || offers.Find("select[name=destination] option[value='http://127.0.0.1:9010/jobs']").Length() != 1 {
		t.Fatalf("%d forms: %s", offers.Length(), text(offers))
	}
	for _, fields := range [][]string{{"job_type", "charge_card"}, {"destination", "http://127.0.0.1:9010/jobs"}} {
		if w := cl.post("/holds", append([]string{"environment", "production"}, fields...)...); w.Code != http.StatusSeeOther {
			t.Errorf("%v: %d\n%s", fields, w.Code, w.Body)
		}
	}
	if got := b.holdsInForce(t); got != "production/charge_card// production//http://127.0.0.1:9010/jobs/" {
		t.Errorf("in force: %s", got)
	}
	banner := text(cl.open(t, "/jobs", http.StatusOK).Find("header .held"))
	if !strings.Contains(banner, "All replays of charge_card in production are held") || !strings.Contains(banner, "All replays to http://127.0.0.1:9010/jobs in production are held") {
		t.Errorf("the banner says %q", banner)
	}
	if cl.open(t, "/holds?env=production", http.StatusOK).Find("select[name=job_type] option[value=charge_card]").Length() != 0 {
		t.Error("what is held is offered again")
	}
}

func TestHoldsAreRefused(t *testing.T) {
	t.Parallel()
	b := pageSetup(t)
	cl := b.as(t, rbac.Operator)
	for name, fields := range map[string][]string{
		"nothing": nil, "unknown environment": {"environment", "moon"}, "unknown type": {"environment", "production", "job_type", "nope"},
		"unknown destination": {"environment", "production", "destination", "http://elsewhere.test"},
		"both":                {"environment", "production", "job_type", "charge_card", "destination", "http://127.0.0.1:9010/jobs"},
		"short reason":        {"environment", "production", "reason", "x"},
	} {
		if w := cl.post("/holds", fields...); w.Code != http.StatusUnprocessableEntity {
			t.Errorf("%s: %d", name, w.Code)
		}
	}
	if w := cl.post("/holds", "environment", "production", "next", "https://evil.test/"); w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/" {
		t.Errorf("leads to %q", w.Header().Get("Location"))
	}
	// One whose right is limited to a type holds that type, and no more.
	limited := b.grant(t, rbac.Grant{Role: rbac.Operator, JobType: "charge_card"})
	if w := limited.post("/holds", "environment", "staging"); w.Code != http.StatusForbidden {
		t.Errorf("a person limited to a type holds an environment: %d", w.Code)
	}
	if w := limited.post("/holds/1/lift", "reason", "because I can"); w.Code != http.StatusForbidden && w.Code != http.StatusNotFound {
		t.Errorf("a person limited to a type lifts all of production: %d", w.Code)
	}
	doc := limited.open(t, "/holds", http.StatusOK)
	if options := doc.Find("form[action='/holds'] option[value]:not([value=''])"); options.Length() != 1 || text(options) != "charge_card" {
		t.Errorf("they are offered %q", text(options))
	}
	viewer := b.as(t, rbac.Viewer)
	if doc := viewer.open(t, "/holds", http.StatusOK); doc.Find("main form, main a[href$='/lift']").Length() != 0 || doc.Find(".hold-row").Length() != 1 {
		t.Error("a viewer is offered to hold or lift, or doesn't see what is held")
	}
	if w := viewer.post("/holds", "environment", "staging"); w.Code != http.StatusForbidden {
		t.Errorf("a viewer holds: %d", w.Code)
	}
	elsewhere := b.grant(t, rbac.Grant{Role: rbac.Operator, Environment: "staging"})
	if doc := elsewhere.open(t, "/holds", http.StatusOK); doc.Find(".hold-row, header .held").Length() != 0 {
		t.Error("someone of staging is told of production's holds")
	}
	if w := elsewhere.get("/holds/1/lift"); w.Code != http.StatusNotFound {
		t.Errorf("out of scope: %d", w.Code)
	}
	if got := b.holdsInForce(t); got != "production///" {
		t.Errorf("in force: %s", got)
	}
}
