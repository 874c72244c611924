package web

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/PuerkitoBio/goquery"

	"github.com/redrive-dlq/redrive/dlq/jobtype"
)

// planTypes join the types of pageCatalogue: one that nothing keeps from
// running twice, whose batches soon take a second person, and one whose jobs
// grow old.
const planTypes = `
  send_sms:
    owner: growth
    side_effects: [{kind: write, text: sends one text message}]
    idempotency: {by: none}
    rate: {per_minute: 60}
    batch: {approval_above: 3, canary: 2}
    targets:
      production: {http: {url: http://127.0.0.1:9010/sms}, outcome_within: 15m}
  send_coupon:
    owner: growth
    side_effects: [{kind: email, text: sends one coupon}]
    idempotency: {by: key, scope: coupon}
    valid_for: 1h
    targets:
      production: {http: {url: http://127.0.0.1:9010/jobs}, outcome_within: 15m}
`

// planSetup serves a console whose types differ in what a batch of them takes.
func planSetup(t *testing.T) *testBundle {
	t.Helper()
	b := pageSetup(t)
	b.takeAll()
	catalogue, err := jobtype.Load(fstest.MapFS{"types.yaml": &fstest.MapFile{Data: []byte(pageCatalogue + planTypes)}}, "types.yaml")
	if err != nil {
		t.Fatal(err)
	}
	b.server.config.Types = func() *jobtype.Catalogue { return catalogue }
	b.server.config.Replays.Types = b.server.config.Types
	return b
}

// dead captures a job of a type that may be replayed unless state says else.
func (b *testBundle) dead(t *testing.T, jobType, name, state string) string {
	t.Helper()
	id := b.capture(t, welcome(t, map[string]any{"job_type": jobType, "job_id": name, "idempotency_key": jobType + ":" + name}))[0]
	exec(t, b, `UPDATE redrive.dead_jobs SET category = 'transient' WHERE id = $1::bigint`, id)
	if state != "" {
		exec(t, b, `UPDATE redrive.dead_jobs SET `+state+` WHERE id = $1::bigint`, id)
	}
	return id
}

// send fills in the page's only form, keeps what stands in it unless pairs
// change it, and sends it as a browser without scripts would.
func (cl *client) send(t *testing.T, form *goquery.Selection, pairs ...string) *goquery.Document {
	t.Helper()
	path, body := filled(t, form, pairs...)
	w := cl.do("POST", path, "application/x-www-form-urlencoded", body)
	if w.Code == http.StatusSeeOther {
		return cl.open(t, w.Header().Get("Location"), http.StatusOK)
	}
	return page(t, w)
}

func filled(t *testing.T, form *goquery.Selection, pairs ...string) (path, body string) {
	t.Helper()
	if form.Length() != 1 {
		t.Fatalf("%d forms", form.Length())
	}
	values := url.Values{}
	form.Find("input[name], textarea[name], select[name]").Each(func(_ int, field *goquery.Selection) {
		name, kind := field.AttrOr("name", ""), field.AttrOr("type", "text")
		_, checked := field.Attr("checked")
		switch {
		case goquery.NodeName(field) == "textarea":
			values.Add(name, field.Text())
		case goquery.NodeName(field) == "select":
			values.Add(name, field.Find("option[selected]").AttrOr("value", ""))
		case kind != "radio" && kind != "checkbox" || checked:
			values.Add(name, field.AttrOr("value", ""))
		}
	})
	for i := 0; i+1 < len(pairs); i += 2 {
		values.Set(pairs[i], pairs[i+1])
	}
	return form.AttrOr("action", ""), values.Encode()
}

// says checks that a part of a page says all of it.
func says(t *testing.T, part *goquery.Selection, wants ...string) {
	t.Helper()
	got := text(part)
	for _, want := range wants {
		if !strings.Contains(got, want) {
			t.Errorf("%q lacks %q", got, want)
		}
	}
}
