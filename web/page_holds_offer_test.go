package web

import (
	"net/http"
	"testing"

	"github.com/PuerkitoBio/goquery"

	"github.com/redrive-dlq/redrive/rbac"
)

// The pages of types and targets hold at one press too, and come back there.
func TestHoldFromTypesAndTargets(t *testing.T) {
	t.Parallel()
	b := pageSetup(t)
	cl := b.as(t, rbac.Operator)
	for path, want := range map[string]string{
		"/types?env=production":   "production/charge_card//",
		"/targets?env=production": "production//http://127.0.0.1:9010/jobs/",
	} {
		form := cl.open(t, path, http.StatusOK).Find("main form[action='/holds']")
		if path == "/types?env=production" {
			form = form.FilterFunction(func(_ int, f *goquery.Selection) bool {
				return f.Find("[name=job_type][value=charge_card]").Length() == 1
			})
		}
		if form.Length() != 1 {
			t.Fatalf("%s offers %d buttons", path, form.Length())
		}
		var fields []string
		form.Find("input[type=hidden]").Each(func(_ int, input *goquery.Selection) {
			name, _ := input.Attr("name")
			value, _ := input.Attr("value")
			fields = append(fields, name, value)
		})
		if w := cl.post("/holds", fields...); w.Code != http.StatusSeeOther || w.Header().Get("Location") != path {
			t.Errorf("%s: %d to %q", path, w.Code, w.Header().Get("Location"))
		}
		if got := b.holdsInForce(t); got != want {
			t.Errorf("%s holds %q, want %q", path, got, want)
		}
		if n := cl.open(t, path, http.StatusOK).Find("main form[action='/holds'] [value='charge_card'], main form[action='/holds'] [name=destination]").Length(); n != 0 {
			t.Errorf("%s offers again what is held", path)
		}
		if b.as(t, rbac.Viewer).open(t, path, http.StatusOK).Find("main form[action='/holds']").Length() != 0 {
			t.Errorf("%s offers a viewer to hold", path)
		}
		exec(t, b, `UPDATE redrive.holds SET lifted_at = now()`)
	}
}
