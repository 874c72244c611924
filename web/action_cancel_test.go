package web

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/rbac"
)

// schedule orders a replay of a new job for half past eleven in the evening.
func (b *testBundle) schedule(t *testing.T, cl *client, name string) (id string) {
	t.Helper()
	id = b.welcomeJob(t, name, "category = 'transient'")
	w := cl.post("/jobs/"+id+"/replay", "version", "1.1", "reason", "when it is quiet", "when", "later", "at", "2026-05-04T23:30")
	if w.Code != http.StatusSeeOther {
		t.Fatalf("%d\n%s", w.Code, w.Body)
	}
	return id
}

func TestCancelTakesAScheduledReplayBack(t *testing.T) {
	t.Parallel()
	b := pageSetup(t)
	b.takeAll()
	cl := b.as(t, rbac.Operator)
	id := b.schedule(t, cl, "wel_1")
	doc := cl.open(t, "/jobs/"+id, http.StatusOK)
	if got := text(doc.Find(".first-line")); !strings.Contains(got, "a replay is scheduled for 2026-05-04 23:30 UTC") {
		t.Errorf("the first line is %q", got)
	}
	if doc.Find("main a[data-action=cancel]").Length() != 1 || doc.Find("main a[data-action=replay]").Length() != 0 {
		t.Error("the job's page must offer to take it back, and no second replay")
	}
	doc = cl.open(t, "/jobs/"+id+"/cancel", http.StatusOK)
	form := doc.Find("main form")
	for _, want := range []string{"It was to be sent at 2026-05-04 23:30 UTC.", "Nothing will be sent; the job is open again", "sends one e-mail to the customer", "Keep the replay, change nothing"} {
		if !strings.Contains(text(form), want) {
			t.Errorf("%q lacks %q", text(form), want)
		}
	}
	version, _ := form.Find("input[name=version]").Attr("value")
	if w := cl.post("/jobs/"+id+"/cancel", "version", version, "reason", " "); w.Code != http.StatusUnprocessableEntity || page(t, w).Find("#reason[aria-invalid=true]").Length() != 1 {
		t.Errorf("without a reason: %d", w.Code)
	}
	if w := cl.post("/jobs/"+id+"/cancel", "version", "999", "reason", "ordered by mistake"); w.Code != http.StatusConflict {
		t.Errorf("another replay than was shown: %d", w.Code)
	}
	w := cl.post("/jobs/"+id+"/cancel", "version", version, "reason", "ordered by mistake")
	if w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/jobs/"+id {
		t.Fatalf("%d to %q\n%s", w.Code, w.Header().Get("Location"), w.Body)
	}
	if got := text(cl.open(t, "/jobs/"+id, http.StatusOK).Find("main")); !strings.Contains(got, "Nothing was sent, and the job is open again") || !strings.Contains(got, "is dead") {
		t.Errorf("afterwards: %s", got)
	}
	if got := query[string](t, b, `SELECT d.status || ' ' || r.outcome FROM redrive.dead_jobs d JOIN redrive.replays r ON r.dead_job_id = d.id`); got != "open cancelled" {
		t.Errorf("the store says %q", got)
	}
	if got := query[string](t, b, `SELECT reason FROM redrive.audit_entries WHERE action = 'replay.cancel'`); got != "ordered by mistake" {
		t.Errorf("the log gives the reason %q", got)
	}
	// Once more: there is none left, which is a conflict and no error.
	for _, w := range []int{cl.get("/jobs/" + id + "/cancel").Code, cl.post("/jobs/"+id+"/cancel", "version", version, "reason", "ordered by mistake").Code} {
		if w != http.StatusConflict {
			t.Errorf("again: %d", w)
		}
	}
}

