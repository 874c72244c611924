package dlq

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestEditFind(t *testing.T) {
	t.Parallel()
	doc := []byte(` {"a" : {"b/c": [1, {"é": "x\"y"}, null]}, "m~n":true, "":-1.5e3 , "dup":1,"dup":"2","k\u0061":"esc" } `)
	for pointer, want := range map[string]struct {
		text, kind string
		found      int
	}{
		"":            {strings.TrimSpace(string(doc)), EditObject, 1},
		"/a/b~1c/0":   {"1", EditNumber, 1},
		"/a/b~1c/1/é": {`"x\"y"`, EditString, 1},
		"/a/b~1c/2":   {"null", EditNull, 1},
		"/m~0n":       {"true", EditBoolean, 1},
		"/":           {"-1.5e3", EditNumber, 1},
		"/dup":        {`"2"`, EditString, 2},
		"/ka":         {`"esc"`, EditString, 1},
		"/a/b~1c":     {`[1, {"é": "x\"y"}, null]`, EditArray, 1},
		"/a/b~1c/01":  {"", "", 0},
		"/a/b~1c/3":   {"", "", 0},
		"/m~0n/x":     {"", "", 0},
		"a":           {"", "", 0},
		"/m~n":        {"", "", 0},
	} {
		at, found := editFind(doc, pointer)
		if found != want.found || at.kind != want.kind || string(doc[at.start:at.end]) != want.text {
			t.Errorf("%q: %d × %s %q, want %d × %s %q", pointer, found, at.kind, doc[at.start:at.end], want.found, want.kind, want.text)
		}
	}
}

// FuzzEditFind: the walker agrees with encoding/json about what stands where,
// and no document makes it run away.
func FuzzEditFind(f *testing.F) {
	for _, seed := range []string{`{"a":[{"b":1}]}`, `"\ud83d\ude00"`, `[]`, `{"\ud800":{"":null}}`, `1e5`, `{"a":{},"a":[ ]}`} {
		f.Add([]byte(seed), "/a/0/b")
	}
	f.Fuzz(func(t *testing.T, doc []byte, pointer string) {
		if !json.Valid(doc) || !utf8.Valid(doc) {
			return
		}
		at, found := editFind(doc, pointer)
		if found == 0 {
			return
		}
		value := doc[at.start:at.end]
		if !json.Valid(value) {
			t.Fatalf("%q at %q is no value: %q", doc, pointer, value)
		}
		if at.kind == EditString {
			var want string
			if err := json.Unmarshal(value, &want); err != nil || editUnquote(value) != want {
				t.Fatalf("%q reads as %q, want %q (%v)", value, editUnquote(value), want, err)
			}
		}
		if tokens, _ := editTokens(pointer); found == 1 {
			want, ok := editReference(doc, tokens)
			var got any
			d := json.NewDecoder(bytes.NewReader(value))
			d.UseNumber()
			if err := d.Decode(&got); err != nil {
				t.Fatal(err)
			}
			a, _ := json.Marshal(got)
			b, _ := json.Marshal(want)
			if ok && !bytes.Equal(a, b) {
				t.Fatalf("%q at %q: %s, want %s", doc, pointer, a, b)
			}
		}
	})
}

// editReference looks a pointer up the slow way.
func editReference(doc []byte, tokens []string) (any, bool) {
	var v any
	d := json.NewDecoder(bytes.NewReader(doc))
	d.UseNumber()
	if d.Decode(&v) != nil {
		return nil, false
	}
	for _, token := range tokens {
		switch x := v.(type) {
		case map[string]any:
			v = x[token]
		case []any:
			n := 0
			for _, c := range token {
				n = n*10 + int(c-'0')
			}
			v = x[n]
		default:
			return nil, false
		}
	}
	return v, true
}

func TestEditQuoteIsJSON(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		quoted := editQuote(text)
		var back string
		if err := json.Unmarshal(quoted, &back); err != nil || back != text || editUnquote(quoted) != text {
			t.Fatalf("%q → %q → %q, %q (%v)", text, quoted, back, editUnquote(quoted), err)
		}
	})
	if got := string(editQuote("<a&b>\u2028é\x7f\x01\t\"\\/")); got != "\"<a&b>\u2028é\x7f\\u0001\\t\\\"\\\\/\"" {
		t.Errorf("escaped beyond need: %s", got)
	}
}
