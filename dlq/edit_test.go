package dlq

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"pgregory.net/rapid"

	"github.com/redrive-dlq/redrive/audit"
	"github.com/redrive-dlq/redrive/dlq/envelope"
	"github.com/redrive-dlq/redrive/dlq/jobtype"
	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/rbac"
)

const editCatalogue = `
environments: [production]
types:
  send_invoice:
    side_effects: [{kind: email, text: sends one e-mail}]
    idempotency: {by: key}
    schema: {1: invoice.json}
    edits: {payload: [/to, /n, /flag, /tags, /gone, /dup, /deep/list/1, /api_key]}
    targets: {}
`

const editSchema = `{"type": "object", "properties": {"to": {"type": "string", "format": "email"},
	"n": {"type": "number", "maximum": 100}, "flag": {"type": ["boolean", "null", "string"]}}}`

func (b *bundle) editor(t testing.TB) *Editor {
	t.Helper()
	c, err := jobtype.Load(fstest.MapFS{"types.yaml": {Data: []byte(editCatalogue)}, "invoice.json": {Data: []byte(editSchema)}}, "types.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return &Editor{Pool: b.pool, Types: func() *jobtype.Catalogue { return c }, Sealer: envelope.Plain{}}
}

// odd is a payload whose bytes no JSON library would write again.
const odd = "{ \"to\" : \"alex@@example.com\",\t\"n\":1.50 ,\"flag\":null, \"tags\":[1], \"big\":12345678901234567890.0e+2,\r\n" +
	"  \"dup\":1,\"dup\":2, \"deep\":{\"list\":[\"<a>\",\"\\u00e9\"]}, \"api_key\":\"sk-" + secret + "\", \"h\\/\":\"\\ud83d\\ude00\" }"

func (b *bundle) oddJob(t testing.TB) int64 {
	t.Helper()
	doc := job("odd", 1, 1)
	doc.Payload = []byte(odd)
	return b.one(t, doc).ID
}

func TestEditKeepsAllOtherBytes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	e, id := b.editor(t), b.oddJob(t)
	b.exec(t, `UPDATE redrive.dead_jobs SET category = 'invalid_input' WHERE id = $1`, id)
	order := EditOrder{Version: 1, Generation: 1, Reason: "the address had two @", Values: map[string]string{
		"/to": "alex@example.com", "/n": "2.50", "/deep/list/1": "a\"<b>\r\né", "/flag": "", "/api_key": ""}}
	order.Values["/flag"] = "true"
	version, err := e.Save(t.Context(), operator, id, order)
	if version != 2 || err != nil {
		t.Fatalf("version %d, %v", version, err)
	}
	want := strings.NewReplacer(`"alex@@example.com"`, `"alex@example.com"`, "1.50", "2.50", "null", "true",
		`"\u00e9"`, `"a\"<b>\né"`).Replace(odd)
	if got := string(b.payload(t, id, 2)); got != want {
		t.Errorf("edited:\n%s\nwant:\n%s", got, want)
	}
	if got := string(b.payload(t, id, 1)); got != odd {
		t.Errorf("the captured version changed: %s", got)
	}
	if got := get[string](t, b, `SELECT payload_version || ' ' || fix_kind || ' ' || fix_ref || ' ' || payload_size FROM redrive.dead_jobs`); got != fmt.Sprintf("2 edit payload version 2 %d", len(want)) {
		t.Errorf("job: %s", got)
	}
	entries, err := audit.OfJob(t.Context(), b.pool, id, 10)
	if err != nil || len(entries) != 1 || entries[0].Action != "job.edit" || entries[0].Reason != order.Reason {
		t.Fatalf("entries %+v, %v", entries, err)
	}
	text, _ := json.Marshal(entries[0].Details)
	if !strings.Contains(string(text), `"/to"`) || !strings.Contains(string(text), editHash([]byte(want))) || strings.Contains(string(text), "example.com") {
		t.Errorf("details: %s", text)
	}
	read := get[string](t, b, `SELECT string_agg(convert_from(redacted, 'UTF8'), '') FROM redrive.payloads`)
	if strings.Contains(read, secret) || strings.Contains(read, "alex@") {
		t.Errorf("the redacted copy shows secrets: %s", read)
	}
}

