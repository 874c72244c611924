package web

import (
	"net/http"
	"strings"
	"testing"

	"github.com/PuerkitoBio/goquery"

	"github.com/redrive-dlq/redrive/rbac"
)

// inputs are the fields of a page's form as a browser would send them.
func inputs(doc *goquery.Document) (fields []string) {
	doc.Find("main form[method=post] input[name], main form[method=post] textarea[name]").Each(func(_ int, s *goquery.Selection) {
		name, _ := s.Attr("name")
		value, ok := s.Attr("value")
		if !ok {
			value = s.Text()
		}
		fields = append(fields, name, value)
	})
	return fields
}

func replaced(fields []string, name, value string) []string {
	out := append([]string{}, fields...)
	for i := 0; i < len(out); i += 2 {
		if out[i] == name {
			out[i+1] = value
		}
	}
	return out
}

// oddPayload has bytes that no JSON library would write again.
const oddPayload = `{ "send_id":"snd_1" , "to_email" : "alex@@example.com","n":1.50,  "api_key":"sk-` + canary + `" }`

func TestEditInTwoSteps(t *testing.T) {
	t.Parallel()
	b := pageSetup(t)
	document := strings.Replace(welcome(t, map[string]any{"payload": "PAYLOAD", "job_id": "wel_1"}), `"PAYLOAD"`, oddPayload, 1)
	id := b.capture(t, document)[0]
	cl := b.as(t, rbac.Operator)
	path := "/jobs/" + id + "/edit"
	doc := cl.open(t, path, http.StatusOK)
	html, _ := doc.Html()
	if strings.Contains(html, "alex@@") || strings.Contains(html, canary) || !strings.Contains(html, "a•••@@example.com") {
		t.Errorf("the form shows what is hidden, or not its shape:\n%s", text(doc.Find("main")))
	}
	form := inputs(doc)
	w := cl.post(path, replaced(form, "reason", "two at signs")...)
	if w.Code != http.StatusUnprocessableEntity || !strings.Contains(text(page(t, w).Find("[role=alert]")), "Nothing is different") {
		t.Errorf("nothing changed: %d %s", w.Code, text(page(t, w).Find("main")))
	}
	typed := replaced(form, "edit:/to_email", "alex@example.com")
	w = cl.post(path, typed...)
	if doc := page(t, w); w.Code != http.StatusUnprocessableEntity || doc.Find("#reason[aria-invalid=true]").Length() != 1 || doc.Find("input[value='alex@example.com']").Length() != 1 {
		t.Errorf("without a reason: %d %s", w.Code, text(doc.Find("main")))
	}
	w = cl.post(path, replaced(typed, "reason", "two at signs")...)
	diff := page(t, w)
	if w.Code != http.StatusOK || diff.Find("tr.gone").Length() != 1 || diff.Find("tr.come").Length() != 1 || strings.Contains(text(diff.Find("table")), "alex@") {
		t.Fatalf("the difference: %d %s", w.Code, text(diff.Find("main")))
	}
	if n := query[int](t, b, `SELECT count(*) FROM redrive.payloads`); n != 1 {
		t.Errorf("saved before the difference was confirmed: %d versions", n)
	}
	w = cl.post(path, inputs(diff)...)
	if w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/jobs/"+id {
		t.Fatalf("save: %d\n%s", w.Code, text(page(t, w).Find("main")))
	}
	raw := query[[]byte](t, b, `SELECT substr(bytes, 2) FROM redrive.payloads WHERE version = 2`)
	if want := strings.Replace(oddPayload, "alex@@example.com", "alex@example.com", 1); string(raw) != want {
		t.Errorf("saved %s, want %s", raw, want)
	}
	after := cl.open(t, "/jobs/"+id, http.StatusOK)
	if html, _ := after.Html(); after.Find("a[href='/jobs/"+id+"/replay']").Length() == 0 || strings.Contains(html, "alex@example.com") {
		t.Errorf("the job's page: %s", text(after.Find("main")))
	}
	// The same confirmation again was made from another version.
	if w := cl.post(path, inputs(diff)...); w.Code != http.StatusConflict {
		t.Errorf("again: %d", w.Code)
	}
	log := query[string](t, b, `SELECT string_agg(body, '') FROM redrive.audit_entries`)
	if strings.Contains(log, "alex@") || !strings.Contains(log, "/to_email") || strings.Contains(b.log.String(), "alex@example.com") {
		t.Errorf("a log holds the value, or not its place: %s", log)
	}
}

func TestEditShowsFaultsAtTheirField(t *testing.T) {
	t.Parallel()
	b := pageSetup(t)
	id := b.welcomeJob(t, "wel_1", "")
	cl := b.as(t, rbac.Operator)
	path := "/jobs/" + id + "/edit"
	for _, confirm := range []string{"", "yes"} {
		w := cl.post(path, "version", "1.1", "reason", "two at signs", "confirm", confirm, "edit:/to_email", "a•••@@example.com")
		doc := page(t, w)
		if w.Code != http.StatusUnprocessableEntity || doc.Find("#edit-0[aria-invalid=true]").Length() != 1 || !strings.Contains(text(doc.Find("main")), "It is the mask") {
			t.Errorf("the mask as value: %d %s", w.Code, text(doc.Find("main")))
		}
		w = cl.post(path, "version", "1.1", "reason", "two at signs", "confirm", confirm, "edit:/send_id", "other")
		if w.Code != http.StatusUnprocessableEntity || !strings.Contains(text(page(t, w).Find("[role=alert]")), "/send_id may not be edited") {
			t.Errorf("a place that isn't allowed: %d %s", w.Code, text(page(t, w).Find("main")))
		}
		w = cl.post(path, "version", "1.2", "reason", "two at signs", "confirm", confirm, "edit:/to_email", "a@example.com")
		if w.Code != http.StatusConflict {
			t.Errorf("another version: %d", w.Code)
		}
	}
	none := b.welcomeJob(t, "wel_2", "job_type = 'charge_card'")
	if doc := cl.open(t, "/jobs/"+none+"/edit", http.StatusOK); doc.Find("main form").Length() != 0 {
		t.Error("a type without editable places has a form")
	}
	if n := query[int](t, b, `SELECT count(*) FROM redrive.payloads WHERE version > 1`); n != 0 {
		t.Errorf("%d versions saved", n)
	}
}
