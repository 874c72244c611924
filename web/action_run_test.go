package web

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/redrive-dlq/redrive/rbac"
)

var underWay = map[string]int{"succeeded": 3, "failed": 1, "released": 2, "ready": 5, "pending": 40, "plan.key_done": 4}

func (b *testBundle) batchState(t *testing.T, id string) string {
	t.Helper()
	return query[string](t, b, `
		SELECT concat_ws(' ', b.state, nullif(b.pause_kind, ''), CASE WHEN r.live THEN 'live' ELSE 'still' END, b.rate_per_minute)
		FROM redrive.batches b
		LEFT JOIN redrive.runs r ON r.batch_id = b.id
		WHERE b.id = $1::bigint`, id)
}

func (b *testBundle) entryCount(t *testing.T, action string) int {
	t.Helper()
	return query[int](t, b, `SELECT count(*) FROM redrive.audit_entries WHERE action = $1`, action)
}

// Pausing is one press of a button, without a reason; the page with the
// question does the same.
func TestPauseStopsABatchAtOnce(t *testing.T) {
	t.Parallel()
	b := pageSetup(t)
	cl := b.as(t, rbac.OnCall)
	for i, fields := range [][]string{nil, {"reason", "the provider complains"}} {
		id := b.ran(t, "running", underWay)
		doc := cl.open(t, "/batches/"+id, http.StatusOK)
		if doc.Find("form[method=post][action='/batches/"+id+"/pause'] button").Length() != 1 {
			t.Fatal("the page has no button that pauses")
		}
		asked := text(cl.open(t, "/batches/"+id+"/pause", http.StatusOK).Find("main form"))
		for _, want := range []string{"45 replays wait, 2 are out and go on to their outcome", "may be left out", "Let it run"} {
			if !strings.Contains(asked, want) {
				t.Errorf("%q lacks %q", asked, want)
			}
		}
		w := cl.post("/batches/"+id+"/pause", fields...)
		if w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/batches/"+id {
			t.Fatalf("%d to %q\n%s", w.Code, w.Header().Get("Location"), w.Body)
		}
		if got := b.batchState(t, id); got != "paused person still 120" || b.entryCount(t, "batch.pause") != i+1 {
			t.Errorf("after the pause: %s, %d entries", got, b.entryCount(t, "batch.pause"))
		}
		main := text(cl.open(t, "/batches/"+id, http.StatusOK).Find("main"))
		for _, want := range []string{"Paused. 45 replays wait until somebody resumes the batch.", "Paused by oncall@demo.test", "Resume…"} {
			if !strings.Contains(main, want) {
				t.Errorf("the batch's page lacks %q", want)
			}
		}
		w = cl.post("/batches/" + id + "/resume")
		if got := b.batchState(t, id); w.Code != http.StatusSeeOther || got != "running live 120" {
			t.Errorf("resumed: %d, %s", w.Code, got)
		}
	}
}

// After a stop by itself going on takes the passphrase, a reason and a new canary.
func TestResumeAfterAStop(t *testing.T) {
	t.Parallel()
	b := pageSetup(t)
	cl := b.as(t, rbac.OnCall)
	id := b.ran(t, "paused", map[string]int{"succeeded": 14, "failed": 6, "pending": 30})
	path := "/batches/" + id + "/resume"
	main := text(cl.open(t, "/batches/"+id, http.StatusOK).Find("#stopped"))
	if !strings.Contains(main, "Stopped by itself: 6 of 20 failed (limit 20 %)") || !strings.Contains(main, "10 replays leave first as a new canary") {
		t.Errorf("the stop reads %q", main)
	}
	b.advance(6 * time.Minute)
	if w := cl.get(path); w.Code != http.StatusSeeOther || !strings.HasPrefix(w.Header().Get("Location"), "/account/confirm?next=") {
		t.Errorf("without the passphrase: %d to %q", w.Code, w.Header().Get("Location"))
	}
	if w := cl.post(path, "reason", "the provider is back"); w.Code != http.StatusForbidden || !strings.HasPrefix(b.batchState(t, id), "paused failures still") {
		t.Errorf("posted without the passphrase: %d, %s", w.Code, b.batchState(t, id))
	}
	if w := cl.post("/account/confirm", "password", rbac.DemoPassphrase, "next", path); w.Code != http.StatusSeeOther {
		t.Fatalf("step-up: %d", w.Code)
	}
	form := cl.open(t, path, http.StatusOK).Find("main form")
	for _, want := range []string{"10 replays leave first as a new canary. The other 20 follow only if no more than 20 % of it fails", "Resume with a new canary of 10"} {
		if !strings.Contains(text(form), want) {
			t.Errorf("%q lacks %q", text(form), want)
		}
	}
	if w := cl.post(path, "reason", " "); w.Code != http.StatusUnprocessableEntity || page(t, w).Find("#reason[aria-invalid=true]").Length() != 1 {
		t.Errorf("without a reason: %d", w.Code)
	}
	w := cl.post(path, "reason", "the provider is back")
	got := query[string](t, b, `
		SELECT concat_ws(' ', b.state, r.live, r.wave, (SELECT count(*) FROM redrive.replays i WHERE i.batch_id = b.id AND i.wave = 0))
		FROM redrive.batches b
		JOIN redrive.runs r ON r.batch_id = b.id
		WHERE b.id = $1::bigint`, id)
	if w.Code != http.StatusSeeOther || got != "running t 0 10" || b.entryCount(t, "batch.resume") != 1 {
		t.Errorf("resumed: %d, %s, %d entries", w.Code, got, b.entryCount(t, "batch.resume"))
	}
}

