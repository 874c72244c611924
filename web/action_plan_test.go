package web

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/PuerkitoBio/goquery"

	"github.com/redrive-dlq/redrive/rbac"
)

func (b *testBundle) batchCount(t *testing.T) int {
	t.Helper()
	return query[int](t, b, `SELECT count(*) FROM redrive.batches`)
}

// Rows are ticked in the list's own form, which a browser sends without
// scripts; the filter stays in the address all the way.
func TestJobListSelects(t *testing.T) {
	t.Parallel()
	b := planSetup(t)
	var ids []string
	for i := range 3 {
		ids = append(ids, b.dead(t, "send_welcome_email", "wel_"+strconv.Itoa(i), ""))
	}
	cl := b.as(t, rbac.Operator)
	form := cl.open(t, "/jobs?type=send_welcome_email&env=production", http.StatusOK).Find("form[data-selecting]")
	if form.AttrOr("action", "") != "/batches/new" || form.AttrOr("method", "") != "get" || form.Find("input[type=checkbox][name=ids]").Length() != 3 {
		t.Fatalf("the list can't select: %s", text(form))
	}
	all := form.Find("button[name=select][value=all]")
	says(t, all, "Plan a replay of all 3 matching")
	query := url.Values{"q": {form.Find("input[name=q]").AttrOr("value", "")}}
	if query.Get("q") != "env:production status:open type:send_welcome_email" {
		t.Errorf("all that match means %q", query.Get("q"))
	}
	query.Set("select", "all")
	asked := cl.open(t, "/batches/new?"+query.Encode(), http.StatusOK).Find("main form")
	says(t, asked, "all 3 jobs that match", query.Get("q"), "Planning sends nothing", "Plan a replay of all 3 jobs that match")
	if back := asked.Find(".act-foot a").AttrOr("href", ""); back != "/jobs?"+(url.Values{"q": query["q"]}).Encode() {
		t.Errorf("the way back leads to %q", back)
	}
	query["ids"], query["select"] = ids[:2], []string{"rows"}
	asked = cl.open(t, "/batches/new?"+query.Encode(), http.StatusOK).Find("main form")
	says(t, asked, "2 selected jobs")
	if asked.Find("input[name=ids]").Length() != 2 || asked.Find("input[name=q]").Length() != 0 {
		t.Error("the form doesn't carry the two rows alone")
	}
	if b.batchCount(t) != 0 {
		t.Error("asking planned a batch")
	}
	doc := cl.send(t, asked, "reason", "the provider is back")
	says(t, doc.Find("main"), "The plan is being made. Nothing is sent.", "is being planned, production")
	if doc.Find("main[data-live]").Length() != 1 {
		t.Error("the page of a plan that is being made doesn't follow it")
	}
	if n := b.batchCount(t); n != 1 {
		t.Errorf("%d batches", n)
	}
}

// Who may not plan is offered neither ticks nor buttons.
func TestJobListOfAViewer(t *testing.T) {
	t.Parallel()
	b := planSetup(t)
	b.dead(t, "send_welcome_email", "wel_1", "")
	doc := b.as(t, rbac.Viewer).open(t, "/jobs", http.StatusOK)
	if doc.Find("form[data-selecting], input[name=ids]").Length() != 0 || doc.Find("tr[data-row]").Length() != 1 {
		t.Error("a viewer may tick jobs")
	}
}

// A selection that is no selection makes no batch, and says why.
func TestSelectionIsRefused(t *testing.T) {
	t.Parallel()
	b := planSetup(t)
	id := b.dead(t, "send_welcome_email", "wel_1", "")
	cl := b.as(t, rbac.Operator)
	staging := b.grant(t, rbac.Grant{Role: rbac.Operator, Environment: "staging"})
	for name, try := range map[string]struct {
		cl     *client
		pairs  []string
		status int
		says   string
	}{
		"nothing":        {cl, nil, http.StatusUnprocessableEntity, "Nothing is selected"},
		"empty filter":   {cl, []string{"q", " "}, http.StatusUnprocessableEntity, "Nothing is selected"},
		"no match":       {cl, []string{"q", "type:no_such_type"}, http.StatusUnprocessableEntity, "No job that you may see matches"},
		"mistake":        {cl, []string{"q", "typ:send_welcome_email"}, http.StatusUnprocessableEntity, "typ"},
		"no id":          {cl, []string{"ids", "1 OR 1=1"}, http.StatusUnprocessableEntity, "no valid id"},
		"gone":           {cl, []string{"ids", id, "ids", "999999"}, http.StatusUnprocessableEntity, "1 of the 2 selected jobs"},
		"elsewhere's":    {staging, []string{"ids", id}, http.StatusUnprocessableEntity, "aren't there, or not yours to see"},
		"secret":         {cl, []string{"q", "key:" + "4111111111111111"}, http.StatusUnprocessableEntity, "looks like a secret"},
		"no reason":      {cl, []string{"ids", id, "reason", " "}, http.StatusUnprocessableEntity, "Give a reason"},
		"viewer":         {b.as(t, rbac.Viewer), []string{"ids", id}, http.StatusForbidden, "doesn't allow"},
		"asked of three": {cl, []string{"select", "rows"}, http.StatusUnprocessableEntity, "Nothing is selected"},
	} {
		pairs := try.pairs
		if !strings.Contains(strings.Join(pairs, " "), "reason") {
			pairs = append(pairs, "reason", "the provider is back")
		}
		w := try.cl.post("/batches/new", pairs...)
		if w.Code != try.status || !strings.Contains(text(page(t, w).Find("main")), try.says) {
			t.Errorf("%s: %d, %s", name, w.Code, text(page(t, w).Find("main")))
		}
	}
	for _, path := range []string{"/batches/new", "/batches/new?select=rows", "/batches/new?select=rows&q=status:open", "/batches/new?q=type:no_such_type"} {
		doc := cl.open(t, path, http.StatusUnprocessableEntity)
		if doc.Find("main form").Length() != 0 || doc.Find("main [role=alert]").Length() != 1 {
			t.Errorf("%s offers to plan nothing", path)
		}
	}
	if n := b.batchCount(t); n != 0 {
		t.Errorf("%d batches were made", n)
	}
}

// Each environment and type becomes a batch of its own; a page leads to each.
func TestSelectionOfSeveralTypes(t *testing.T) {
	t.Parallel()
	b := planSetup(t)
	b.dead(t, "send_welcome_email", "wel_1", "")
	b.dead(t, "charge_card", "ch_1", "")
	cl := b.as(t, rbac.OnCall)
	asked := cl.open(t, "/batches/new?select=all&q=status:open", http.StatusOK).Find("main form")
	doc := cl.send(t, asked, "reason", "both providers are back")
	says(t, doc.Find("main"), "2 plans of one selection", "2 plans are being made. Nothing is sent.")
	var types []string
	doc.Find("tr[data-row] a[data-open]").Each(func(_ int, a *goquery.Selection) {
		types = append(types, text(a))
		cl.open(t, a.AttrOr("href", ""), http.StatusOK)
	})
	if strings.Join(types, " ") != "charge_card send_welcome_email" {
		t.Errorf("the page leads to %v", types)
	}
	// Another's numbers, and no numbers, show nothing.
	staging := b.grant(t, rbac.Grant{Role: rbac.Operator, Environment: "staging"})
	if staging.open(t, "/batches/made?ids=1&ids=2&ids=x&ids=-1", http.StatusOK).Find("tr[data-row]").Length() != 0 {
		t.Error("batches out of scope are shown")
	}
}
