package redact

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

type caseFile struct {
	JobID    string          `json:"job_id"`
	Payload  json.RawMessage `json:"payload"`
	Encoding string          `json:"payload_encoding"`
	Attempts []caseAttempt   `json:"attempts"`
	Headers  json.RawMessage `json:"headers"`
}

type caseAttempt struct {
	Class   string       `json:"error_class"`
	Message string       `json:"message"`
	Stack   string       `json:"stack"`
	Cause   *caseAttempt `json:"cause"`
}

func load(t testing.TB, number string) caseFile {
	t.Helper()
	names, err := filepath.Glob("testdata/cases/" + number + "-*.json")
	if err != nil || len(names) != 1 {
		t.Fatalf("case %s: %v %v", number, names, err)
	}
	b, err := os.ReadFile(names[0])
	if err != nil {
		t.Fatal(err)
	}
	var c caseFile
	if err := json.Unmarshal(b, &c); err != nil {
		t.Fatal(err)
	}
	return c
}

// readable is everything of a case that people may read.
func (c caseFile) readable(t testing.TB) string {
	t.Helper()
	var b strings.Builder
	payload := []byte(c.Payload)
	if c.Encoding == "base64" {
		var s string
		if err := json.Unmarshal(c.Payload, &s); err != nil {
			t.Fatal(err)
		}
		payload, _ = base64.StdEncoding.DecodeString(s)
	}
	b.Write(Payload(payload).Redacted)
	for _, a := range c.Attempts {
		for a := &a; a != nil; a = a.Cause {
			for _, s := range []string{a.Class, a.Message, a.Stack} {
				b.WriteString("\n" + Readable(s))
			}
		}
	}
	headers, err := ParseHeaders(c.Headers)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range Headers(headers) {
		b.WriteString("\n" + h.Name + ": " + h.Value)
	}
	return b.String()
}

func TestCases(t *testing.T) {
	t.Parallel()
	tests := []struct {
		number          string
		hidden, visible []string
	}{
		{"01", []string{"\x00"}, []string{`write \\u0000 to match a NUL`, "PNG␀␀ and not %PDF", "north␀wind", "invoice-7001.pdf"}},
		{"04", nil, []string{"9007199254740993", "3344556677889900123", "1.10", "-0.0", "1E3", "1e400", "0.1000000000000000055511151231257827", "no account 9007199254740993", "shard: 12345678901234567890"}},
		{"08", nil, []string{"<img src=x onerror=alert(1)>", "javascript:alert(5)", "</script><script>alert(6)</script>", "<%= 7*7 %>", "+1+1"}},
		{"10", []string{"\x1b", "\a", "http://example.test"}, []string{"FAIL step lint exit 2\nlog", "at build.ts:41\n␇"}},
		{"16", []string{"Zp4vQm9tLx2sKd7yRb1nHw6c", "eyJ", "Xy12Qa88LmPz"}, []string{"bearer token expired is plain prose", "peer answered 401", "https://api.example.test", "push.step2(worker/push.go:42)"}},
		{"18", []string{"4111111111111111", "5555 5555 5555 4444", "cvv 123", "DE89 3704 0044 0532 0130 00"}, []string{"7031908301661318", "1773852601815", "41111111-1111-4111-8111-111111111111", "5f36b2ea290645ee34d943220a14b54ee5ea5be5", "8264-1993-5181-9093", "••1111", "••4444", "exp 09/29"}},
		{"19", []string{"lena.hofer", "Qm3x9LpT", "Zk81yRb1nHw6cVt", "9f2c7a11de"}, []string{"state=ok", "page=2", "user @lena said", "10:30@noon", "room a@b", "203.0.113.7"}},
		{"20", []string{"pear-Lamp-77"}, []string{"(7, {'rows': [{...}, {...}, ...]})", "'api_key'", "ValueError: bad rate", "0d6f4a52-2c7e-4a3b-9f0e-5f6f0e1f2a20"}},
		{"21", nil, []string{"row: 5000000000", "blob: 009f", `"routing-keys"`, "1774054800", "orders-svc", "amq.rabbitmq.reply-to.g1h2"}},
		{"24", []string{`password='\\`}, []string{"private_ke_x", "secret.secret.secret.", "A_B9A_B9", "deep.step599(worker/deep.go:639)", "password='‹password›"}},
	}
	for _, tt := range tests {
		t.Run(tt.number, func(t *testing.T) {
			t.Parallel()
			c := load(t, tt.number)
			got := c.readable(t)
			for _, s := range tt.hidden {
				if strings.Contains(got, s) {
					t.Errorf("%q is still there in\n%.2000s", s, got)
				}
			}
			for _, s := range tt.visible {
				if !strings.Contains(got, s) {
					t.Errorf("%q is gone from\n%.2000s", s, got)
				}
			}
			// Payloads stay valid JSON.
			if c.Encoding == "" {
				if v := Payload(c.Payload); v.Form != FormJSON || !json.Valid(v.Redacted) {
					t.Errorf("payload: %s %.200s", v.Form, v.Redacted)
				}
			}
			if Text(c.JobID) != c.JobID {
				t.Errorf("the job's id was altered: %s", Text(c.JobID))
			}
		})
	}
}

