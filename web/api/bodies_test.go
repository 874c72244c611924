package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/redrive-dlq/redrive/rbac"
)

// body draws anything from bytes to nearly right documents.
func drawBody() *rapid.Generator[string] {
	name := rapid.SampledFrom([]string{"job_type", "job_id", "idempotency_key", "payload", "payload_encoding", "attempts", "headers", "environment", "source",
		"dead_at", "attempt_count", "payload_version", "reason", "category", "effect", "scope", "key", "result", "outcome", "generation", "payload_revision", "at", "Job_ID", "more"})
	value := rapid.SampledFrom([]string{`"mail"`, `"x"`, `""`, `"a\u0000b"`, `"\ud800"`, `"\ud83d\ude00"`, "\"\xff\"", `1`, `-1`, `1e400`, `99999999999999999999`, `null`, `true`,
		`{}`, `[]`, `[[]]`, `[{}]`, `{"a":{"b":[1,2,{"c":"\u0000"}]}}`, `"base64"`, `"AAA="`, `"none"`, `"production"`, `"staging"`, `"done"`, `"failed"`, `"succeeded"`,
		`[{"at":-1e300,"message":"\u0000\ud800","cause":{"cause":{}}}]`, `[{"at":99999999999999999,"duration_ms":-5}]`, `"2026-03-04T09:00:00Z"`, `"294277-01-01T00:00:00Z"`,
		`[["a",null],["a",{"base64":"AA=="}]]`, `{"code":"\u001b[1m","text":1}`, strings.Repeat("[", 3000) + strings.Repeat("]", 3000), `"` + strings.Repeat("é", 1500) + `"`})
	object := rapid.Custom(func(t *rapid.T) string {
		var members []string
		if rapid.Bool().Draw(t, "named") {
			members = append(members, `"job_type":"mail","job_id":`+fmt.Sprintf("%q", rapid.StringMatching(`[a-z]{1,2}`).Draw(t, "id")))
		}
		for range rapid.IntRange(0, 6).Draw(t, "members") {
			members = append(members, fmt.Sprintf("%q:%s", name.Draw(t, "name"), value.Draw(t, "value")))
		}
		return "{" + strings.Join(members, ",") + "}"
	})
	return rapid.OneOf(object, object, object,
		rapid.Custom(func(t *rapid.T) string { return strings.Join(rapid.SliceOfN(object, 1, 5).Draw(t, "lines"), "\n") }),
		rapid.Custom(func(t *rapid.T) string { return string(rapid.SliceOfN(rapid.Byte(), 0, 60).Draw(t, "bytes")) }),
		value)
}

// TestNoBodyIsOurFault posts random bodies everywhere: whatever comes, the
// answer is documented and never an internal error.
func TestNoBodyIsOurFault(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.capture(t, mail("1", "k1", ""))
	paths := []string{"/dead-jobs", "/dead-jobs", "/dead-jobs", fmt.Sprintf("/dead-jobs/%d/replay", id), "/replays/1/outcome", "/effects/begin", "/effects/finish"}
	rapid.Check(t, func(rt *rapid.T) {
		path := rapid.SampledFrom(paths).Draw(rt, "path")
		kind := rapid.SampledFrom([]string{jsonType, ndjsonType}).Draw(rt, "kind")
		token := rbac.DemoIngestToken
		if strings.HasSuffix(path, "/replay") {
			token = rbac.DemoToken(rbac.OnCall)
		}
		r := b.do(t, token, http.MethodPost, path, kind, strings.NewReader(drawBody().Draw(rt, "body")))
		if r.status >= 500 || strings.Contains(string(r.raw), `"status":50`) {
			rt.Fatalf("%s", r)
		}
	})
}

// TestNoQueryIsOurFault does the same to the list and to ids.
func TestNoQueryIsOurFault(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.capture(t, mail("1", "k1", ""))
	part := rapid.SampledFrom([]string{"type:", "job:", "-", "older:", "2d", "99999999999d", "payload.a:1", `"`, "%00", "%ff", "%ED%A0%80", "group:", "batch:", "99999999999999999999", ",", ":", "x", "%20", "status:open", "key:"})
	rapid.Check(t, func(rt *rapid.T) {
		query := "q=" + strings.Join(rapid.SliceOfN(part, 0, 6).Draw(rt, "q"), "")
		query += "&limit=" + rapid.SampledFrom([]string{"", "1", "0", "-1", "200", "201", "1e3", "99999999999999999999", "%00"}).Draw(rt, "limit")
		query += "&cursor=" + rapid.SampledFrom([]string{"", "x", "%00", "AWoA", strings.Repeat("A", 36), strings.Repeat("f", 3000)}).Draw(rt, "cursor")
		if r := b.get(t, rbac.Viewer, "/dead-jobs?"+query); r.status >= 500 {
			rt.Fatalf("%s: %s", query, r)
		}
		id := rapid.SampledFrom([]string{"0", "-1", "1x", "%00", "9223372036854775807", "9223372036854775808", "٣"}).Draw(rt, "id")
		if r := b.get(t, rbac.Viewer, "/replays/"+id); r.status != http.StatusNotFound && r.status != http.StatusBadRequest {
			rt.Fatalf("%s: %s", id, r)
		}
	})
}
