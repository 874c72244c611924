package dlq

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/redrive-dlq/redrive/dlq/problem"
)

var here = Defaults{Environment: "production", Source: "ingest"}

// caseFile reads one of the hand-made documents as bytes.
func caseFile(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "cases", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// rawPayload cuts the payload out of a case file by text, not by a parser.
func rawPayload(t testing.TB, doc []byte, from, to string) []byte {
	t.Helper()
	_, rest, ok := bytes.Cut(doc, []byte(from))
	end := bytes.Index(rest, []byte(to))
	if !ok || end < 0 {
		t.Fatalf("no payload between %q and %q", from, to)
	}
	return rest[:end]
}

func mustParse(t testing.TB, raw []byte) *Document {
	t.Helper()
	doc, err := ParseDocument(raw, here)
	if err != nil {
		t.Fatalf("parse: %v", err)
	}
	return doc
}

// minimal is a document with one more member.
func minimal(more string) []byte {
	return []byte(`{"job_type":"t","job_id":"1","payload":{}` + more + `}`)
}

func TestParseKeepsPayloadBytes(t *testing.T) {
	t.Parallel()
	for name, cut := range map[string][2]string{
		"01-nul-in-error-and-payload.json":      {`"payload": `, ",\n  \"attempts\""},
		"04-numbers-beyond-float64.json":        {`"payload": `, ",\n  \"attempts\""},
		"08-markup-in-every-field.json":         {`"payload": `, ",\n  \"attempts\""},
		"18-card-numbers-and-lookalikes.json":   {`"payload": `, ",\n  \"attempts\""},
		"24-long-error-and-near-miss-text.json": {`"payload": `, ",\n  \"attempts\""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := caseFile(t, name)
			doc := mustParse(t, file)
			if want := rawPayload(t, file, cut[0], cut[1]); !bytes.Equal(doc.Payload, want) {
				t.Errorf("payload is %.200q, want %.200q", doc.Payload, want)
			}
			if doc.PayloadEncoding != EncodingJSON {
				t.Errorf("encoding is %q", doc.PayloadEncoding)
			}
		})
	}
}

func TestParseBase64Payloads(t *testing.T) {
	t.Parallel()
	doc := mustParse(t, caseFile(t, "13-protobuf-payload.json"))
	sum := sha256.Sum256(doc.Payload)
	if got := hex.EncodeToString(sum[:]); len(doc.Payload) != 27 || got != "bb170495a9dcddf266d86b47a54e1a2afb1e81a133d588a0356bf1733a1f43d2" {
		t.Errorf("13: %d bytes, sha256 %s", len(doc.Payload), got)
	}
	doc = mustParse(t, caseFile(t, "12-zero-byte-payload.json"))
	if doc.Payload == nil || len(doc.Payload) != 0 || doc.PayloadEncoding != EncodingBase64 || doc.IdempotencyKey != "" || len(doc.Attempts) != 0 {
		t.Errorf("12: %+v", doc)
	}
}

func TestParseRefusesInvalidUTF8(t *testing.T) {
	t.Parallel()
	_, err := ParseDocument(caseFile(t, "03-raw-invalid-utf8-body.json"), here)
	if problem.CodeOf(err) != problem.Malformed || !strings.Contains(err.Error(), "byte 114") || !strings.Contains(err.Error(), "payload_encoding: base64") {
		t.Errorf("got %v", err)
	}
}

