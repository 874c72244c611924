package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redrive-dlq/redrive/rbac"
)

func (b *bundle) release(t *testing.T, want int) {
	t.Helper()
	if n, err := b.replays.ReleaseDue(t.Context()); n != want || err != nil {
		t.Fatalf("%d released, want %d: %v", n, want, err)
	}
}

// TestOneReplayOfFiftyOrders: any number of parallel orders, one replay.
func TestOneReplayOfFiftyOrders(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.capture(t, mail("1", "k1", ""))
	var mu sync.Mutex
	var wg sync.WaitGroup
	statuses := map[int]int{}
	for range 50 {
		wg.Go(func() {
			r := b.order(t, id)
			mu.Lock()
			defer mu.Unlock()
			statuses[r.status]++
		})
	}
	wg.Wait()
	if statuses[http.StatusAccepted] != 1 || statuses[http.StatusConflict] != 49 {
		t.Errorf("answers by status: %v", statuses)
	}
	if n := b.count(t, `SELECT count(*) FROM redrive.replays`); n != 1 {
		t.Errorf("%d replays", n)
	}
	if n := b.count(t, `SELECT count(*) FROM redrive.audit_entries WHERE action = 'replay.order' AND actor_kind = 'token' AND dead_job_id = $1`, id); n != 1 {
		t.Errorf("%d entries in the audit log", n)
	}
	b.release(t, 1)
}

func TestAReplayFromOrderToOutcome(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.capture(t, mail("1", "k1", ""))
	r := b.order(t, id)
	if r.status != http.StatusAccepted || r.header.Get("Location") != fmt.Sprint("/api/v1/replays/", r.number("replay")) {
		t.Fatal(r)
	}
	path := fmt.Sprint("/replays/", r.number("replay"))
	if r = b.get(t, rbac.Viewer, path); r.status != http.StatusOK || r.text("state") != "ready" || r.json["outcome"] != nil || r.number("dead_job") != id {
		t.Error(r)
	}
	ingest, oncall := rbac.DemoIngestToken, rbac.DemoToken(rbac.OnCall)
	refused(t, b.post(t, ingest, path+"/outcome", `{"outcome":"succeeded"}`), http.StatusConflict, "conflict", "not been released")
	b.release(t, 1)
	staging := b.token(t, rbac.NewToken{Capture: true, Environment: "staging", Sources: []string{"ingest"}})
	other := b.token(t, rbac.NewToken{Capture: true, Sources: []string{"crm"}})
	for what, token := range map[string]string{"another environment": staging, "another source": other} {
		if r := b.post(t, token, path+"/outcome", `{"outcome":"succeeded"}`); r.status != http.StatusNotFound {
			t.Errorf("%s: %s", what, r)
		}
	}
	refused(t, b.post(t, rbac.DemoToken(rbac.Viewer), path+"/outcome", `{"outcome":"succeeded"}`), http.StatusForbidden, "forbidden")
	refused(t, b.post(t, ingest, path+"/outcome", `{"outcome":"skipped"}`), http.StatusUnprocessableEntity, "invalid", "/outcome")
	refused(t, b.post(t, ingest, path+"/outcome", `{"outcome":"failed","effect_id":"`+strings.Repeat("x", 256)+`"}`), http.StatusUnprocessableEntity, "invalid", "/effect_id")
	if r = b.post(t, ingest, path+"/outcome", `{"outcome":"succeeded","effect_id":"msg_1","detail":"password=hunter2hunter2"}`); r.status != http.StatusOK || r.json["recorded"] != true {
		t.Error(r)
	}
	if r = b.post(t, oncall, path+"/outcome", `{"outcome":"failed"}`); r.status != http.StatusOK || r.json["recorded"] != false {
		t.Errorf("a second outcome: %s", r)
	}
	if r = b.get(t, rbac.Viewer, path); r.text("outcome") != "succeeded" || r.text("effect_id") != "msg_1" || strings.Contains(r.String(), "hunter2") {
		t.Error(r)
	}
	r = b.get(t, rbac.Viewer, fmt.Sprint("/dead-jobs/", id))
	if r.text("status") != "recovered" || r.text("effect") != "done" || len(r.json["replays"].([]any)) != 1 {
		t.Error(r)
	}
	refused(t, b.order(t, id), http.StatusConflict, "conflict", "msg_1")
}

func TestOrdersThatAreRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.capture(t, mail("1", "k1", ""))
	path, oncall := fmt.Sprintf("/dead-jobs/%d/replay", id), rbac.DemoToken(rbac.OnCall)
	for body, want := range map[string]string{
		`{"reason":"because","generation":2,"payload_revision":1}`: "409 conflict",
		`{"reason":"because","generation":1,"payload_revision":2}`: "409 conflict",
		`{"reason":"because"}`:                                                                 "422 invalid /generation",
		`{"reason":"","generation":1,"payload_revision":1}`:                                    "422 invalid /reason",
		`{"reason":"a\u0000b and more","generation":1,"payload_revision":1}`:                   "422 invalid /reason",
		`{"reason":"a\ud800b and more","generation":1,"payload_revision":1}`:                   "400 malformed ",
		"{\"reason\":\"a\xffb and more\",\"generation\":1,\"payload_revision\":1}":             "400 malformed ",
		`{"reason":"because","generation":"1","payload_revision":1}`:                           "422 invalid /generation",
		`{"reason":"because","generation":99999999999999999999,"payload_revision":1}`:          "422 invalid /generation",
		`{"reason":"because","generation":1,"payload_revision":1,"at":"tomorrow"}`:             "422 invalid /at",
		`{"reason":"because","generation":1,"payload_revision":1,"at":"9999-01-01T00:00:00Z"}`: "422 invalid /at",
		`{"reason":"because","generation":1,"payload_revision":1,"Reason":"other"}`:            "422 invalid /Reason",
		`{"reason":"because","generation":1,"payload_revision":1,"reason":"other"}`:            "422 invalid /reason",
		`{"reason":"because","generation":1,"payload_revision":1,"force":true}`:                "422 invalid /force",
		`[]`: "400 malformed ", `null`: "400 malformed ", ``: "400 malformed ", `{} {}`: "400 malformed ",
	} {
		r := b.post(t, oncall, path, body)
		if got := fmt.Sprint(r.status, " ", r.text("code"), " ", r.text("pointer")); strings.TrimSpace(got) != strings.TrimSpace(want) {
			t.Errorf("%s: %s, want %s", body, r, want)
		}
	}
	refused(t, b.post(t, rbac.DemoToken(rbac.Viewer), path, `{"reason":"because","generation":1,"payload_revision":1}`), http.StatusForbidden, "forbidden")
	for _, nowhere := range []string{"/dead-jobs/99999/replay", "/dead-jobs/0/replay", "/dead-jobs/-1/replay", "/dead-jobs/99999999999999999999/replay", "/dead-jobs/x/replay"} {
		if r := b.post(t, oncall, nowhere, `{"reason":"because","generation":1,"payload_revision":1}`); r.status != http.StatusNotFound {
			t.Errorf("%s: %s", nowhere, r)
		}
	}
	if n := b.count(t, `SELECT count(*) FROM redrive.replays`); n != 0 {
		t.Errorf("%d replays", n)
	}
	r := b.post(t, oncall, path, fmt.Sprintf(`{"reason":"because","generation":1,"payload_revision":1,"at":%q}`, time.Now().Add(time.Hour).Format(time.RFC3339)))
	if r.status != http.StatusAccepted {
		t.Fatal(r)
	}
	b.release(t, 0)
}

