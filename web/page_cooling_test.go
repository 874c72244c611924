package web

import (
	"net/http"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/redrive-dlq/redrive/dlq/jobtype"
	"github.com/redrive-dlq/redrive/dlq/replay"
	"github.com/redrive-dlq/redrive/rbac"
)

// A batch that goes without the second person it would have needed says so to
// everybody: before it is confirmed, on its page, in the lists and where its type
// is shown.
func TestNoSecondPersonIsShownEverywhere(t *testing.T) {
	t.Parallel()
	b := planSetup(t)
	catalogue, err := jobtype.Load(fstest.MapFS{"types.yaml": &fstest.MapFile{Data: []byte("cooling_off: [production]\n" + pageCatalogue +
		strings.Replace(planTypes, "{approval_above: 3, canary: 2}", "{approval_above: 1, canary: 1}", 1))}}, "types.yaml")
	if err != nil {
		t.Fatal(err)
	}
	b.server.config.Types = func() *jobtype.Catalogue { return catalogue }
	b.server.config.Replays.Types = b.server.config.Types
	ids := b.dead(t, "send_sms", "a", "") + "," + b.dead(t, "send_sms", "b", "")
	oncall, approver, viewer := b.as(t, rbac.OnCall), b.as(t, rbac.Approver), b.as(t, rbac.Viewer)
	form := []string{"reason", "the provider is back"}
	for _, id := range strings.Split(ids, ",") {
		form = append(form, "ids", id)
	}
	w := oncall.post("/batches/new", form...)
	batch := strings.TrimPrefix(w.Header().Get("Location"), "/batches/")
	b.freeze(t, replay.WorkPlan, batch)
	sees := func(cl *client, path string, status int, want string) {
		t.Helper()
		if got := text(cl.open(t, path, status).Find("main")); !strings.Contains(got, want) {
			t.Errorf("%s doesn't say %q: %s", path, want, got)
		}
	}
	const instead = "No second person is asked in production: instead it waits 30 min at least"
	sees(oncall, "/batches/"+batch+"/review", http.StatusOK, instead)
	hash := query[string](t, b, `SELECT plan_hash FROM redrive.batches`)
	if w := oncall.post("/batches/"+batch+"/review", "plan_hash", hash, "reason", "the provider is back", "when", "now", "rate_per_minute", "1", "canary", "0", "accept_repeat", "accept"); w.Code != http.StatusSeeOther {
		t.Fatalf("review: %d: %s", w.Code, text(page(t, w).Find("main")))
	}
	sees(oncall, "/batches/"+batch+"/confirm", http.StatusOK, instead)
	doc := oncall.open(t, "/batches/"+batch+"/confirm", http.StatusOK)
	oncall.send(t, doc.Find("form:has(input[name=nonce])"), "phrase", text(doc.Find("#the-phrase")))
	if got := query[string](t, b, `SELECT state FROM redrive.batches`); got != "scheduled" {
		t.Fatalf("%s, want scheduled", got)
	}
	sees(viewer, "/batches/"+batch, http.StatusOK, "No second person agreed to this")
	sees(viewer, "/batches/"+batch, http.StatusOK, "None: a wait of 30 min stood in")
	sees(viewer, "/batches", http.StatusOK, "no second person")
	sees(viewer, "/", http.StatusOK, "no second person; starts at")
	sees(viewer, "/types", http.StatusOK, "a second person above 1 a day; in production a wait of 30 min instead")
	sees(viewer, "/types/send_sms", http.StatusOK, "in production a wait of 30 min instead")
	sees(approver, "/batches/"+batch+"/cancel", http.StatusOK, "Cancel")
}