func TestParseEnvelope(t *testing.T) {
	t.Parallel()
	doc := mustParse(t, []byte(`{"environment":"staging","source":"app","job_type":"send_invoice","job_id":"j-1","idempotency_key":"k",
		"queue":"mail","tenant":"acme","entity":"order:1","event":"evt-1","destination":"smtp","payload":[1],"payload_version":3,
		"enqueued_at":1772841600,"dead_at":"2026-03-07T00:00:00Z","attempt_count":7,"max_attempts":9,
		"reason":{"code":"E42","text":"no way"},"category":"invalid_input","gave_up":"not_retryable","effect":"done","effect_id":"msg_1",
		"attempts":[{"at":1,"error_class":"A","message":"m","stack":"s","worker":"w","worker_version":"1.2","duration_ms":12.6,
			"side_effect":"none","cause":{"error_class":"B","message":"n","cause":{"error_class":"C","message":"o"}},"more":1}],
		"priority":5,"tags":["a"]}`))
	a := doc.Attempts[0]
	switch {
	case doc.Environment != "staging" || doc.Source != "app" || doc.JobType != "send_invoice" || doc.JobID != "j-1":
		t.Errorf("identity: %+v", doc)
	case doc.Queue != "mail" || doc.Tenant != "acme" || doc.Entity != "order:1" || doc.Event != "evt-1" || doc.Destination != "smtp":
		t.Errorf("names: %+v", doc)
	case doc.PayloadVersion != 3 || doc.AttemptCount != 7 || doc.MaxAttempts != 9:
		t.Errorf("numbers: %+v", doc)
	case string(doc.EnqueuedAt) != "1772841600" || string(doc.DeadAt) != `"2026-03-07T00:00:00Z"`:
		t.Errorf("times: %+v", doc)
	case doc.ReasonCode != "E42" || doc.ReasonText != "no way" || doc.Category != "invalid_input" || doc.GaveUp != "not_retryable" || doc.Effect != "done" || doc.EffectID != "msg_1":
		t.Errorf("words: %+v", doc)
	case a.ErrorClass != "A" || a.Worker != "w" || a.WorkerVersion != "1.2" || *a.DurationMS != 13 || a.SideEffect != "none" || string(a.At) != "1":
		t.Errorf("attempt: %+v", a)
	case fmt.Sprint(a.Causes) != "[{B n} {C o}]":
		t.Errorf("causes: %+v", a.Causes)
	case !strings.Contains(string(a.Raw), `"more":1`):
		t.Errorf("raw attempt: %s", a.Raw)
	case string(doc.Extra) != `{"priority":5,"tags":["a"]}`:
		t.Errorf("extra: %s", doc.Extra)
	}
}

