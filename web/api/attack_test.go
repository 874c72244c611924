package api_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/redrive-dlq/redrive/rbac"
	"github.com/redrive-dlq/redrive/web"
)

// policies are who may use the API, by design; the table in the code is held
// against it. Where it says "read" for what writes, the domain decides.
var policies = map[string]string{
	"POST /dead-jobs":               "needs capture",
	"GET /dead-jobs":                "needs read",
	"GET /dead-jobs/:id":            "needs read",
	"POST /dead-jobs/:id/replay":    "needs read, order",
	"GET /replays/:id":              "needs read",
	"POST /replays/:id/outcome":     "signed in",
	"POST /effects/begin":           "signed in",
	"POST /effects/finish":          "signed in",
	"POST /batches":                 "needs plan_batch, order",
	"GET /batches":                  "needs read",
	"GET /batches/:id":              "needs read",
	"GET /batches/:id/items":        "needs read",
	"GET /batches/:id/report":       "needs read",
	"POST /batches/:id/fixes":       "needs declare_fix, order",
	"POST /batches/:id/rejudge":     "needs plan_batch, order",
	"POST /batches/:id/allow-old":   "needs run_batch, order",
	"POST /batches/:id/review":      "needs run_batch",
	"POST /batches/:id/confirm":     "needs run_batch, step-up, order",
	"POST /batches/:id/approve":     "needs approve_batch, step-up, order",
	"POST /batches/:id/pause":       "needs run_batch",
	"POST /batches/:id/resume":      "needs run_batch",
	"POST /batches/:id/rate":        "needs run_batch",
	"POST /batches/:id/cancel":      "needs read",
	"POST /batches/:id/plan-failed": "needs plan_batch, order",
	"GET /holds":                    "needs read",
	"POST /holds":                   "needs hold_replays",
	"POST /holds/:id/reason":        "needs hold_replays",
	"POST /holds/:id/lift":          "needs hold_replays",
	"GET /openapi.json":             "public",
}

func routes(b *bundle) (all []web.Route) {
	for _, r := range b.server.Routes() {
		if r.Audience == web.API {
			all = append(all, r)
		}
	}
	return all
}

func inAPI(r web.Route, id string) string {
	return strings.ReplaceAll(strings.TrimPrefix(r.Path, "/api/v1"), ":id", id)
}

// needed is the right that a policy names; empty where it names none.
func needed(r web.Route) rbac.Permission {
	rest, _ := strings.CutPrefix(r.Policy.String(), "needs ")
	if rest == r.Policy.String() {
		return ""
	}
	perm, _, _ := strings.Cut(rest, ",")
	return rbac.Permission(perm)
}

// TestEveryRouteOfTheAPI: each has the decided policy, and refuses strangers,
// those without the right, and what takes a fresh passphrase without one.
func TestEveryRouteOfTheAPI(t *testing.T) {
	t.Parallel()
	b := setup(t)
	decided := maps.Clone(policies)
	for _, r := range routes(b) {
		key := r.Method + " " + strings.TrimPrefix(r.Path, "/api/v1")
		if got := r.Policy.String(); got != decided[key] {
			t.Errorf("%s: %s; decided was %q", key, got, decided[key])
		}
		delete(decided, key)
		if r.Policy.String() == "public" {
			continue
		}
		path, body := inAPI(r, "999999"), strings.NewReader(`{"reason":"because"}`)
		if r.Method == http.MethodGet {
			body = strings.NewReader("")
		}
		refused(t, b.do(t, "nobody's", r.Method, path, jsonType, body), http.StatusUnauthorized, "unauthorized")
		for _, role := range rbac.AllRoles() {
			perm := needed(r)
			if perm == "" || perm == rbac.Capture || role.Allows(perm) {
				continue
			}
			refused(t, b.do(t, rbac.DemoToken(role), r.Method, path, jsonType, nil), http.StatusForbidden, "forbidden")
		}
		if strings.Contains(r.Policy.String(), "step-up") {
			role := rbac.OnCall
			if needed(r) == rbac.ApproveBatch {
				role = rbac.Approver
			}
			refused(t, b.do(t, rbac.DemoToken(role), r.Method, path, jsonType, nil), http.StatusForbidden, "step_up_needed")
		}
		if strings.Contains(r.Policy.String(), "order") && loaded().find("paths", strings.ReplaceAll(r.Path, ":id", "{id}"), "post", "responses", "429") == nil {
			t.Errorf("%s is limited, and the document doesn't say so", key)
		}
	}
	for key := range decided {
		t.Errorf("%s is decided about and doesn't exist", key)
	}
}