func TestCase12IsEmpty(t *testing.T) {
	t.Parallel()
	if v := Payload(nil); v.Form != FormEmpty || v.Size != 0 || len(v.Redacted) != 0 {
		t.Errorf("got %+v", v)
	}
	for in, want := range map[string]Form{"null": FormJSON, `""`: FormJSON, "0042": FormText, "a\x00b": FormBinary, "a\xff": FormBinary} {
		if got := FormOf([]byte(in)); got != want {
			t.Errorf("FormOf(%q) = %s, want %s", in, got, want)
		}
	}
}

func TestCase13IsBinary(t *testing.T) {
	t.Parallel()
	b, err := base64.StdEncoding.DecodeString("CglvcmRlci01NTIQwcQHGgMA//4iBeKCrAAB")
	if err != nil {
		t.Fatal(err)
	}
	v := Payload(b)
	if v.Form != FormBinary || v.Size != 27 || string(v.Redacted) != string(b) {
		t.Errorf("got %+v", v)
	}
	secret := append([]byte("\x00\xffpassword=hunter2"), b...)
	v = Payload(secret)
	if len(v.Redacted) != len(secret) || strings.Contains(string(v.Redacted), "hunter2") || v.Hidden != 1 {
		t.Errorf("got %q", v.Redacted)
	}
}

func TestCase15(t *testing.T) {
	t.Parallel()
	headers, err := ParseHeaders(load(t, "15").Headers)
	if err != nil {
		t.Fatal(err)
	}
	got := Headers(headers)
	want := []ShownHeader{
		{Name: "kafka_dlt-original-topic", Value: "payments", Form: "text"},
		{Name: "kafka_dlt-original-topic", Value: "payments-retry-0", Form: "text"},
		{Name: "kafka_dlt-original-partition", Value: "2", Form: "int32"},
		{Name: "kafka_dlt-original-offset", Value: "918273645", Form: "int64"},
		{Name: "kafka_dlt-original-timestamp", Value: "1773536400123", Form: "int64", Note: "2026-03-15T01:00:00.123Z"},
		{Name: "kafka_dlt-original-timestamp-type", Value: "CreateTime", Form: "text"},
		{Name: "kafka_dlt-exception-fqcn", Value: "org.springframework.kafka.listener.ListenerExecutionFailedException", Form: "text"},
		{Name: "kafka_dlt-exception-cause-fqcn", Value: "test.pay.BalanceException", Form: "text"},
		{Name: "account", Value: "0042", Form: "text"},
		{Name: "trace", Value: "00ff80", Form: "hex"},
		{Name: "empty", Form: "empty"},
		{Name: "nothing", Form: "null"},
	}
	if len(got) != len(want) {
		t.Fatalf("%d headers", len(got))
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("got  %+v\nwant %+v", got[i], want[i])
		}
	}
}

func TestCase24IsFast(t *testing.T) {
	t.Parallel()
	c := load(t, "24")
	best := time.Hour
	for range 3 {
		start := time.Now()
		c.readable(t)
		best = min(best, time.Since(start))
	}
	t.Logf("%v", best)
	if best > 100*time.Millisecond {
		t.Errorf("redacting case 24 took %v", best)
	}
}

func TestParseHeaders(t *testing.T) {
	t.Parallel()
	headers, err := ParseHeaders(json.RawMessage(`{"b":1,"a":"x","b":12345678901234567890,"n":null,"t":true,"j":{"k":[1E3]},"e":""}`))
	if err != nil {
		t.Fatal(err)
	}
	want := []ShownHeader{
		{Name: "b", Value: "1", Form: "number"}, {Name: "a", Value: "x", Form: "text"},
		{Name: "b", Value: "12345678901234567890", Form: "number"}, {Name: "n", Form: "null"},
		{Name: "t", Value: "true", Form: "bool"}, {Name: "j", Value: `{"k":[1E3]}`, Form: "json"}, {Name: "e", Form: "empty"},
	}
	for i, got := range Headers(headers) {
		if got != want[i] {
			t.Errorf("got %+v, want %+v", got, want[i])
		}
	}
	for in, place := range map[string]string{
		`"x"`: "object", `[["a"]]`: "headers[0]", `[["a",1],[2,3]]`: "headers[1]", `{"a":{"base64":"!"}}`: "headers[0]", `{"a"`: "valid JSON",
	} {
		if _, err := ParseHeaders(json.RawMessage(in)); err == nil || !strings.Contains(err.Error(), place) {
			t.Errorf("ParseHeaders(%s): %v", in, err)
		}
	}
	for _, in := range []string{"", "null", "{}", "[]"} {
		if h, err := ParseHeaders(json.RawMessage(in)); err != nil || len(h) != 0 {
			t.Errorf("ParseHeaders(%q) = %v, %v", in, h, err)
		}
	}
}