func TestCancelComesTooLate(t *testing.T) {
	t.Parallel()
	b := pageSetup(t)
	b.takeAll()
	cl := b.as(t, rbac.Operator)
	id := b.schedule(t, cl, "wel_1")
	version, _ := cl.open(t, "/jobs/"+id+"/cancel", http.StatusOK).Find("main form input[name=version]").Attr("value")
	b.advance(21 * time.Hour)
	if n, err := b.server.config.Replays.ReleaseDue(t.Context()); err != nil || n != 1 {
		t.Fatalf("released %d: %v", n, err)
	}
	cl = b.as(t, rbac.Operator) // the session has ended meanwhile
	w := cl.post("/jobs/"+id+"/cancel", "version", version, "reason", "ordered by mistake")
	doc := page(t, w)
	if w.Code != http.StatusConflict || !strings.Contains(text(doc.Find("[role=alert]")), "has left or ended already") || doc.Find("main a[href='/jobs/"+id+"']").Length() == 0 {
		t.Errorf("%d %s", w.Code, text(doc.Find("main")))
	}
	doc = cl.open(t, "/jobs/"+id, http.StatusOK)
	if doc.Find("a[data-action=cancel]").Length() != 0 || !strings.Contains(text(doc.Find(".first-line")), "being replayed now") {
		t.Errorf("a replay that left is offered back: %s", text(doc.Find(".first-line")))
	}
	if got := query[string](t, b, `SELECT state FROM redrive.replays`); got != "released" {
		t.Errorf("the replay is %s", got)
	}
}

func TestCancelTakesTheRightOfTheOrder(t *testing.T) {
	t.Parallel()
	b := pageSetup(t)
	b.takeAll()
	oncall, operator, viewer := b.as(t, rbac.OnCall), b.as(t, rbac.Operator), b.as(t, rbac.Viewer)
	id := b.schedule(t, oncall, "wel_1")
	exec(t, b, `UPDATE redrive.dead_jobs SET job_type = 'charge_card'`)
	exec(t, b, `UPDATE redrive.replays SET job_type = 'charge_card'`)
	for name, cl := range map[string]*client{"an operator, of money": operator, "a viewer": viewer} {
		if cl.open(t, "/jobs/"+id, http.StatusOK).Find("a[data-action=cancel]").Length() != 0 {
			t.Errorf("%s is offered it", name)
		}
		w := cl.post("/jobs/"+id+"/cancel", "version", "1", "reason", "ordered by mistake")
		if cl.get("/jobs/"+id+"/cancel").Code != http.StatusForbidden || w.Code != http.StatusForbidden {
			t.Errorf("%s may take it back: %d", name, w.Code)
		}
	}
	limited := b.grant(t, rbac.Grant{Role: rbac.OnCall, Environment: "staging"})
	if w := limited.get("/jobs/" + id + "/cancel"); w.Code != http.StatusNotFound {
		t.Errorf("out of scope: %d, want %s", w.Code, problem.NotFound)
	}
	oncall.open(t, "/jobs/"+id+"/cancel", http.StatusOK)
	if got := query[string](t, b, `SELECT state FROM redrive.replays`); got != "pending" {
		t.Errorf("the replay is %s", got)
	}
}

func TestJobSaysWhatAReplayWaitsFor(t *testing.T) {
	t.Parallel()
	b := pageSetup(t)
	b.takeAll()
	cl := b.as(t, rbac.Operator)
	var last string
	for _, name := range []string{"wel_1", "wel_2"} {
		last = b.welcomeJob(t, name, "category = 'transient', entity = 'customer:881'")
		if w := cl.post("/jobs/"+last+"/replay", "version", "1.1", "reason", "the provider is back"); w.Code != http.StatusSeeOther {
			t.Fatalf("%d\n%s", w.Code, w.Body)
		}
	}
	if got := text(cl.open(t, "/jobs/"+last, http.StatusOK).Find(".first-line")); !strings.Contains(got, "waits for its turn among those of customer:881") {
		t.Errorf("the first line is %q", got)
	}
	if got := text(cl.open(t, "/jobs/"+last+"/cancel", http.StatusOK).Find("main form")); !strings.Contains(got, "when its turn comes among the replays of customer:881") {
		t.Errorf("the page says %q", got)
	}
}
