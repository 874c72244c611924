package group_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/redrive-dlq/redrive/dlq/failure"
	"github.com/redrive-dlq/redrive/dlq/group"
)

func TestFold(t *testing.T) {
	t.Parallel()
	tests := []struct{ in, want string }{
		{"no customer 4711", "no customer ‹n›"},
		{"invoice inv-16 of 41111111-1111-4111-8111-111111111111", "invoice inv-‹n› of ‹id›"},
		{"pointer 0xc000123abc", "pointer ‹id›"},
		{"commit 5f36b2ea290645ee34d943220a14b54ee5ea5be5", "commit ‹id›"},
		{"duplicate rows: b6589fc6ab0d 356a192b7913 da4b9237bacc", "duplicate rows: ‹id›"},
		{"rows 1, 2, 3 of 9", "rows ‹n› of ‹n›"},
		{`template said "hello 'you'" & stopped`, "template said ‹text› & stopped"},
		{"can't find user's file 'a b'", "can't find user's file ‹text›"},
		{"invalid recipient: alex@@example.com", "invalid recipient: ‹email›"},
		{"invalid recipient: lena.hofer@example.com.", "invalid recipient: ‹email›."},
		{"invalid recipient: dana@example..com", "invalid recipient: ‹email›"},
		{"invalid recipient: d•••@example..org now", "invalid recipient: ‹email› now"},
		{"provider answered 503 for order 503", "provider answered 503 for order ‹n›"},
		{"dial tcp 127.0.0.1:5432: refused", "dial tcp ‹id›: refused"},
		{"at 2026-03-15T01:00:00.123Z late", "at ‹time› late"},
		{"\x1b[31mFAIL\x1b[0m step\r\n lint", "FAIL step lint"},
		{"GET https://api.example.test/v1/people/17?email=x@y.test&page=2 -> 500", "GET https://api.example.test/v‹n›/people/‹n›?‹query› -> 500"},
		{"password=hunter2 refused", "password=‹password› refused"},
		{"card 4111111111111111 declined", "card ‹card› declined"},
		{"", ""},
	}
	for _, tt := range tests {
		t.Run(tt.in, func(t *testing.T) {
			t.Parallel()
			if got := group.Fold(tt.in); got != tt.want {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
}

func TestTopFrame(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, in, want string }{
		{"go", "goroutine 7 [running]:\nruntime.panic(0x1)\n\t/usr/local/go/src/runtime/panic.go:88 +0x1\nmain.send(0xc0001)\n\t/srv/app/send.go:12 +0x1d", "/srv/app/send.go"},
		{"js", "Error: x\n  at node_modules/pg/a.js:1:2\n  at push (worker/push.js:40:7)", "at push (worker/push.js)"},
		{"java", "at org.springframework.kafka.A.b(A.java:1)\n\tat test.pay.Balance.check(Balance.java:17)", "at test.pay.Balance.check(Balance.java)"},
		{"python", "Traceback (most recent call last):\n  File \"main.py\", line 3, in run\n  File \"tasks.py\", line 12, in recalc\nValueError: bad", "File \"tasks.py\", in recalc"},
		{"ruby", "app/jobs/sync.rb:12:in 'perform'", "app/jobs/sync.rb:in 'perform'"},
		{"libraries only", "at java.util.A.b(A.java:1)", "at java.util.A.b(A.java)"},
		{"no frames", "curl -H \"Authorization: Bearer Zp4vQm9tLx2sKd7yRb1nHw6c\" https://api.example.test", ""},
		{"secret", "at f(app.js?token=abc:1)", "at f(app.js?token=‹token›)"},
		{"empty", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := group.TopFrame(tt.in); got != tt.want {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
}

func base() failure.Failure {
	return failure.Failure{Class: "HttpError", Message: "no customer 4711", Stack: "at push (worker/push.js:40:7)"}
}

func TestFingerprintTellsFailuresApart(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	add := func(name, jobType string, f failure.Failure) {
		print, _ := group.Fingerprint(jobType, f)
		if len(print) != 32 || strings.Trim(print, "0123456789abcdef") != "" {
			t.Errorf("%s: %q is not 32 hexadecimal digits", name, print)
		}
		if other, dup := seen[print]; dup {
			t.Errorf("%s and %s share a fingerprint", name, other)
		}
		seen[print] = name
	}
	add("base", "sync", base())
	add("type", "send", base())
	f := base()
	f.Class = "TimeoutError"
	add("class", "sync", f)
	f = base()
	f.Causes = []failure.Cause{{Class: "Root"}}
	add("cause's class", "sync", f)
	f = base()
	f.Message = "no invoice 4711"
	add("message", "sync", f)
	f = base()
	f.Message = "answered 503"
	add("status 503", "sync", f)
	f.Message = "answered 404"
	add("status 404", "sync", f)
	f = base()
	f.Stack = "at pull (worker/pull.js:40:7)"
	add("frame", "sync", f)
}

func TestFingerprintIgnoresWhatVaries(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		draw := func(label string) (failure.Failure, string) {
			n := rapid.IntRange(0, 1e9).Draw(t, label+" n")
			uuid := rapid.StringMatching(`[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}`).Draw(t, label+" uuid")
			// With one digit and one letter at least: all letters is a word.
			id := rapid.StringMatching(`[0-9][0-9a-f]{10}[a-f]`).Draw(t, label+" hex")
			mail := rapid.StringMatching(`[a-z]{1,8}[.][a-z]{1,8}@[a-z]{2,8}[.](com|test)`).Draw(t, label+" mail")
			quoted := rapid.StringMatching(`[a-zA-Z ]{1,20}`).Draw(t, label+" quoted")
			secret := rapid.StringMatching(`[A-Za-z0-9]{8,30}`).Draw(t, label+" secret")
			line := rapid.IntRange(1, 9999).Draw(t, label+" line")
			return failure.Failure{
				Class:   "HttpError",
				Message: fmt.Sprintf("no customer %d (%s, row %s) for %s named %q, token=%s, at 0x%x", n, uuid, id, mail, quoted, secret, n+1),
				Stack:   fmt.Sprintf("at push (worker/push.js:%d:7)", line),
			}, secret
		}
		f, _ := draw("a")
		g, secret := draw("b")
		a, ta := group.Fingerprint("sync", f)
		b, tb := group.Fingerprint("sync", g)
		if a != b {
			t.Fatalf("%q and %q differ", ta, tb)
		}
		if strings.Contains(tb, secret) {
			t.Fatalf("%q holds the secret %q", tb, secret)
		}
	})
}

func TestFingerprintIgnoresColours(t *testing.T) {
	t.Parallel()
	plain, coloured := base(), base()
	coloured.Message = "\x1b[31mno customer\x1b[0m 4712"
	a, _ := group.Fingerprint("sync", plain)
	b, _ := group.Fingerprint("sync", coloured)
	if a != b {
		t.Error("terminal codes split the group")
	}
}

func TestFingerprintIsBounded(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("testdata/24-long-error-and-near-miss-text.json")
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Attempts []struct {
			Class   string `json:"error_class"`
			Message string
			Stack   string
		}
	}
	if err := json.Unmarshal(b, &doc); err != nil {
		t.Fatal(err)
	}
	a := doc.Attempts[0]
	start := time.Now()
	print, template := group.Fingerprint("log.parse", failure.Failure{Class: a.Class, Message: a.Message, Stack: a.Stack})
	if took := time.Since(start); took > 100*time.Millisecond {
		t.Errorf("took %v", took)
	}
	if len(print) != 32 || template != "duplicate rows: ‹id›" {
		t.Errorf("got %s %q", print, template)
	}
	huge := strings.Repeat("x y ", 1<<18)
	if _, template := group.Fingerprint("t", failure.Failure{Class: huge, Message: huge, Stack: huge}); len(template) > 2100 {
		t.Errorf("a template of %d bytes", len(template))
	}
}

func FuzzFold(f *testing.F) {
	for _, s := range []string{"no customer 4711", "a@b.test ‹x 'q' \"", "?a=1", "0x", "‹card ••1111›"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		once := group.Fold(s)
		if print, _ := group.Fingerprint("t", failure.Failure{Message: s, Stack: s}); len(print) != 32 {
			t.Errorf("%q", print)
		}
		if strings.ContainsRune(once, 0) || strings.ContainsRune(once, 0x1b) {
			t.Errorf("control characters in %q", once)
		}
	})
}