func TestEffects(t *testing.T) {
	t.Parallel()
	b := setup(t)
	token := rbac.DemoIngestToken
	state := func(token, path, body, want string) {
		t.Helper()
		if r := b.post(t, token, path, body); r.status != http.StatusOK || r.text("state") != want {
			t.Errorf("%s %s: %s, want %s", path, body, r, want)
		}
	}
	one := `{"environment":"production","scope":"mail","key":"k1"}`
	state(token, "/effects/begin", one, "begun")
	state(token, "/effects/begin", one, "unknown")
	state(token, "/effects/finish", `{"scope":"mail","key":"k1","outcome":"failed"}`, "failed") // production is the token's default
	state(token, "/effects/begin", one, "begun")
	state(token, "/effects/finish", `{"environment":"production","scope":"mail","key":"k1","result":{"id":"msg_1","n":1e400}}`, "done")
	state(token, "/effects/finish", `{"environment":"production","scope":"mail","key":"k1","outcome":"failed"}`, "done")
	r := b.post(t, token, "/effects/begin", one)
	if r.text("state") != "done" || r.text("effect_id") != "msg_1" || !strings.Contains(string(r.raw), `"result":{"id":"msg_1","n":1e400}`) {
		t.Error(r)
	}
	state(rbac.DemoToken(rbac.OnCall), "/effects/begin", `{"environment":"staging","scope":"mail","key":"k1"}`, "begun")
	state(token, "/effects/finish", `{"scope":"mail","key":"nul","result":{"id":"a\u0000b"}}`, "done")
	for body, status := range map[string]int{
		`{"scope":"mail"}`:                                           422,
		`{"scope":"","key":"k"}`:                                     422,
		`{"scope":"mail","key":"a\u0000b"}`:                          422,
		`{"scope":"mail","key":"\udc00"}`:                            400,
		`{"scope":"mail","key":"` + strings.Repeat("k", 1025) + `"}`: 422,
		`{"scope":"` + strings.Repeat("s", 256) + `","key":"k"}`:     422,
		`{"scope":"mail","key":"k","outcome":"perhaps"}`:             422,
		`{"scope":"mail","key":"k","result":{"id":"\ud800"}}`:        400,
		`{"scope":"mail","key":"k","result":{"id":`:                  400,
	} {
		if r := b.post(t, token, "/effects/finish", body); r.status != status {
			t.Errorf("%.100s: %s, want %d", body, r, status)
		}
	}
	staging := b.token(t, rbac.NewToken{Capture: true, Environment: "staging", Sources: []string{"crm"}})
	refused(t, b.post(t, staging, "/effects/begin", one), http.StatusForbidden, "forbidden", "production")
	refused(t, b.post(t, rbac.DemoToken(rbac.Operator), "/effects/begin", one), http.StatusForbidden, "forbidden")
	state(staging, "/effects/begin", `{"scope":"mail","key":"k2"}`, "begun")
}

// TestAKeyCountsInItsEnvironmentOnly: done in staging, it blocks nothing in
// production; empty keys never meet.
func TestAKeyCountsInItsEnvironmentOnly(t *testing.T) {
	t.Parallel()
	b := setup(t)
	production := b.capture(t, mail("1", "k1", ""))
	staging := b.capture(t, mail("1", "k1", `,"environment":"staging"`))
	twin := b.capture(t, mail("2", "k1", ""))
	if r := b.post(t, rbac.DemoIngestToken, "/effects/finish", `{"environment":"staging","scope":"mail","key":"k1","result":{"id":"msg_1"}}`); r.status != http.StatusOK {
		t.Fatal(r)
	}
	refused(t, b.order(t, staging), http.StatusConflict, "conflict", "msg_1")
	if r := b.order(t, production); r.status != http.StatusAccepted {
		t.Fatalf("a staging key blocks production: %s", r)
	}
	refused(t, b.order(t, twin), http.StatusConflict, "conflict", "same key")

	var ids []int64
	for i := range 3 {
		ids = append(ids, b.capture(t, fmt.Sprintf(`{"job_type":"cron.tick","job_id":"tick-%d","idempotency_key":"","payload":"","payload_encoding":"base64"}`, i)))
	}
	for _, id := range ids {
		if r := b.order(t, id); r.status != http.StatusAccepted {
			t.Errorf("an empty key meets another: %s", r)
		}
	}
}
