package redact

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// plants are places where a secret may stand; %s is the secret.
var plants = []string{
	"Bearer %s", "authorization: Bearer %s", "Authorization: Token %s", "token=%s", "password: %s", "password='%s'",
	`"api_key": "%s"`, `{'secret': '%s'}`, `{\"clientSecret\":\"%s\"}`, "https://a.test/cb?code=%s&state=ok",
	"https://a.test/cb?x=1&access_token=%s", "postgres://app:%s@db.test/x", "https://%s@git.test/x", "Cookie: sid=%s; theme=dark",
	"--password %s --verbose", "<token>%s</token>", "x-api-key: %s", "DB_PASS=%s", ":password=>\"%s\"", "PGPASSWORD=%s psql",
	"app:%s@tcp(db:3306)/x", "eyJhbGciOiJIUzI1NiJ9.%s.c2ln", "sk_live_1A%s", "?X-Amz-Signature=%s", "Password=%s;Server=db",
}

func TestPlantedSecretsNeverSurvive(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		secret := rapid.StringMatching(`[A-Za-z]{3}[0-9][A-Za-z0-9_-]{12,40}`).Draw(t, "secret")
		before := rapid.StringMatching(`([a-z0-9.,;:()'-]{1,9} ){0,4}`).Draw(t, "before")
		after := rapid.StringMatching(`( [a-zA-Z0-9.,;:()]{1,9}){0,4}`).Draw(t, "after")
		text := before + fmt.Sprintf(rapid.SampledFrom(plants).Draw(t, "plant"), secret) + after
		out := Text(text)
		if strings.Contains(out, secret) {
			t.Fatalf("%q left in %q", secret, out)
		}
		if again := Text(out); again != out {
			t.Fatalf("not stable: %q, then %q", out, again)
		}
		doc, err := json.Marshal(map[string]any{"list": []any{text, 1, map[string]any{"m": text}}, text: nil})
		if err != nil {
			t.Fatal(err)
		}
		red, report := JSON(doc)
		if strings.Contains(string(red), secret) || !json.Valid(red) || report.Hidden < 3 {
			t.Fatalf("%q left in %s (%+v)", secret, red, report)
		}
	})
}

// TestManySecretsInOneText plants several at once, between quotes, brackets and
// escapes that don't belong together.
func TestManySecretsInOneText(t *testing.T) {
	t.Parallel()
	noise := []string{" ", "\n", ", ", " & ", "; ", " \"", " x' ", " {", "} ", " [", ") ", ` \n`, ` \\\" `, " ‹ ", " @@ ", " :// ", " = ", " 10:30@noon ", " a@b "}
	rapid.Check(t, func(t *rapid.T) {
		var text strings.Builder
		var secrets []string
		for range rapid.IntRange(2, 6).Draw(t, "n") {
			secret := rapid.StringMatching(`[A-Za-z]{3}[0-9][A-Za-z0-9]{12,20}`).Draw(t, "secret")
			secrets = append(secrets, secret)
			text.WriteString(rapid.SampledFrom(noise).Draw(t, "noise"))
			text.WriteString(fmt.Sprintf(rapid.SampledFrom(plants).Draw(t, "plant"), secret))
		}
		out := Text(text.String())
		for _, s := range secrets {
			if strings.Contains(out, s) {
				t.Fatalf("%q became %q, which holds %q", text.String(), out, s)
			}
		}
		if again := Text(out); again != out {
			t.Fatalf("%q, then\n%q, then\n%q", text.String(), out, again)
		}
	})
}

// TestOddPasswords plants passwords of any printable characters in quotes of
// their own kind.
func TestOddPasswords(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		secret := rapid.StringMatching(`[!-~]{6,30}`).Filter(func(s string) bool {
			return strings.Trim(s, "*") != ""
		}).Draw(t, "secret")
		doc, err := json.Marshal(map[string]string{"db_password": secret})
		if err != nil {
			t.Fatal(err)
		}
		if out, _ := JSON(doc); string(out) != `{"db_password":"‹password›"}` {
			t.Fatalf("%s", out)
		}
		if out := Text(string(doc)); out != `{"db_password":"‹password›"}` {
			t.Fatalf("as text: %s", out)
		}
		nested, err := json.Marshal(map[string]string{"body": string(doc)})
		if err != nil {
			t.Fatal(err)
		}
		if out, _ := JSON(nested); string(out) != `{"body":"{\"db_password\":\"‹password›\"}"}` {
			t.Fatalf("nested: %s", out)
		}
		if out := Text(string(nested)); out != `{"body":"{\"db_password\":\"‹password›\"}"}` {
			t.Fatalf("nested, as text: %s", out)
		}
	})
}

