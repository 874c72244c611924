package moment_test

import (
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/redrive-dlq/redrive/dlq/moment"
)

var now = time.Date(2026, 3, 7, 12, 0, 0, 0, time.UTC)

func TestParse(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, raw, want, note string }{
		{"seconds", "1772841700", "2026-03-07T00:01:40.000Z", ""},
		{"seconds, fraction", "1772841800.25", "2026-03-07T00:03:20.250Z", ""},
		{"milliseconds", "1772841900123", "2026-03-07T00:05:00.123Z", ""},
		{"milliseconds of 12 digits", "999999999999", "2001-09-09T01:46:39.999Z", ""},
		{"milliseconds, fraction", "1772841900123.5", "2026-03-07T00:05:00.123Z", ""},
		{"exponent", "1.7728417E9", "2026-03-07T00:01:40.000Z", ""},
		{"number in a string", `"1772841700"`, "2026-03-07T00:01:40.000Z", ""},
		{"utc", `"2026-03-07T00:01:00Z"`, "2026-03-07T00:01:00.000Z", ""},
		{"offset", `"2026-03-07T02:05:00+05:45"`, "2026-03-06T20:20:00.000Z", ""},
		{"offset without colon", `"2026-03-07T02:05:00.5+0545"`, "2026-03-06T20:20:00.500Z", ""},
		{"postgres", `"2026-03-07 00:05:00.123456+00"`, "2026-03-07T00:05:00.123Z", ""},
		{"ruby", `"2026-03-07 00:05:00 UTC"`, "2026-03-07T00:05:00.000Z", ""},
		{"ruby with offset", `"2026-03-07 00:05:00 +0200"`, "2026-03-06T22:05:00.000Z", ""},
		{"http date", `"Sat, 07 Mar 2026 00:05:00 GMT"`, "2026-03-07T00:05:00.000Z", ""},
		{"comma", `"2026-03-07T00:05:00,250Z"`, "2026-03-07T00:05:00.250Z", ""},
		{"no zone", `"2026-03-07T00:05:00"`, "2026-03-07T00:05:00.000Z", moment.NoteNoZone},
		{"python", `"2026-03-07 00:05:00.123456"`, "2026-03-07T00:05:00.123Z", moment.NoteNoZone},
		{"date", `"2026-03-07"`, "2026-03-07T00:00:00.000Z", moment.NoteNoZone},
		{"far future", `"2168-11-30T15:51:16Z"`, "2168-11-30T15:51:16.000Z", moment.NoteImplausible},
		{"year one", `"0001-01-01T00:00:00Z"`, "0001-01-01T00:00:00.000Z", moment.NoteImplausible},
		{"zero", "0", "1970-01-01T00:00:00.000Z", moment.NoteImplausible},
		{"negative", "-1", "1969-12-31T23:59:59.000Z", moment.NoteImplausible},
		{"microseconds are not guessed", "1772841900123456", "", moment.NoteUnreadable},
		{"null", "null", "", moment.NoteMissing},
		{"nothing", "", "", moment.NoteMissing},
		{"empty", `""`, "", moment.NoteMissing},
		{"word", `"yesterday"`, "", moment.NoteUnreadable},
		{"unknown zone", `"Sat, 07 Mar 2026 00:05:00 XST"`, "", moment.NoteUnreadable},
		{"object", `{"a":1}`, "", moment.NoteUnreadable},
		{"bool", "true", "", moment.NoteUnreadable},
		{"huge", "1e400", "", moment.NoteUnreadable},
		{"30 February", `"2026-02-30T00:00:00Z"`, "", moment.NoteUnreadable},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m := moment.Parse(json.RawMessage(tt.raw), now)
			if m.Note != tt.note {
				t.Errorf("note %q, want %q", m.Note, tt.note)
			}
			want := tt.want
			if want == "" {
				want = tt.note
			}
			if m.String() != want {
				t.Errorf("got %s, want %s", m, want)
			}
			if m.Plausible != (tt.note == "" || tt.note == moment.NoteNoZone) {
				t.Errorf("plausible is %v", m.Plausible)
			}
			if m.Raw != strings.Trim(tt.raw, `"`) {
				t.Errorf("raw %q", m.Raw)
			}
		})
	}
}

