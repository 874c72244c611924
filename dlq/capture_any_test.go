package dlq

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// nasty are texts that databases and encodings trip over.
var nasty = []string{
	"", "plain", "\x00", "a\x00b", "\xff\xfe", "caf\xe9", "\u202eabc", "\x1b[31mred\x1b[0m", "\x1b]8;;http://x\x1b\\l", "\ufeff", "🙂", "\\u0000",
	"'; DROP TABLE x; --", `{"a":"\ud800"}`, "\u2028", "password='\x00", "Bearer \xff\xffabcdefghijklmnop", strings.Repeat("é", 3000),
	strings.Repeat("x\x00", 400), "a@b.example.com\x00", "4111111111111111\x00", "\r\n\t", strings.Repeat("🙂", 600),
}

// Whatever a document holds, capturing it fails no transaction: it is stored
// or refused alone, and the one beside it is stored.
func TestCaptureAnything(t *testing.T) {
	t.Parallel()
	b := setup(t)
	text := rapid.OneOf(rapid.SampledFrom(nasty), rapid.Map(rapid.SliceOfN(rapid.SampledFrom(nasty), 1, 3), func(s []string) string { return strings.Join(s, "") }))
	moments := rapid.SampledFrom([]string{"", "null", `"x"`, "1e300", "-1e300", "99999999999999999999", "0", "-62135596800", `"9999-12-31T23:59:59Z"`,
		`"10000-01-01T00:00:00Z"`, `"\u0000"`, `"\ud800"`, "{}", "253402300800", `"2026-03-01T00:00:00.123456789+05:45"`})
	n := 0
	rapid.Check(t, func(r *rapid.T) {
		n++
		names := func(label, plain string) string {
			if rapid.IntRange(0, 9).Draw(r, label+" odd") == 0 {
				return text.Draw(r, label)
			}
			return plain
		}
		doc := &Document{
			Environment: names("environment", "production"), Source: names("source", "s"), JobType: names("type", "t"), JobID: names("id", "") + fmt.Sprint(n),
			IdempotencyKey: names("key", "k"), Queue: names("queue", "q"), Tenant: names("tenant", ""), Entity: names("entity", "e"),
			Event: names("event", ""), Destination: names("destination", ""), ReasonCode: text.Draw(r, "code"), ReasonText: text.Draw(r, "text"),
			PayloadEncoding: EncodingBase64, Payload: []byte(text.Draw(r, "payload")),
			DeadAt: []byte(moments.Draw(r, "dead_at")), EnqueuedAt: []byte(moments.Draw(r, "enqueued_at")),
			Extra: []byte(`{"x":"\u0000\ud800"}`), Headers: []byte(`{"a":"\u0000","b":{"base64":"AP+A"},"c":"\ud800"}`),
		}
		for range rapid.IntRange(0, 2).Draw(r, "attempts") {
			doc.Attempts = append(doc.Attempts, AttemptDoc{
				At: []byte(moments.Draw(r, "at")), ErrorClass: text.Draw(r, "class"), Message: text.Draw(r, "message"), Stack: text.Draw(r, "stack"),
				Worker: text.Draw(r, "worker"), WorkerVersion: text.Draw(r, "version"), SideEffect: text.Draw(r, "effect"),
				Causes: []CauseDoc{{text.Draw(r, "cause class"), text.Draw(r, "cause")}},
			})
		}
		beside := job(fmt.Sprint("beside-", n), 1, 1)
		got := b.capture(t, doc, beside)
		if got[1].Outcome != CaptureCreated {
			r.Fatalf("the one beside it: %+v", got[1])
		}
		if got[0].Err != nil {
			return
		}
		if string(b.payload(t, got[0].ID, 1)) != string(doc.Payload) {
			r.Fatal("the payload's bytes differ")
		}
		row := get[string](t, b, `SELECT error_class || error_message FROM redrive.dead_jobs WHERE id = $1`, got[0].ID)
		if strings.ContainsAny(row, "\x1b\x00\u202e\n") {
			r.Fatalf("the list row is not plain text: %q", row)
		}
	})
}