func TestIdentifiersStay(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		parts := []string{
			rapid.StringMatching(`[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}`).Draw(t, "uuid"),
			rapid.StringMatching(`[0-9a-f]{39}[a-f]`).Draw(t, "sha1"),
			fmt.Sprint(rapid.Int64Range(1e12, 2e12).Draw(t, "ms")),
			fmt.Sprint(rapid.Int64Range(0, 1e10).Draw(t, "number")),
			rapid.StringMatching(`(send|sync|charge|cvc)_(email|card|invoice|contact):(user|invoice|order)_[0-9]{1,6}:r_[0-9]{1,4}`).Draw(t, "idempotency key"),
			time.Unix(rapid.Int64Range(1e9, 2e9).Draw(t, "s"), 0).UTC().Format(time.RFC3339Nano),
			rapid.StringMatching(`[0-9A-HJKMNP-TV-Z]{26}`).Filter(func(s string) bool { return !strings.HasPrefix(s, "AKIA") }).Draw(t, "ulid"),
			rapid.StringMatching(`[a-z]{2,8}/[a-z]{2,8}\.go:[0-9]{1,4}`).Draw(t, "frame"),
		}
		text := "job " + strings.Join(parts, ", id ")
		if out := Text(text); out != text {
			t.Fatalf("%q became %q", text, out)
		}
		doc, _ := json.Marshal(map[string]any{"ids": parts, "idempotency_key": parts[4], "job_id": parts[0]})
		if out, _ := JSON(doc); string(out) != string(doc) {
			t.Fatalf("%s became %s", doc, out)
		}
	})
}

// TestLinear compares an input with one eight times as long: what is quadratic
// takes 64 times as long.
func TestLinear(t *testing.T) {
	t.Parallel()
	units := []string{
		"://", "a:b@", "x://a:b/", "@@", "%40", "a%40", "password=", "token='", "\x1b]", "eyJ", "1 1 ", "-----BEGIN ", "--password ",
		"cookie: a=b;", "{\"a\":", "\"", "\\", "[", "a.b@c.d ", "<a>", "secret.", "Bearer ", "4111 ", "DE89 ", "‹", "key ", "=,=", ":\\n", "a=b&",
		"password={", "token=(\"", "?code=", "authorization:", "Basic YTpi ", "password=,a", "'='", "Ab1", "://u:p", "app:x@h:",
	}
	for _, unit := range units {
		t.Run(unit, func(t *testing.T) {
			measure := func(n int) time.Duration {
				in := strings.Repeat(unit, n/len(unit))
				best := time.Hour
				for range 3 {
					start := time.Now()
					Readable(in)
					JSON([]byte(in))
					best = min(best, time.Since(start))
				}
				return best
			}
			small, large := measure(64<<10), measure(512<<10)
			// Generous, since other programs share the processors; quadratic
			// cost would be minutes.
			if large > 24*small && large > time.Second {
				t.Errorf("64 KB took %v, 512 KB took %v", small, large)
			}
		})
	}
}

func FuzzText(f *testing.F) {
	for _, p := range plants {
		f.Add(fmt.Sprintf(p, "Zp4vQm9tLx2s"))
	}
	f.Add("card 5555 5555 5555 4444 cvv 123 DE89 3704 0044 0532 0130 00 alex@@example.com")
	f.Fuzz(func(t *testing.T, s string) {
		out := Text(s)
		if again := Text(out); again != out {
			t.Errorf("not stable:\nin    %q\nonce  %q\ntwice %q", s, out, again)
		}
		if utf8.ValidString(s) && !utf8.ValidString(out) {
			t.Errorf("%q became invalid: %q", s, out)
		}
	})
}

func FuzzJSON(f *testing.F) {
	f.Add([]byte(`{"password":"x","a":[1,{"b":"Bearer Zp4vQm9tLx2s"}],"c":4111111111111111}`))
	f.Add([]byte(`{"name":"token","value":{"a":"\ud800\u0000"}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		out, report := JSON(b)
		if json.Valid(b) && utf8.Valid(b) && !json.Valid(out) {
			t.Errorf("%q became invalid: %q (%+v)", b, out, report)
		}
		if v := Payload(b); v.Form == FormBinary && len(v.Redacted) != len(b) {
			t.Errorf("%q changed its length", b)
		}
	})
}

func FuzzVisible(f *testing.F) {
	f.Add("\x1b[1m\x1b]8;;http://a\x1b\\x\x1b]8;;\a\u009b1m\x00\u202e\xff")
	f.Fuzz(func(t *testing.T, s string) {
		out := Visible(s)
		if !utf8.ValidString(out) {
			t.Errorf("invalid: %q", out)
		}
		if i := strings.IndexFunc(out, func(r rune) bool { return r < 0x20 && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 }); i >= 0 {
			t.Errorf("control character in %q", out)
		}
		if again := Visible(out); again != out {
			t.Errorf("not stable: %q, then %q", out, again)
		}
	})
}

var sink string

func BenchmarkStack(b *testing.B) {
	stack := strings.Repeat("  at push.step0(worker/push.go:40)\n", 30)[:1024]
	b.SetBytes(int64(len(stack)))
	for b.Loop() {
		sink = Readable(stack)
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N), "µs/KB")
}

func BenchmarkJSON(b *testing.B) {
	row := `{"order_id":7031908301661318,"to":"lena.hofer@example.com","note":"row \"x\" of 12","at":"2026-03-18T01:00:00Z","token":"Zp4vQm9t"},`
	doc := []byte("[" + strings.Repeat(row, 64<<10/len(row)) + "1]")
	b.SetBytes(int64(len(doc)))
	for b.Loop() {
		out, _ := JSON(doc)
		sink = string(out[:1])
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/(float64(len(doc))/1024), "µs/KB")
}