// TestAnotherEnvironmentIsNotThere: a token that may do everything in staging
// finds nothing of production, by whichever route.
func TestAnotherEnvironmentIsNotThere(t *testing.T) {
	t.Parallel()
	b := setup(t)
	job := b.capture(t, mail("1", "k1", ""))
	batch, _ := b.plan(t, fmt.Sprintf(`{"ids":[%d],"reason":"because"}`, job))
	replay := int64(b.count(t, `SELECT id::int FROM redrive.replays WHERE batch_id = $1`, batch))
	hold := b.post(t, rbac.DemoToken(rbac.OnCall), "/holds", `{"environment":"production","reason":"because"}`).number("id")
	if _, err := b.pool.Exec(t.Context(), `
		INSERT INTO redrive.grants (user_id, role, environment, job_type)
		SELECT id, unnest(ARRAY['viewer', 'operator', 'oncall', 'approver', 'auditor']), '', ''
		FROM redrive.users
		WHERE email = 'admin@demo.test'`); err != nil {
		t.Fatal(err)
	}
	token := b.token(t, rbac.NewToken{Roles: rbac.AllRoles(), Environment: "staging", Capture: true, Sources: []string{"ingest"}})
	if _, err := b.pool.Exec(t.Context(), `UPDATE redrive.tokens SET stepped_up_at = now() WHERE name = 'test'`); err != nil {
		t.Fatal(err)
	}
	bodies := map[string]string{"review": `{"plan_hash":"x","reason":"because"}`, "confirm": `{"plan_hash":"x","review_hash":"x","phrase":"x"}`,
		"approve": `{"plan_hash":"x","review_hash":"x","phrase":"x"}`, "rate": `{"per_minute":1}`, "fixes": `{"kind":"ticket","ref":"OPS-1","reason":"because"}`,
		"replay": `{"reason":"because","generation":1,"payload_revision":1}`, "outcome": `{"outcome":"succeeded"}`}
	tried := 0
	for _, r := range routes(b) {
		if !strings.Contains(r.Path, ":id") {
			continue
		}
		id := map[string]int64{"dead-jobs": job, "batches": batch, "replays": replay, "holds": hold}[strings.Split(r.Path, "/")[3]]
		act := r.Path[strings.LastIndex(r.Path, "/")+1:]
		body, known := bodies[act]
		if !known {
			body = `{"reason":"because"}`
		}
		path := inAPI(r, fmt.Sprint(id))
		var answer reply
		if r.Method == http.MethodGet {
			answer = b.do(t, token, r.Method, path, "", nil)
		} else {
			answer = b.post(t, token, path, body)
		}
		tried++
		if answer.status != http.StatusNotFound {
			t.Errorf("%s %s: %s", r.Method, path, answer)
		}
	}
	if tried < 18 {
		t.Errorf("only %d routes were tried", tried)
	}
	for _, path := range []string{"/batches", "/holds", "/dead-jobs"} {
		if r := b.do(t, token, http.MethodGet, path, "", nil); r.status != http.StatusOK || len(r.json["items"].([]any)) != 0 {
			t.Errorf("%s: %s", path, r)
		}
	}
	refused(t, b.post(t, token, "/batches", fmt.Sprintf(`{"ids":[%d],"reason":"because"}`, job)), http.StatusUnprocessableEntity, "invalid")
	refused(t, b.post(t, token, "/holds", `{"environment":"production"}`), http.StatusForbidden, "forbidden")
	if n := b.count(t, `SELECT count(*) FROM redrive.audit_entries WHERE actor_kind = 'token' AND body LIKE '%token test of%'`); n != 0 {
		t.Errorf("%d entries of what was refused", n)
	}
}