func TestParsePrintout(t *testing.T) {
	t.Parallel()
	doc := mustParse(t, caseFile(t, "20-celery-args-only-as-repr.json"))
	if doc.PayloadEncoding != EncodingNone || doc.Payload != nil {
		t.Errorf("encoding %q, payload %q", doc.PayloadEncoding, doc.Payload)
	}
	doc = mustParse(t, []byte(`{"job_type":"t","job_id":"1","payload":null}`))
	if doc.PayloadEncoding != EncodingJSON || string(doc.Payload) != "null" {
		t.Errorf("a null payload without printout: %q %q", doc.PayloadEncoding, doc.Payload)
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 2000)
	for _, c := range []struct {
		name, doc, field, message string
		code                      problem.Code
	}{
		{"empty", ``, "", "byte 0", problem.Malformed},
		{"not an object", `[1]`, "", "expected an object", problem.Malformed},
		{"cut", `{"job_type":"t"`, "", "byte 15", problem.Malformed},
		{"two documents", `{"job_type":"t","job_id":"1","payload":1} {}`, "", "x-ndjson", problem.Malformed},
		{"leading zero", string(minimal(`,"max_attempts":01`)), "", "begins with 0", problem.Malformed},
		{"repeated key", string(minimal(`,"job_id":"2"`)), "/job_id", "stands twice", problem.Invalid},
		{"repeated by escape", string(minimal(`,"job\u005fid":"2"`)), "/job_id", "stands twice", problem.Invalid},
		{"case only", string(minimal(`,"Job_ID":"2"`)), "/Job_ID", "only in case", problem.Invalid},
		{"unknown case only", string(minimal(`,"x":1,"X":2`)), "/X", "only in case", problem.Invalid},
		{"wrong case", `{"job_type":"t","job_id":"1","Payload":{}}`, "/Payload", `"payload"`, problem.Invalid},
		{"kelvin sign", string(minimal(`,"wor\u212a":1,"work":2`)), "/work", "only in case", problem.Invalid},
		{"repeated in attempt", string(minimal(`,"attempts":[{},{"at":1,"at":2}]`)), "/attempts/1/at", "stands twice", problem.Invalid},
		{"repeated in cause", string(minimal(`,"attempts":[{"cause":{"message":"a","Message":"b"}}]`)), "/attempts/0/cause/Message", "only in case", problem.Invalid},
		{"repeated in reason", string(minimal(`,"reason":{"code":"a","code":"b"}`)), "/reason/code", "stands twice", problem.Invalid},
		{"job_id number", `{"job_type":"t","job_id":9007199254740993,"payload":{}}`, "/job_id", "quotes", problem.Invalid},
		{"job_id missing", `{"job_type":"t","payload":{}}`, "/job_id", "missing", problem.Invalid},
		{"job_id empty", `{"job_type":"t","job_id":"","payload":{}}`, "/job_id", "missing", problem.Invalid},
		{"job_type object", `{"job_type":{},"job_id":"1","payload":{}}`, "/job_type", "a string, not an object", problem.Invalid},
		{"payload missing", `{"job_type":"t","job_id":"1"}`, "/payload", "missing", problem.Invalid},
		{"job_id long", `{"job_type":"t","job_id":"` + long + `","payload":{}}`, "/job_id", "at most 512", problem.Invalid},
		{"key long", string(minimal(`,"idempotency_key":"` + long + `"`)), "/idempotency_key", "at most 1024", problem.Invalid},
		{"type long", `{"job_type":"` + long + `","job_id":"1","payload":{}}`, "/job_type", "at most 255", problem.Invalid},
		{"nul in job_id", `{"job_type":"t","job_id":"a\u0000","payload":{}}`, "/job_id", "NUL", problem.Invalid},
		{"half surrogate", `{"job_type":"t","job_id":"a\ud800","payload":{}}`, "/job_id", "surrogate", problem.Invalid},
		{"base64 bad", `{"job_type":"t","job_id":"1","payload":"AAA*","payload_encoding":"base64"}`, "/payload", "character 3", problem.Invalid},
		{"base64 no padding", `{"job_type":"t","job_id":"1","payload":"AAAAA","payload_encoding":"base64"}`, "/payload", "base64", problem.Invalid},
		{"base64 line break", `{"job_type":"t","job_id":"1","payload":"AAAA\nAAAA","payload_encoding":"base64"}`, "/payload", "line break", problem.Invalid},
		{"base64 stray bits", `{"job_type":"t","job_id":"1","payload":"AB==","payload_encoding":"base64"}`, "/payload", "base64", problem.Invalid},
		{"base64 not a string", `{"job_type":"t","job_id":"1","payload":{},"payload_encoding":"base64"}`, "/payload", "a string of base64", problem.Invalid},
		{"encoding", `{"job_type":"t","job_id":"1","payload":"","payload_encoding":"gzip"}`, "/payload_encoding", "json, base64, none", problem.Invalid},
		{"category", string(minimal(`,"category":"weird"`)), "/category", "missing_state", problem.Invalid},
		{"gave_up", string(minimal(`,"gave_up":"bored"`)), "/gave_up", "not_retryable", problem.Invalid},
		{"effect", string(minimal(`,"effect":"maybe"`)), "/effect", "unknown", problem.Invalid},
		{"effect id alone", string(minimal(`,"effect_id":"m"`)), "/effect_id", "effect: done", problem.Invalid},
		{"count", string(minimal(`,"attempt_count":1.5`)), "/attempt_count", "whole number", problem.Invalid},
		{"count huge", string(minimal(`,"attempt_count":99999999999999999999`)), "/attempt_count", "whole number", problem.Invalid},
		{"version zero", string(minimal(`,"payload_version":0`)), "/payload_version", "whole number", problem.Invalid},
		{"attempts object", string(minimal(`,"attempts":{}`)), "/attempts", "a list", problem.Invalid},
		{"attempt text", string(minimal(`,"attempts":["x"]`)), "/attempts/0", "an object", problem.Invalid},
		{"message number", string(minimal(`,"attempts":[{"message":5}]`)), "/attempts/0/message", "a string", problem.Invalid},
		{"duration", string(minimal(`,"attempts":[{"duration_ms":-1}]`)), "/attempts/0/duration_ms", "between 0", problem.Invalid},
		{"headers", string(minimal(`,"headers":"a: b"`)), "/headers", "an object or a list", problem.Invalid},
		{"header pair", string(minimal(`,"headers":[["a"]]`)), "/headers", "/headers/0", problem.Invalid},
		{"too deep", string(minimal(`,"x":` + strings.Repeat("[", 1100) + strings.Repeat("]", 1100))), "", "1000 levels", problem.Invalid},
		{"many attempts", string(minimal(`,"attempts":[` + strings.Repeat("{},", 1000) + `{}]`)), "/attempts", "attempt_count", problem.Invalid},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := ParseDocument([]byte(c.doc), here)
			e, ok := err.(*problem.Error)
			if !ok {
				t.Fatalf("got %v", err)
			}
			if e.Code != c.code || e.Field != c.field || !strings.Contains(e.Message, c.message) {
				t.Errorf("got %s at %q: %s", e.Code, e.Field, e.Message)
			}
			if strings.Contains(e.Message, long) {
				t.Error("the message repeats the value")
			}
		})
	}
}