func TestRateOnlyFalls(t *testing.T) {
	t.Parallel()
	b := pageSetup(t)
	cl := b.as(t, rbac.OnCall)
	id := b.ran(t, "running", underWay)
	path := "/batches/" + id + "/rate"
	form := cl.open(t, path, http.StatusOK).Find("main form")
	if value, _ := form.Find("input[name=per_minute]").Attr("value"); value != "60" || !strings.Contains(text(form), "Below the 120 a minute of now. 45 replays are left: about 23 s") {
		t.Errorf("the form offers %q and says %q", value, text(form))
	}
	for _, bad := range []string{"120", "121", "0", "-3", "many", "", "99999999999999999999"} {
		w := cl.post(path, "per_minute", bad)
		if w.Code != http.StatusUnprocessableEntity || page(t, w).Find("#per_minute[aria-invalid=true]").Length() != 1 {
			t.Errorf("%q: %d", bad, w.Code)
		}
	}
	if got := b.batchState(t, id); got != "running live 120" {
		t.Errorf("a refused rate changed the batch: %s", got)
	}
	if w := cl.post(path, "per_minute", "30"); w.Code != http.StatusSeeOther || b.batchState(t, id) != "running live 30" || b.entryCount(t, "batch.rate") != 1 {
		t.Errorf("slower: %d, %s", w.Code, b.batchState(t, id))
	}
}

func TestCancelSaysWhatItStops(t *testing.T) {
	t.Parallel()
	b := pageSetup(t)
	cl := b.as(t, rbac.OnCall)
	id := b.ran(t, "running", underWay)
	path := "/batches/" + id + "/cancel"
	form := cl.open(t, path, http.StatusOK).Find("main form")
	for _, want := range []string{"This stops 45; 2 are out and go on to their outcome.", "Cancel 45 replays", "Keep it, change nothing"} {
		if !strings.Contains(text(form), want) {
			t.Errorf("%q lacks %q", text(form), want)
		}
	}
	if w := cl.post(path); w.Code != http.StatusUnprocessableEntity || page(t, w).Find("#reason[aria-invalid=true]").Length() != 1 || b.batchState(t, id) != "running live 120" {
		t.Errorf("without a reason: %d, %s", w.Code, b.batchState(t, id))
	}
	w := cl.post(path, "reason", "the wrong customers")
	if w.Code != http.StatusSeeOther || b.batchState(t, id) != "cancelling still 120" || b.entryCount(t, "batch.cancel") != 1 {
		t.Fatalf("%d, %s\n%s", w.Code, b.batchState(t, id), w.Body)
	}
	main := text(cl.open(t, "/batches/"+id, http.StatusOK).Find("main"))
	for _, want := range []string{"Cancelled: 45 stopped, 2 out.", "Being cancelled by oncall@demo.test"} {
		if !strings.Contains(main, want) {
			t.Errorf("the batch's page lacks %q", want)
		}
	}
	// Twice, and anything else, is refused and says so.
	for _, command := range []string{"cancel", "pause", "resume", "rate"} {
		w := cl.post("/batches/"+id+"/"+command, "reason", "once more", "per_minute", "10")
		if w.Code != http.StatusConflict || page(t, w).Find("[role=alert]").Length() != 1 || page(t, w).Find("main form").Length() != 0 {
			t.Errorf("%s of a cancelled batch: %d", command, w.Code)
		}
		cl.open(t, "/batches/"+id+"/"+command, http.StatusConflict)
	}
	if got := b.batchState(t, id); got != "cancelling still 120" || b.entryCount(t, "batch.cancel") != 1 {
		t.Errorf("a refusal changed the batch: %s", got)
	}
}

// Who may not run a batch is offered nothing and gets nothing; a batch out of
// scope isn't there.
func TestCommandsAreRefused(t *testing.T) {
	t.Parallel()
	b := pageSetup(t)
	id := b.ran(t, "running", underWay)
	viewer, operator := b.as(t, rbac.Viewer), b.as(t, rbac.Operator)
	elsewhere := b.grant(t, rbac.Grant{Role: rbac.OnCall, Environment: "staging"})
	for _, command := range []string{"pause", "resume", "rate", "cancel"} {
		path := "/batches/" + id + "/" + command
		for name, try := range map[string]struct {
			cl     *client
			status int
		}{"viewer": {viewer, http.StatusForbidden}, "operator": {operator, http.StatusForbidden}, "elsewhere": {elsewhere, http.StatusNotFound}} {
			if w := try.cl.get(path); w.Code != try.status {
				t.Errorf("GET %s as %s: %d, want %d", command, name, w.Code, try.status)
			}
			if w := try.cl.post(path, "reason", "because", "per_minute", "10"); w.Code != try.status {
				t.Errorf("POST %s as %s: %d, want %d", command, name, w.Code, try.status)
			}
		}
	}
	if got := b.batchState(t, id); got != "running live 120" {
		t.Errorf("a refusal changed the batch: %s", got)
	}
	main := viewer.open(t, "/batches/"+id, http.StatusOK).Find("main")
	if main.Find("form, #rate, #cancel, #resume, #hold-menu").Length() != 0 {
		t.Error("a viewer is offered commands")
	}
	if operator.open(t, "/batches/"+id, http.StatusOK).Find("#hold-menu form").Length() != 3 {
		t.Error("an operator isn't offered to hold more")
	}
	// Money takes its own right: a plan of it is withdrawn by who may plan, a run not.
	exec(t, b, `UPDATE redrive.batches SET job_type = 'charge_card'`)
	if w := operator.post("/batches/"+id+"/cancel", "reason", "because"); w.Code != http.StatusForbidden {
		t.Errorf("an operator cancels money: %d", w.Code)
	}
}
