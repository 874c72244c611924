package api_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/redrive-dlq/redrive/dlq/replay"
	"github.com/redrive-dlq/redrive/rbac"
)

// TestSteeringByAPI: pause, slower, resume, cancel, each with its entry; and
// approval by a second person for what is money.
func TestSteeringByAPI(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for i := range 4 {
		b.capture(t, mail(fmt.Sprint(i), fmt.Sprint("k", i), ""))
	}
	id, at := b.plan(t, `{"q":"type:mail","reason":"the provider is back"}`)
	b.review(t, at, "")
	if r := b.post(t, b.stepped(t, rbac.OnCall), at+"/confirm", b.hashes(t, at)); r.status != http.StatusOK {
		t.Fatal(r)
	}
	b.work(t, replay.WorkStart, id)
	oncall := rbac.DemoToken(rbac.OnCall)
	if r := b.post(t, oncall, at+"/pause", `{"reason":"a look first"}`); r.text("state") != "paused" {
		t.Errorf("pause: %s", r)
	}
	if r := b.post(t, oncall, at+"/rate", `{"per_minute":7}`); r.number("rate_per_minute") != 7 {
		t.Errorf("rate: %s", r)
	}
	refused(t, b.post(t, oncall, at+"/rate", `{"per_minute":8}`), http.StatusUnprocessableEntity, "invalid", "/per_minute")
	refused(t, b.post(t, rbac.DemoToken(rbac.Operator), at+"/resume", `{"reason":"it looks well"}`), http.StatusForbidden, "forbidden")
	if r := b.post(t, oncall, at+"/resume", `{"reason":"it looks well"}`); r.text("state") != "running" {
		t.Errorf("resume: %s", r)
	}
	r := b.post(t, oncall, at+"/cancel", `{"reason":"not today"}`)
	if r.status != http.StatusOK || r.number("stops") != 4 || r.number("out") != 0 {
		t.Errorf("cancel: %s", r)
	}
	b.work(t, replay.WorkCancel, id)
	if r := b.get(t, rbac.Viewer, at); r.text("state") != "cancelled" {
		t.Errorf("cancelled: %s", r)
	}
	if n := b.count(t, `SELECT count(*) FROM redrive.dead_jobs WHERE status = 'open'`); n != 4 {
		t.Errorf("%d jobs are open again", n)
	}
	if n := b.count(t, `SELECT count(DISTINCT action) FROM redrive.audit_entries WHERE batch_id = $1 AND action IN ('batch.pause', 'batch.rate', 'batch.resume', 'batch.cancel')`, id); n != 4 {
		t.Errorf("%d kinds of entries", n)
	}
	page := b.get(t, rbac.Viewer, "/batches?state=cancelled&environment=production")
	if list := page.json["items"].([]any); len(list) != 1 {
		t.Errorf("listed: %s", page)
	}
}

// TestApprovalByAPI: money takes a second person, who isn't the first.
func TestApprovalByAPI(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.capture(t, `{"job_type":"charge","job_id":"1","idempotency_key":"c1","payload":{"n":1}}`)
	_, at := b.plan(t, `{"q":"type:charge","reason":"the provider is back"}`)
	b.review(t, at, "")
	oncall, agreed := b.stepped(t, rbac.OnCall), b.hashes(t, at)
	r := b.post(t, oncall, at+"/confirm", agreed)
	if r.text("state") != "waiting" || r.text("needs_approval") == "" {
		t.Fatal(r)
	}
	refused(t, b.post(t, oncall, at+"/approve", agreed), http.StatusForbidden, "forbidden")
	refused(t, b.post(t, rbac.DemoToken(rbac.Approver), at+"/approve", agreed), http.StatusForbidden, "step_up_needed")
	if r = b.post(t, b.stepped(t, rbac.Approver), at+"/approve", agreed); r.status != http.StatusOK || r.text("approved_by") == "" || r.json["due_at"] == nil {
		t.Errorf("approve: %s", r)
	}
}

// TestResumeAfterAStopTakesAStepUp: what stopped by itself isn't let go on with
// a token that lies in a script for months.
func TestResumeAfterAStopTakesAStepUp(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.capture(t, mail("1", "k1", ""))
	id, at := b.plan(t, `{"q":"type:mail","reason":"the provider is back"}`)
	b.review(t, at, "")
	if r := b.post(t, b.stepped(t, rbac.OnCall), at+"/confirm", b.hashes(t, at)); r.status != http.StatusOK {
		t.Fatal(r)
	}
	b.work(t, replay.WorkStart, id)
	if _, err := b.pool.Exec(t.Context(), `UPDATE redrive.batches SET state = 'paused', pause_kind = 'failures', pause_why = '6 of 20 failed' WHERE id = $1`, id); err != nil {
		t.Fatal(err)
	}
	refused(t, b.post(t, rbac.DemoToken(rbac.OnCall), at+"/resume", `{"reason":"it looks well"}`), http.StatusForbidden, "step_up_needed")
	if r := b.get(t, rbac.Viewer, at); r.text("state") != "paused" {
		t.Errorf("a refused resume: %s", r)
	}
	if r := b.post(t, b.stepped(t, rbac.OnCall), at+"/resume", `{"reason":"it looks well"}`); r.text("state") != "running" {
		t.Errorf("resume: %s", r)
	}
}