func TestEditForm(t *testing.T) {
	t.Parallel()
	b := setup(t)
	e, id := b.editor(t), b.oddJob(t)
	form, err := e.Open(t.Context(), operator, id)
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("%+v %+v", form.Places, form.Unusable)
	if strings.Contains(text, secret) || strings.Contains(text, "alex@@") {
		t.Errorf("the form shows what is hidden: %s", text)
	}
	for i, want := range []EditPlace{{"/to", EditString, "a•••@@example.com", true}, {"/n", EditNumber, "1.50", false},
		{"/flag", EditNull, "null", false}, {"/deep/list/1", EditString, "é", true}} {
		if i == 3 {
			want.Hidden = false
		}
		if form.Places[i] != want {
			t.Errorf("place %d: %+v, want %+v", i, form.Places[i], want)
		}
	}
	if len(form.Places) != 5 || !form.Places[4].Hidden || len(form.Unusable) != 3 {
		t.Errorf("places %+v, unusable %+v", form.Places, form.Unusable)
	}
}

func TestEditPreviewIsRedacted(t *testing.T) {
	t.Parallel()
	b := setup(t)
	e, id := b.editor(t), b.oddJob(t)
	got, err := e.Preview(t.Context(), operator, id, EditOrder{Version: 1, Values: map[string]string{
		"/to": "anna@example.com", "/api_key": "sk-other-" + secret}})
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("%+v", got)
	if strings.Contains(text, secret) || strings.Contains(text, "anna@") || !strings.Contains(text, "a•••@example.com") {
		t.Errorf("preview: %s", text)
	}
	var kinds string
	for _, l := range got.Lines {
		kinds += l.Kind + " "
	}
	if strings.Count(kinds, "place gone come") != 2 || !strings.Contains(text, "another value behind the same mask") {
		t.Errorf("lines: %+v", got.Lines)
	}
	if n := get[int](t, b, `SELECT count(*) FROM redrive.payloads`); n != 1 {
		t.Errorf("a preview wrote: %d versions", n)
	}
}