// TestNoOrderIsOurFault posts random bodies and parameters to the routes of
// batches and holds: the answer is documented and never an internal error.
func TestNoOrderIsOurFault(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, at := b.plan(t, fmt.Sprintf(`{"ids":[%d],"reason":"because"}`, b.capture(t, mail("1", "k1", ""))))
	hash := b.get(t, rbac.Viewer, at).text("plan_hash")
	oncall := b.stepped(t, rbac.OnCall)
	name := rapid.SampledFrom([]string{"q", "ids", "reason", "plan_hash", "review_hash", "phrase", "start_after_seconds", "start_at", "rate_per_minute", "canary",
		"accept_repeat", "per_minute", "kind", "ref", "environment", "job_type", "destination", "Reason", "more"})
	value := rapid.SampledFrom([]string{`""`, `"x"`, `"type:mail"`, `"because"`, `"because"`, `"` + hash + `"`, `"a\u0000b"`, `"\ud800"`, "\"\xff\"", `0`, `1`, `-1`, `1.5`, `1e400`,
		`9223372036854775807`, `99999999999999999999`, `null`, `true`, `{}`, `[]`, `[1]`, `[-1]`, `["1"]`, `[null]`, `[9223372036854775807]`, `"ticket"`, `"production"`, `"mail"`,
		`"0001-01-01T00:00:00Z"`, `"9999-12-31T23:59:59Z"`, `"2026-13-01T00:00:00Z"`, `"<script>alert(1)</script>"`, `"` + strings.Repeat("x", 3000) + `"`})
	acts := []string{"/batches", "/holds", "/holds/1/lift", "/holds/1/reason", at + "/review", at + "/confirm", at + "/approve", at + "/fixes", at + "/rejudge", at + "/allow-old",
		at + "/pause", at + "/resume", at + "/rate", at + "/plan-failed"}
	rapid.Check(t, func(rt *rapid.T) {
		var members []string
		if rapid.Bool().Draw(rt, "right") {
			members = []string{`"reason":"because"`, `"plan_hash":"` + hash + `"`}[:rapid.IntRange(1, 2).Draw(rt, "of it")]
		}
		for range rapid.IntRange(0, 4).Draw(rt, "members") {
			members = append(members, fmt.Sprintf("%q:%s", name.Draw(rt, "name"), value.Draw(rt, "value")))
		}
		body := "{" + strings.Join(members, ",") + "}"
		path := rapid.SampledFrom(acts).Draw(rt, "path")
		if r := b.post(t, oncall, path, body); r.status >= 500 {
			rt.Fatalf("%s %s: %s", path, body, r)
		}
		odd := rapid.SampledFrom([]string{"", "x", "%00", "%ff", "%ED%A0%80", "-1", "1e3", "99999999999999999999", "eligible", "failed", "production"})
		query := "?environment=" + odd.Draw(rt, "environment") + "&state=" + odd.Draw(rt, "state") + "&verdict=" + odd.Draw(rt, "verdict") + "&outcome=" + odd.Draw(rt, "outcome") +
			"&limit=" + odd.Draw(rt, "limit") + "&cursor=" + odd.Draw(rt, "cursor")
		for _, path := range []string{"/batches", at + "/items", at + "/report", at} {
			if r := b.get(t, rbac.Viewer, path+query); r.status >= 500 {
				rt.Fatalf("%s: %s", path+query, r)
			}
		}
	})
}

// TestActsThatAreNotTaken: too large, of another type, of another shape; each
// is told what is wrong, and nothing is done.
func TestActsThatAreNotTaken(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, at := b.plan(t, fmt.Sprintf(`{"ids":[%d],"reason":"because"}`, b.capture(t, mail("1", "k1", ""))))
	oncall := rbac.DemoToken(rbac.OnCall)
	large := `{"reason":"` + strings.Repeat("x", 1<<20) + `"}`
	for _, path := range []string{"/batches", "/holds", at + "/review", at + "/pause", at + "/resume", at + "/rate", at + "/cancel", at + "/plan-failed", at + "/fixes", at + "/allow-old"} {
		refused(t, b.post(t, oncall, path, large), http.StatusRequestEntityTooLarge, "too_large", "KiB")
		refused(t, b.do(t, oncall, http.MethodPost, path, "text/plain", strings.NewReader(`{"reason":"because"}`)), http.StatusUnsupportedMediaType, "unsupported")
		refused(t, b.do(t, oncall, http.MethodPost, path, jsonType, strings.NewReader("")), http.StatusBadRequest, "malformed")
	}
	for body, want := range map[string]string{
		`{"reason":"because","reason":"twice"}`:               "twice",
		`{"Reason":"because"}`:                                "case matters",
		`{"reason":"because"}{"reason":"more"}`:               "one object",
		`{"reason":` + `"` + strings.Repeat("x", 2001) + `"}`: "2,000 characters",
		`{"reason":true}`:                                     "must be a string",
	} {
		if r := b.post(t, oncall, at+"/cancel", body); r.status != http.StatusBadRequest && r.status != http.StatusUnprocessableEntity || !strings.Contains(r.text("detail"), want) {
			t.Errorf("%.60s: %s", body, r)
		}
	}
	for more, want := range map[string]string{`,"accept_repeat":1`: "true or false", `,"canary":"1"`: "a whole number", `,"start_at":"0001-01-01T00:00:00Z"`: "/start_at"} {
		refused(t, b.review(t, at, more), http.StatusUnprocessableEntity, "invalid", want)
	}
	refused(t, b.post(t, oncall, "/batches", `{"ids":1,"reason":"because"}`), http.StatusUnprocessableEntity, "invalid", "a list of whole numbers")
	many := strings.Trim(strings.Join(strings.Fields(fmt.Sprint(slices.Repeat([]int{1}, 10_001))), ","), "[]")
	refused(t, b.post(t, oncall, "/batches", `{"reason":"because","ids":[`+many+`]}`), http.StatusUnprocessableEntity, "invalid", "10,000")
	if n := b.count(t, `SELECT count(*) FROM redrive.batches WHERE state <> 'planned'`) + b.count(t, `SELECT count(*) FROM redrive.holds`); n != 0 {
		t.Errorf("%d batches or holds changed", n)
	}
}