func TestParseAnythingInsidePayload(t *testing.T) {
	t.Parallel()
	payload := `{"a":1,"a":2,"A":3,"\ud800":"\u0000","n":1e400,"deep":` + strings.Repeat("[", 900) + strings.Repeat("]", 900) + ` , "z" : -0.0 }`
	doc := mustParse(t, []byte(`{"job_type":"t","job_id":"1", "payload" : `+payload+` }`))
	if string(doc.Payload) != payload {
		t.Errorf("payload is %q", doc.Payload)
	}
}

func TestParseDeepCauseIsCut(t *testing.T) {
	t.Parallel()
	chain := strings.Repeat(`{"error_class":"X","cause":`, 100) + `null` + strings.Repeat(`}`, 100)
	doc := mustParse(t, minimal(`,"attempts":[{"cause":`+chain+`}]`))
	if n := len(doc.Attempts[0].Causes); n != maxCauses {
		t.Errorf("%d causes", n)
	}
}

func TestParseTooLarge(t *testing.T) {
	t.Parallel()
	_, err := ParseDocument(make([]byte, MaxDocumentBytes+1), here)
	if problem.CodeOf(err) != problem.TooLarge || !strings.Contains(err.Error(), "16777216") {
		t.Errorf("got %v", err)
	}
}

// Whatever ParseDocument takes, encoding/json takes too, and the payload is a
// span of the input.
func FuzzParseDocument(f *testing.F) {
	files, err := filepath.Glob("testdata/cases/*.json")
	if err != nil || len(files) == 0 {
		f.Fatal("no cases", err)
	}
	for _, file := range files {
		f.Add(caseFile(f, filepath.Base(file)))
	}
	f.Add(minimal(`,"headers":[["a",{"base64":"AA=="}],["a",null]],"x":[{},[],""]`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		doc, err := ParseDocument(raw, here)
		if err != nil {
			if e, ok := err.(*problem.Error); !ok || e.Message == "" || !utf8.ValidString(e.Message) {
				t.Fatalf("not an error for people: %v", err)
			}
			return
		}
		body := bytes.TrimPrefix(raw, []byte("\ufeff"))
		if !utf8.Valid(raw) || !json.Valid(body) {
			t.Fatalf("took invalid text %q", raw)
		}
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(body, &fields); err != nil {
			t.Fatal(err)
		}
		if doc.PayloadEncoding == EncodingJSON && !bytes.Equal(doc.Payload, fields["payload"]) {
			t.Fatalf("payload %q, want %q", doc.Payload, fields["payload"])
		}
		if doc.Extra != nil && !json.Valid(doc.Extra) {
			t.Fatalf("extra is not JSON: %q", doc.Extra)
		}
		var id string
		if json.Unmarshal(fields["job_id"], &id) != nil || id != doc.JobID {
			t.Fatalf("job id %q, want %q", doc.JobID, id)
		}
	})
}

// The scanner and encoding/json agree on what is JSON.
func FuzzScanner(f *testing.F) {
	for _, s := range []string{`{"a":[1,2,{"b":null}],"c":"\u00e9"}`, `-0.0e+5`, `"\x"`, `[1,]`, `{"a"}`, `nul`, "\"\t\"", `01`, ` [ ] `, `1.`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if !utf8.Valid(b) || bytes.Count(b, []byte("["))+bytes.Count(b, []byte("{")) >= MaxDepth {
			t.Skip()
		}
		if got, want := validJSON(b), json.Valid(b); got != want {
			t.Fatalf("%q: %v, encoding/json says %v", b, got, want)
		}
	})
}