func TestEditRefusals(t *testing.T) {
	t.Parallel()
	b := setup(t)
	e, id := b.editor(t), b.oddJob(t)
	for name, test := range map[string]struct {
		values map[string]string
		at     string // pointer of the fault; empty: none
		code   problem.Code
	}{
		"not allowed":       {map[string]string{"/big": "1"}, "/big", problem.Invalid},
		"not there":         {map[string]string{"/gone": "1"}, "/gone", problem.Invalid},
		"twice":             {map[string]string{"/dup": "1"}, "/dup", problem.Invalid},
		"a list":            {map[string]string{"/tags": "[]"}, "/tags", problem.Invalid},
		"schema format":     {map[string]string{"/to": "nobody"}, "/to", problem.Invalid},
		"schema maximum":    {map[string]string{"/n": "101"}, "/n", problem.Invalid},
		"no number":         {map[string]string{"/n": "1,5"}, "/n", problem.Invalid},
		"emptied number":    {map[string]string{"/n": ""}, "/n", problem.Invalid},
		"exponent":          {map[string]string{"/n": "1e1"}, "/n", problem.Invalid},
		"minus zero":        {map[string]string{"/n": "-0.0"}, "/n", problem.Invalid},
		"object for null":   {map[string]string{"/flag": "{}"}, "/flag", problem.Invalid},
		"two values":        {map[string]string{"/flag": "1, \"x\":2"}, "/flag", problem.Invalid},
		"NUL":               {map[string]string{"/to": "a\x00@example.com"}, "/to", problem.Invalid},
		"escaped NUL":       {map[string]string{"/flag": `"\u0000"`}, "/flag", problem.Invalid},
		"the mask":          {map[string]string{"/to": "a•••@@example.com"}, "/to", problem.Invalid},
		"nothing":           {nil, "", problem.Invalid},
		"nothing different": {map[string]string{"/n": " 1.50 ", "/to": "", "/flag": "null", "/deep/list/1": "é"}, "", problem.Invalid},
	} {
		for _, save := range []bool{false, true} {
			o := EditOrder{Version: 1, Values: test.values, Reason: "some reason"}
			var err error
			if save {
				_, err = e.Save(t.Context(), operator, id, o)
			} else {
				_, err = e.Preview(t.Context(), operator, id, o)
			}
			var refused *EditRefused
			at := ""
			if errors.As(err, &refused) {
				at = refused.Faults[0].Pointer
			}
			if !problem.Is(err, test.code) || at != test.at {
				t.Errorf("%s: %v at %q, want %s at %q", name, err, at, test.code, test.at)
			}
		}
	}
	good := EditOrder{Version: 1, Reason: "some reason", Values: map[string]string{"/n": "2", "/to": "a@example.com"}}
	for name, test := range map[string]struct {
		change func(o *EditOrder)
		who    *rbac.Principal
		code   problem.Code
	}{
		"no reason":          {func(o *EditOrder) { o.Reason = " " }, operator, problem.Invalid},
		"another version":    {func(o *EditOrder) { o.Version = 2 }, operator, problem.Conflict},
		"another generation": {func(o *EditOrder) { o.Generation = 2 }, operator, problem.Conflict},
		"a viewer":           {func(*EditOrder) {}, reader, problem.Forbidden},
		"elsewhere":          {func(*EditOrder) {}, person(rbac.Grant{Role: rbac.Operator, Environment: "staging"}), problem.NotFound},
	} {
		o := good
		test.change(&o)
		if _, err := e.Save(t.Context(), test.who, id, o); !problem.Is(err, test.code) {
			t.Errorf("%s: %v, want %s", name, err, test.code)
		}
	}
	for _, status := range []string{"replaying", "recovered", "resolved", "discarded"} {
		b.exec(t, `UPDATE redrive.dead_jobs SET status = $1`, status)
		if _, err := e.Save(t.Context(), operator, id, good); !problem.Is(err, problem.Conflict) {
			t.Errorf("when %s: %v", status, err)
		}
	}
	b.exec(t, `UPDATE redrive.dead_jobs SET status = 'open'`)
	b.exec(t, `ALTER TABLE redrive.audit_entries ADD CONSTRAINT broken CHECK (false) NOT VALID`)
	if _, err := e.Save(t.Context(), operator, id, good); err == nil {
		t.Error("saved without an entry")
	}
	if n := get[int](t, b, `SELECT count(*) + (SELECT count(*) FROM redrive.audit_entries) + sum(payload_version) FROM redrive.payloads, redrive.dead_jobs`); n != 2 {
		t.Errorf("a refused edit left traces: %d", n)
	}
}

func TestEditOnlyJSON(t *testing.T) {
	t.Parallel()
	b := setup(t)
	e := b.editor(t)
	for _, payload := range []string{"", "plain text", "\xff\x00\x01"} {
		doc := job(fmt.Sprintf("p%d", len(payload)), 1, 1)
		doc.Payload, doc.PayloadEncoding = []byte(payload), EncodingBase64
		if _, err := e.Open(t.Context(), operator, b.one(t, doc).ID); !problem.Is(err, problem.Conflict) {
			t.Errorf("%q: %v, want a Conflict", payload, err)
		}
	}
	id := b.oddJob(t)
	b.exec(t, `UPDATE redrive.payloads SET bytes = NULL WHERE dead_job_id = $1`, id)
	if _, err := e.Open(t.Context(), operator, id); !problem.Is(err, problem.Conflict) {
		t.Errorf("shredded: %v, want a Conflict", err)
	}
}

// TestEditOnce: of parallel edits of one version one is saved.
func TestEditOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	e, id := b.editor(t), b.oddJob(t)
	var wg sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		wg.Go(func() {
			_, errs[i] = e.Save(t.Context(), operator, id, EditOrder{Version: 1, Reason: "some reason", Values: map[string]string{"/to": "a@example.com", "/n": fmt.Sprint(10 + i)}})
		})
	}
	wg.Wait()
	saved := 0
	for _, err := range errs {
		switch {
		case err == nil:
			saved++
		case !problem.Is(err, problem.Conflict):
			t.Error(err)
		}
	}
	if n := get[int](t, b, `SELECT count(*) FROM redrive.payloads`); saved != 1 || n != 2 {
		t.Errorf("%d saved, %d versions", saved, n)
	}
}