func TestPlausibleRange(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		at   time.Time
		want bool
	}{
		{moment.Earliest, true},
		{moment.Earliest.Add(-time.Second), false},
		{now.Add(moment.MaxAhead), true},
		{now.Add(moment.MaxAhead + time.Second), false},
	} {
		if m := moment.Of(tt.at.Format(time.RFC3339), now); m.Plausible != tt.want {
			t.Errorf("%s: plausible is %v", tt.at, m.Plausible)
		}
	}
}

func TestAgeIsNeverNegative(t *testing.T) {
	t.Parallel()
	if age, ok := moment.Of("2026-03-07T12:05:00Z", now).Age(now); age != 0 || !ok {
		t.Errorf("got %v, %v", age, ok)
	}
	if age, ok := moment.Of("2026-03-07T11:00:00Z", now).Age(now); age != time.Hour || !ok {
		t.Errorf("got %v, %v", age, ok)
	}
	if _, ok := moment.Of("2168-11-30T15:51:16Z", now).Age(now); ok {
		t.Error("an implausible moment has no age")
	}
}

func TestCase(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("testdata/11-mixed-timestamps-and-clock-skew.json")
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Attempts []struct {
			At      json.RawMessage `json:"at"`
			Message string          `json:"message"`
		} `json:"attempts"`
	}
	if err := json.Unmarshal(b, &doc); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"2026-03-07T00:01:40.000Z", "2026-03-07T00:03:20.250Z", "2026-03-07T00:05:00.123Z", "2026-03-06T20:20:00.000Z",
		"2026-03-07T00:05:00.000Z", "2026-03-07T00:01:00.000Z", "2168-11-30T15:51:16.000Z", "0001-01-01T00:00:00.000Z", "missing",
	}
	if len(doc.Attempts) != len(want) {
		t.Fatalf("%d attempts", len(doc.Attempts))
	}
	for i, a := range doc.Attempts {
		m := moment.Parse(a.At, now)
		if m.String() != want[i] || m.Plausible != (i < 6) {
			t.Errorf("%s: got %s (plausible %v), want %s", a.Message, m, m.Plausible, want[i])
		}
	}
}

func TestForms(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		ms := rapid.Int64Range(moment.Earliest.UnixMilli(), now.UnixMilli()).Draw(t, "ms")
		at := time.UnixMilli(ms).UTC()
		zone := time.FixedZone("", rapid.IntRange(-14*60, 14*60).Draw(t, "offset")*60)
		forms := []string{
			strconv.Quote(at.In(zone).Format(time.RFC3339Nano)),
			strconv.Quote(at.Format("2006-01-02T15:04:05.000")),
		}
		forms = append(forms, strconv.FormatInt(ms/1000, 10)+at.Format(".000"))
		if ms >= 1e11 {
			forms = append(forms, strconv.FormatInt(ms, 10))
		}
		for _, f := range forms {
			if m := moment.Parse(json.RawMessage(f), now); !m.At.Equal(at) || !m.Plausible {
				t.Fatalf("%s: got %s (%s), want %s", f, m.At, m.Note, at)
			}
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"1772841700", `"2026-03-07T02:05:00+05:45"`, "null", "1e400", `"\ud800"`, "-0.0"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		m := moment.Parse(raw, now)
		if m.Plausible && (m.At.Before(moment.Earliest) || m.At.After(now.Add(moment.MaxAhead))) {
			t.Errorf("%q: %s can't be plausible", raw, m.At)
		}
		if !m.Plausible && m.Note == "" {
			t.Errorf("%q: no note says why", raw)
		}
		if m.At.Location() != time.UTC && !m.At.IsZero() {
			t.Errorf("%q: not UTC", raw)
		}
	})
}
