package river

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgtype"
	"pgregory.net/rapid"

	"github.com/redrive-dlq/redrive/dlq"
)

func TestReadError(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, trace, class, message string }{
		{"InvalidRecipient: no such address", "", "InvalidRecipient", "no such address"},
		{"*url.Error: Post: EOF", "", "*url.Error", "Post: EOF"},
		{"Net::ReadTimeout: 5s", "", "Net::ReadTimeout", "5s"},
		{"invalid_recipient: x", "", "invalid_recipient", "x"},
		{"sync: dial tcp 127.0.0.1:9: connection refused", "", "", "sync: dial tcp 127.0.0.1:9: connection refused"},
		{"api.example.com: no such host", "", "", "api.example.com: no such host"},
		{"https://X.test/a: 500", "", "", "https://X.test/a: 500"},
		{"JobCancelError: Gone: it is", "", "Gone", "it is"},
		{"nil map", "goroutine 1", "panic", "nil map"},
		{"Stuck job rescued by JobRescuer", "", "StuckJobRescued", "Stuck job rescued by JobRescuer"},
		{"EOF", "", "", "EOF"},
		{"Empty: ", "", "", "Empty: "},
		{"", "", "", ""},
		{"{not json", "", "", "{not json"},
		{`{"unrelated":1}`, "", "", `{"unrelated":1}`},
		{`{"error_class":"A","message":"b"}`, "", "A", "b"},
	} {
		f := readError(c.text, c.trace)
		if f.class != c.class || f.message != c.message {
			t.Errorf("%q: got %q, %q; want %q, %q", c.text, f.class, f.message, c.class, c.message)
		}
	}
}

func TestReadErrorCauses(t *testing.T) {
	t.Parallel()
	wanted := []dlq.CauseDoc{{ErrorClass: "B", Message: "b"}, {ErrorClass: "C", Message: "c"}}
	for _, text := range []string{
		"A: a\ncaused by B: b\ncaused by C: c",
		`{"class":"A","message":"a","causes":[{"class":"B","message":"b"},{"error_class":"C","message":"c"}]}`,
		`{"class":"A","message":"a","cause":{"class":"B","message":"b","cause":{"class":"C","message":"c"}}}`,
	} {
		if diff := cmp.Diff(wanted, readError(text, "").causes); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", text, diff)
		}
	}
}

// Whatever a text is cut into, nothing of it is lost or made up.
func TestSplitClassKeepsTheText(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.StringMatching(`[A-Za-z:._ ]{0,40}: [a-z ]{0,9}`)).Draw(t, "text")
		class, message := splitClass(text)
		switch {
		case message == text: // a class we gave, or none
		case class+": "+message != text:
			t.Fatalf("%q became %q and %q", text, class, message)
		}
	})
}

func TestDeathFactsOfTheWorkerWin(t *testing.T) {
	t.Parallel()
	r := &Reader{src: Source{Environment: "staging", Name: "app"}}
	j, err := parseRow(`{"id":9,"kind":"charge_card","attempt":2,"max_attempts":5,"state":"cancelled","queue":"q","priority":2,
		"args":{"b": 1.0, "a":  1E3},"attempted_by":["w1","w2"],
		"errors":[{"at":"2026-01-02T03:04:05Z","attempt":1,"error":"X: first"},{"at":"2026-01-02T03:05:05Z","attempt":2,"error":"TimeoutError: no answer"}],
		"metadata":{"redrive:job":{"idempotency_key":"k9","entity":"order:1","payload_version":3},
		"redrive:attempts":[{"attempt":2,"duration_ms":2001,"worker_version":"4.1","side_effect":"unknown"}],
		"redrive:death":{"attempt":2,"gave_up":"poison","category":"transient","reason":{"code":"timeout","text":"t"},"effect":"done","effect_id":"ch_1"},
		"redrive:replay":77,"redrive:job_id":"4"}}`)
	if err != nil {
		t.Fatal(err)
	}
	d := r.document(j, pgtype.Timestamptz{Valid: true}, 1)
	if string(d.Payload) != `{"b": 1.0, "a":  1E3}` {
		t.Errorf("payload %s", d.Payload)
	}
	got := []any{d.JobID, d.IdempotencyKey, d.Entity, d.PayloadVersion, d.GaveUp, d.Category, d.ReasonCode, d.Effect, d.EffectID,
		len(d.Attempts), d.Attempts[0].Worker, d.Attempts[0].WorkerVersion, *d.Attempts[0].DurationMS, d.Attempts[0].SideEffect}
	wanted := []any{"4", "k9", "order:1", 3, "poison", "transient", "timeout", "done", "ch_1", 1, "w2", "4.1", int64(2001), "unknown"}
	if diff := cmp.Diff(wanted, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	var ref sourceRef
	if err := json.Unmarshal(d.SourceRef, &ref); err != nil || ref.RiverID != 9 || ref.Replay != "77" {
		t.Errorf("source_ref %s: %v", d.SourceRef, err)
	}

	// Facts of an earlier death say nothing of this one.
	j.Attempt = 3
	if d := r.document(j, pgtype.Timestamptz{Valid: true}, 2); d.GaveUp != "cancelled" || d.Effect != "" || len(d.Attempts) != 1 {
		t.Errorf("a later death got the facts of an earlier one: %+v", d)
	}
}

func TestSplitBoundsAFetch(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		sizes := rapid.SliceOfN(rapid.Int64Range(0, 3*chunkBytes/2), 0, 600).Draw(t, "sizes")
		keys := make([]key, len(sizes))
		for i, size := range sizes {
			keys[i] = key{ID: int64(i), Size: size}
		}
		next := int64(0)
		for _, part := range split(keys) {
			var sum int64
			for _, k := range part {
				if k.ID != next {
					t.Fatalf("key %d is where %d belongs", k.ID, next)
				}
				next++
				sum += k.Size
			}
			if len(part) == 0 || len(part) > chunkRows || len(part) > 1 && sum > chunkBytes {
				t.Fatalf("a part of %d keys and %d bytes", len(part), sum)
			}
		}
		if next != int64(len(keys)) {
			t.Fatalf("%d of %d keys", next, len(keys))
		}
	})
}

func FuzzRow(f *testing.F) {
	f.Add(`{"id":1,"kind":"k","args":{},"attempt":1,"errors":[{"attempt":1,"error":"A: b"}],"metadata":{"redrive:key":"x"},"finalized_at":"2026-01-02T03:04:05Z"}`)
	f.Add(`{"id":1,"kind":"k","errors":[null,7],"metadata":[],"attempted_by":[],"finalized_at":"infinity"}`)
	r := &Reader{src: Source{Environment: "e", Name: "s"}}
	f.Fuzz(func(t *testing.T, raw string) {
		j, err := parseRow(raw)
		if err != nil {
			return
		}
		at, _ := j.finalized()
		d := r.document(j, at, 0)
		if d.JobType == "" || d.JobID == "" || !strings.Contains(raw, string(d.Payload)) {
			t.Fatalf("%q became %+v", raw, d)
		}
		if !json.Valid(d.SourceRef) || !json.Valid(d.Extra) {
			t.Fatalf("%q: the reference or the extra fields are not JSON", raw)
		}
	})
}
