package filter

import (
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/redrive-dlq/redrive/dlq/problem"
)

func TestParse(t *testing.T) {
	t.Parallel()
	day := func(s string) time.Time {
		at, err := time.Parse(time.DateOnly, s)
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	tests := map[string]Filter{
		"":                           {},
		"  \t ":                      {},
		"type:send_welcome_email":    {Types: []string{"send_welcome_email"}},
		"TYPE:A":                     {Types: []string{"A"}},
		"status:open,Snoozed":        {Status: []string{"open", "snoozed"}},
		"-status:open":               {Not: Not{Status: []string{"open"}}},
		"type:b,a -type:c -type:d":   {Types: []string{"a", "b"}, Not: Not{Types: []string{"c", "d"}}},
		`class:"a, \"b\" \\",c`:      {Classes: []string{`a, "b" \`, "c"}},
		"key:send:invoice_1:r_2":     {Keys: []string{"send:invoice_1:r_2"}},
		"job:-1 entity:order:8821":   {JobIDs: []string{"-1"}, Entities: []string{"order:8821"}},
		"older:2d newer:1w":          {Older: 48 * time.Hour, Newer: 7 * 24 * time.Hour},
		"newer:2026-01-31 older:90m": {From: day("2026-01-31"), Older: 90 * time.Minute},
	}
	for text, want := range tests {
		got, err := Parse(text)
		if err != nil {
			t.Errorf("Parse(%q): %v", text, err)
			continue
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("Parse(%q) (-want +got):\n%s", text, diff)
		}
	}
}

func TestParsePointsAtTheWrongWord(t *testing.T) {
	t.Parallel()
	tests := []struct {
		text, at, suggestion, says string
	}{
		{"type:a stauts:open", "stauts", "status:", "position 8"},
		{"environment:production", "environment", "env:", "Did you mean env:?"},
		{"status:opne", "opne", "open", "position 8"},
		{"category:missing-state", "missing-state", "missing_state", "Did you mean missing_state?"},
		{"type:", "", "", "no value"},
		{"type:a,", "", "", "no value"},
		{`type:"a`, `"a`, "", "never closed"},
		{`type:"a"b`, "b", "", "space or a comma"},
		{"é type:a", "é", "", "position 1"},
		{"type:a open", "open", "status:open", "status:open"},
		{"timeout", "timeout", "", "field:value"},
		{"older:soon", "soon", "2d", "age like"},
		{"older:0d", "0d", "2d", "age like"},
		{"older:99999999w", "99999999w", "2d", "age like"},
		{"-older:2d", "-older:", "newer:", "newer:"},
		{"type:a type:b", "type:b", "", "twice"},
		{"older:1d older:2d", "older:2d", "", "twice"},
		{"type:a\x00", "\x00", "", "NUL"},
		{"type:\xff", "", "", "UTF-8"},
		{strings.Repeat("x", MaxBytes+1), "", "", "longer"},
	}
	for _, test := range tests {
		_, err := Parse(test.text)
		var p *problem.Error
		var syntax *SyntaxError
		if !errors.As(err, &p) || !errors.As(err, &syntax) {
			t.Errorf("Parse(%.40q) = %v, want a problem with a SyntaxError", test.text, err)
			continue
		}
		if p.Code != problem.Invalid || p.Field != "q" || !strings.Contains(p.Message, test.says) {
			t.Errorf("Parse(%.40q): %+v, want a message with %q", test.text, p, test.says)
		}
		if at := test.text[syntax.Offset : syntax.Offset+syntax.Length]; at != test.at || syntax.Suggestion != test.suggestion {
			t.Errorf("Parse(%.40q) points at %q and suggests %q, want %q and %q", test.text, at, syntax.Suggestion, test.at, test.suggestion)
		}
	}
}

func TestErrorsDontRepeatSecrets(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"alex@example.com:x", "status:alex@example.com", "password=hunter2hunter2:x", "password=hunter2hunter2"} {
		_, err := Parse(text)
		if err == nil {
			t.Errorf("Parse(%q) succeeded", text)
		} else if strings.Contains(err.Error(), "alex@") || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("Parse(%q) repeats it: %v", text, err)
		}
	}
}

// drawFilter makes any filter that the language can say.
func drawFilter(t *rapid.T) Filter {
	var f Filter
	value := rapid.OneOf(
		rapid.SampledFrom([]string{"a", "b c", `"`, `\`, `\"`, "a,b", "-x", "é:ü", "older:2d", " ", "\u00a0", "\n", ":"}),
		rapid.StringMatching(`[ -~]{1,12}`),
	)
	for _, info := range fields {
		v := value
		if info.words != nil {
			v = rapid.SampledFrom(info.words)
		}
		lists := rapid.SliceOfN(v, 0, 3)
		*info.is(&f) = lists.Draw(t, string(info.field))
		*info.not(&f) = lists.Draw(t, "not "+string(info.field))
	}
	moment := rapid.Custom(func(t *rapid.T) time.Time {
		s := rapid.Int64Range(0, 4e9).Draw(t, "s")
		if rapid.Bool().Draw(t, "date") {
			s -= s % 86400
		}
		return time.Unix(s, rapid.SampledFrom([]int64{0, 1000, 999999000}).Draw(t, "ns")).UTC()
	})
	if rapid.Bool().Draw(t, "from") {
		f.From = moment.Draw(t, "from")
	}
	if rapid.Bool().Draw(t, "to") {
		f.To = moment.Draw(t, "to")
	}
	age := rapid.Custom(func(t *rapid.T) time.Duration {
		return time.Duration(rapid.IntRange(0, 3e6).Draw(t, "age")) * time.Second
	})
	f.Newer, f.Older = age.Draw(t, "newer"), age.Draw(t, "older")
	return f.normal()
}

func TestFilterRoundTrips(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		f := drawFilter(t)
		back, err := Parse(f.String())
		if err != nil {
			t.Fatalf("Parse(%q): %v", f.String(), err)
		}
		if diff := cmp.Diff(f, back); diff != "" {
			t.Fatalf("through %q (-want +got):\n%s", f.String(), diff)
		}
		values, err := url.ParseQuery(f.Values().Encode())
		if err != nil {
			t.Fatal(err)
		}
		back, err = FromValues(values)
		if err != nil {
			t.Fatalf("FromValues(%v): %v", values, err)
		}
		if diff := cmp.Diff(f, back); diff != "" {
			t.Fatalf("through %v (-want +got):\n%s", values, diff)
		}
		if back.Hash() != f.Hash() {
			t.Fatal("equal filters have different hashes")
		}
	})
}

func TestFromValues(t *testing.T) {
	t.Parallel()
	v := url.Values{"q": {"class:TimeoutError"}, "status": {"open"}, "type": {""}, "from": {"2026-01-01"}, "to": {"2026-01-31"}, "cursor": {"x"}}
	f, err := FromValues(v)
	if err != nil {
		t.Fatal(err)
	}
	want := Filter{Classes: []string{"TimeoutError"}, Status: []string{"open"},
		From: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), To: time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)}
	if diff := cmp.Diff(want, f); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for field, v := range map[string]url.Values{
		"q":      {"q": {"nope"}},
		"status": {"status": {"opened"}},
		"type":   {"q": {"type:a"}, "type": {"b"}},
		"from":   {"from": {"yesterday"}},
		"to":     {"to": {"2026-01-31"}, "q": {"older:2026-01-01"}},
		"job":    {"job": {"a\x00"}},
		"class":  {"class": {strings.Repeat("c", maxValue+1)}},
	} {
		_, err := FromValues(v)
		var p *problem.Error
		if !errors.As(err, &p) || p.Code != problem.Invalid || p.Field != field {
			t.Errorf("FromValues(%v) = %v, want a problem at %s", v, err, field)
		}
	}
}

