package redact

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

func TestJSON(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, in, want string
		paths          []string
	}{
		{"nothing", `{"a": 1.10, "b":[1E3,-0.0, 1e400 ]}`, "", nil},
		{"by key", `{"user":"app", "password" : "hunter2","n":9007199254740993}`, `{"user":"app", "password" : "‹password›","n":9007199254740993}`, []string{"/password"}},
		{"key styles", `{"apiKey":"a","X-Api-Key":"b","db_password":"c","clientSecret":"d"}`, `{"apiKey":"‹key›","X-Api-Key":"‹key›","db_password":"‹password›","clientSecret":"‹secret›"}`, []string{"/apiKey", "/X-Api-Key", "/db_password", "/clientSecret"}},
		{"escaped key", `{"p\u0061ssword":"hunter2"}`, `{"p\u0061ssword":"‹password›"}`, []string{`/password`}},
		{"repeated keys", `{"token":"a","token":"b","x":1,"x":2}`, `{"token":"‹token›","token":"‹token›","x":1,"x":2}`, []string{"/token", "/token"}},
		{"whole object", `{"credentials":{"user":"a","n":[1,"}"]},"b":1}`, `{"credentials":"‹secret›","b":1}`, []string{"/credentials"}},
		{"number", `{"cvv":123,"pin":1234,"max_tokens":512}`, `{"cvv":"‹cvv›","pin":"‹password›","max_tokens":512}`, []string{"/cvv", "/pin"}},
		{"empty values", `{"password":"","token":null,"secret":false,"cookie":{}}`, "", nil},
		{"weak", `{"auth":{"user":"app","password":"x1"},"pass":12,"session":"Xy12"}`, `{"auth":{"user":"app","password":"‹password›"},"pass":12,"session":"‹cookie›"}`, []string{"/auth/password", "/session"}},
		{"authorization", `{"headers":{"Authorization":"Bearer abc","cookie":"sid=1; theme=dark"}}`, `{"headers":{"Authorization":"Bearer ‹token›","cookie":"sid=‹cookie›; theme=dark"}}`, []string{"/headers/Authorization", "/headers/cookie"}},
		{"name and value", `[{"name":"api_key","value":"abc"},{"name":"city","value":"Ulm"}]`, `[{"name":"api_key","value":"‹key›"},{"name":"city","value":"Ulm"}]`, []string{"/0/value"}},
		{"mail", `{"to_email":"alex@@example.com"}`, `{"to_email":"a•••@@example.com"}`, []string{"/to_email"}},
		{"mail as key", `{"lena@example.com":1}`, `{"l•••@example.com":1}`, []string{"/l•••@example.com"}},
		{"cards", `{"pan":"4111111111111111","n":5555555555554444,"id":7031908301661318}`, `{"pan":"‹card ••1111›","n":"‹card ••4444›","id":7031908301661318}`, []string{"/pan", "/n"}},
		{"nested document", `{"body":"{\"password\":\"a b\",\"n\":1}"}`, `{"body":"{\"password\":\"‹password›\",\"n\":1}"}`, []string{"/body"}},
		{"nul", `{"preview":"PDF?\u0000\r","p":"write \\u0000","m":"\u0000 token=abc"}`, `{"preview":"PDF?\u0000\r","p":"write \\u0000","m":"\u0000 token=‹token›"}`, []string{"/m"}},
		{"pointer", `{"a/b":[0,{"~":{"token":"x1"}}]}`, `{"a/b":[0,{"~":{"token":"‹token›"}}]}`, []string{"/a~1b/1/~0/token"}},
		{"scalar", `"Bearer Zp4vQm9tLx2s"`, `"Bearer ‹token›"`, []string{""}},
		{"keys that stay", `{"idempotency_key":"send:1","author":"x","code":"Qm3","token_count":3,"primary_key":"a"}`, "", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			want := tt.want
			if want == "" {
				want = tt.in
			}
			out, report := JSON([]byte(tt.in))
			if string(out) != want {
				t.Errorf("JSON(%s)\n got %s\nwant %s", tt.in, out, want)
			}
			if !json.Valid(out) {
				t.Errorf("not valid: %s", out)
			}
			if report.Hidden != len(tt.paths) || !slices.Equal(report.Paths, tt.paths) {
				t.Errorf("hidden %d at %q, want %q", report.Hidden, report.Paths, tt.paths)
			}
			if again, _ := JSON(out); string(again) != string(out) {
				t.Errorf("not stable: %s, then %s", out, again)
			}
		})
	}
}

func TestJSONFailsClosed(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("[", MaxDepth+1) + `"hunter2"` + strings.Repeat("]", MaxDepth+1)
	out, report := JSON([]byte(deep))
	if strings.Contains(string(out), "hunter2") || report.Reason == "" || report.Hidden == 0 || !json.Valid(out) {
		t.Errorf("deep: %.80s %+v", out, report)
	}
	if v := Payload([]byte(strings.Repeat(`{"a":`, 100_000))); strings.Contains(string(v.Redacted), "{") || v.Reason == "" {
		t.Errorf("100,000 deep: %.80s %q", v.Redacted, v.Reason)
	}
	out, report = JSON([]byte(strings.Repeat(" ", MaxBytes) + `"hunter2"`))
	if len(out) > 200 || report.Reason == "" || !json.Valid(out) {
		t.Errorf("long: %d bytes, %+v", len(out), report)
	}
	out, report = JSON([]byte(`{"password":"hunter2`))
	if strings.Contains(string(out), "hunter2") || report.Reason == "" {
		t.Errorf("cut short: %s %+v", out, report)
	}
}

func TestStorable(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{"a":"x\u0000y"}`:            `{"a":"x\u2400y"}`,
		`{"a":"\\u0000"}`:             `{"a":"\\u0000"}`,
		`{"a":"\ud800 \ud83d\ude00"}`: `{"a":"\ufffd \ud83d\ude00"}`,
		`{"a":"\udc00\u00e9"}`:        `{"a":"\ufffd\u00e9"}`,
		`{"a":1E3}`:                   `{"a":1E3}`,
	} {
		if got := string(Storable([]byte(in))); got != want {
			t.Errorf("Storable(%s) = %s, want %s", in, got, want)
		}
	}
}
