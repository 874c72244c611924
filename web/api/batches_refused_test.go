package api_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/redrive-dlq/redrive/rbac"
)

// TestBatchesThatAreRefused: each a clear refusal, nothing changed.
func TestBatchesThatAreRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	job := b.capture(t, mail("1", "k1", ""))
	operator, oncall := rbac.DemoToken(rbac.Operator), rbac.DemoToken(rbac.OnCall)
	for body, want := range map[string]string{
		`{"q":"type:mail","reason":""}`:                          "422 invalid /reason",
		`{"reason":"because"}`:                                   "422 invalid /q",
		`{"q":"type:nothing","reason":"because"}`:                "422 invalid /q",
		`{"q":"tpye:mail","reason":"because"}`:                   "422 invalid /q",
		`{"q":"key:bob@example.com","reason":"because"}`:         "422 invalid /q",
		`{"ids":[],"reason":"because"}`:                          "422 invalid /q",
		`{"ids":["1"],"reason":"because"}`:                       "422 invalid /ids",
		`{"ids":[999999],"reason":"because"}`:                    "422 invalid /ids",
		fmt.Sprintf(`{"ids":[%d],"reason":"b\u0000cause"}`, job): "422 invalid /reason",
		`{"q":"type:mail","reason":"because","force":true}`:      "422 invalid /force",
	} {
		r := b.post(t, operator, "/batches", body)
		if got := fmt.Sprint(r.status, " ", r.text("code"), " ", r.text("pointer")); got != want {
			t.Errorf("%s: %s, want %s", body, r, want)
		}
	}
	refused(t, b.post(t, rbac.DemoToken(rbac.Viewer), "/batches", `{"q":"type:mail","reason":"because"}`), http.StatusForbidden, "forbidden")
	if n := b.count(t, `SELECT count(*) FROM redrive.batches`); n != 0 {
		t.Fatalf("%d batches", n)
	}
	_, at := b.plan(t, fmt.Sprintf(`{"ids":[%d],"reason":"because"}`, job))
	for more, want := range map[string]string{
		`,"rate_per_minute":1000000`:              "/rate_per_minute",
		`,"canary":2`:                             "/canary",
		`,"start_at":"tomorrow"`:                  "/start_at",
		`,"start_at":"2020-01-01T00:00:00Z"`:      "/start_at",
		`,"rate_per_minute":99999999999999999999`: "/rate_per_minute",
		`,"start_at":"9999-01-01T00:00:00Z"`:      "/start_at",
		`,"accept_repeat":"yes"`:                  "/accept_repeat",
	} {
		refused(t, b.review(t, at, more), http.StatusUnprocessableEntity, "invalid", want)
	}
	refused(t, b.post(t, oncall, at+"/review", `{"plan_hash":"other","reason":"because"}`), http.StatusConflict, "conflict", "changed")
	refused(t, b.post(t, operator, at+"/review", `{"plan_hash":"other","reason":"because"}`), http.StatusForbidden, "forbidden")
	refused(t, b.post(t, b.stepped(t, rbac.OnCall), at+"/confirm", b.hashes(t, at)), http.StatusConflict, "conflict", "reviewed")
	for _, act := range []string{"/pause", "/resume", "/plan-failed"} {
		refused(t, b.post(t, oncall, at+act, `{"reason":"because"}`), http.StatusConflict, "conflict")
	}
	refused(t, b.post(t, oncall, at+"/rate", `{"per_minute":1}`), http.StatusConflict, "conflict")
	refused(t, b.get(t, rbac.Viewer, "/batches?state=lost"), http.StatusUnprocessableEntity, "invalid")
	refused(t, b.get(t, rbac.Viewer, at+"/items?outcome=lost"), http.StatusUnprocessableEntity, "invalid")
	for _, nowhere := range []string{"/batches/999999", "/batches/0", "/batches/x", "/batches/99999999999999999999"} {
		if r := b.get(t, rbac.Viewer, nowhere); r.status != http.StatusNotFound {
			t.Errorf("%s: %s", nowhere, r)
		}
		if r := b.post(t, oncall, nowhere+"/pause", `{"reason":"because"}`); r.status != http.StatusNotFound {
			t.Errorf("%s: %s", nowhere, r)
		}
	}
	if n := b.count(t, `SELECT count(*) FROM redrive.replays WHERE state <> 'planned'`); n != 0 {
		t.Errorf("%d replays moved", n)
	}
}