// TestEditSurvivesJSONB: what an edit writes into a document that PostgreSQL
// printed from jsonb is printed the same again.
func TestEditSurvivesJSONB(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, typed := range []string{"plain", "<a&b>'\"\\/", "é😀\u2028\u200b", "tab\tline\nbell\a\x7f\x1b", "‹mask›", ""} {
		doc := []byte(fmt.Sprintf(`{"n": 1.50, "to": %s, "big": 12345678901234567890}`, editQuote(typed)))
		again := get[string](t, b, `SELECT $1::jsonb::text`, string(doc))
		at, _ := editFind([]byte(again), "/to")
		if got := again[at.start:at.end]; got != string(editQuote(typed)) {
			t.Errorf("%q: written %s, printed %s", typed, editQuote(typed), got)
		}
	}
	for _, typed := range []string{"0", "-1", "1.50", "0.000", "100000000000000000000000", "true", "null", `"a\u00e9\/b"`} {
		text, fault := editScalar(typed)
		if got := get[string](t, b, `SELECT $1::jsonb::text`, string(text)); fault != "" || got != string(text) {
			t.Errorf("%s: written %s (%s), printed %s", typed, text, fault, got)
		}
	}
}

// TestEditReplacesSpansOnly: whatever the document, the bytes outside of the
// edited values stay, and the values read as typed.
func TestEditReplacesSpansOnly(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		space := rapid.SampledFrom([]string{"", " ", "\n\t", "\r\n  "})
		var doc bytes.Buffer
		var values []editValue
		n := rapid.IntRange(1, 6).Draw(t, "members")
		doc.WriteString(space.Draw(t, "before") + "{")
		for i := range n {
			if i > 0 {
				doc.WriteString(",")
			}
			doc.WriteString(space.Draw(t, "s1"))
			doc.Write(editQuote(fmt.Sprintf("k/%d~%s", i, rapid.StringMatching(`[a-c"\\/~]{0,3}`).Draw(t, "key"))))
			doc.WriteString(space.Draw(t, "s2") + ":" + space.Draw(t, "s3"))
			doc.WriteString(rapid.SampledFrom([]string{`"a\"b"`, `1e3`, `{"x": [1, {"y":2}]}`, `[]`, `null`, `"\ud800"`, `-0.0`}).Draw(t, "value"))
			doc.WriteString(space.Draw(t, "s4"))
		}
		doc.WriteString("}" + space.Draw(t, "after"))
		old := doc.Bytes()
		var m map[string]json.RawMessage
		if err := json.Unmarshal(old, &m); err != nil {
			t.Fatal(err)
		}
		mask := bytes.Clone(old) // the old document without the edited spans
		typed := map[string]string{}
		for key := range m {
			if !rapid.Bool().Draw(t, "edit "+key) {
				continue
			}
			pointer := "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
			at, found := editFind(old, pointer)
			if found != 1 {
				t.Fatalf("%q found %d times in %s", pointer, found, old)
			}
			typed[pointer] = rapid.String().Draw(t, "typed")
			values = append(values, editValue{pointer, at, editQuote(typed[pointer])})
			for i := at.start; i < at.end; i++ {
				mask[i] = 0
			}
		}
		edited := editReplace(old, values)
		rest := bytes.Clone(edited)
		for pointer, text := range typed {
			at, found := editFind(edited, pointer)
			if found != 1 || editUnquote(edited[at.start:at.end]) != text {
				t.Fatalf("%q reads %s, want %q", pointer, edited[at.start:at.end], text)
			}
			for i := at.start; i < at.end; i++ {
				rest[i] = 0
			}
		}
		if a, b := bytes.ReplaceAll(mask, []byte{0}, nil), bytes.ReplaceAll(rest, []byte{0}, nil); !bytes.Equal(a, b) {
			t.Fatalf("bytes outside changed:\n%q\n%q", a, b)
		}
	})
}