func TestCheckShareable(t *testing.T) {
	t.Parallel()
	if err := (Filter{Tenants: []string{"alex@example.com"}}).CheckShareable(); !problem.Is(err, problem.Invalid) {
		t.Errorf("an address as a tenant: %v, want Invalid", err)
	}
	if err := (Filter{Keys: []string{"welcome:alex@example.com"}, Types: []string{"reset_password"}}).CheckShareable(); err != nil {
		t.Errorf("a key: %v", err)
	}
}

func TestPossibleAndCounted(t *testing.T) {
	t.Parallel()
	f := Filter{Status: []string{"open", "snoozed"}, Not: Not{Status: []string{"open"}, Fingerprints: []string{"x"}}}
	if diff := cmp.Diff([]string{"snoozed"}, f.Possible()); diff != "" {
		t.Error(diff)
	}
	if !f.Counted() {
		t.Error("a filter by status and group is counted")
	}
	for _, f := range []Filter{{Classes: []string{"x"}}, {Not: Not{Keys: []string{"x"}}}, {Older: time.Hour}} {
		if f.Counted() {
			t.Errorf("%v is not counted", f)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"type:a -status:open", `class:"a b",c`, "older:2d newer:2026-01-31T10:00:00Z", "x", `"`, "-", ":", "a:\"\\"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		parsed, err := Parse(text)
		if err != nil {
			var syntax *SyntaxError
			if !errors.As(err, &syntax) || syntax.Offset < 0 || syntax.Length < 0 || syntax.Offset+syntax.Length > len(text) {
				t.Fatalf("Parse(%q) = %#v, %v: points outside the text", text, syntax, err)
			}
			return
		}
		back, err := Parse(parsed.String())
		if err != nil {
			t.Fatalf("Parse(%q): %v", parsed.String(), err)
		}
		if diff := cmp.Diff(parsed, back); diff != "" {
			t.Fatalf("%q through %q:\n%s", text, parsed.String(), diff)
		}
	})
}
