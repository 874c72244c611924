// Package moment reads the timestamps that workers send, in every form that
// queues use, and says which of them can be believed.
package moment

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// The notes of a [Moment].
const (
	NoteImplausible = "implausible"
	NoteMissing     = "missing"
	NoteNoZone      = "no zone, read as UTC"
	NoteUnreadable  = "unreadable"
)

// Earliest is the first plausible moment; what is before it is a clock that
// was never set, a zero value or seconds taken for milliseconds.
var Earliest = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// MaxAhead is how far after now a moment may lie to be plausible: clocks are
// skewed by minutes and zones are mistaken by hours.
const MaxAhead = 24 * time.Hour

// maxRaw bounds what is kept of a raw value, in bytes.
const maxRaw = 100

// Moment is a timestamp as it was sent and as it was read.
type Moment struct {
	// At is the time in UTC, whole microseconds (what PostgreSQL holds). It is
	// zero when the value is missing or unreadable. When it isn't Plausible it
	// is for showing only, never for sorting or retention.
	At time.Time
	// Raw is the value as it was sent, without the quotes of a string.
	Raw string
	// Note is empty or one of the notes above.
	Note string
	// Plausible is true from Earliest to now + MaxAhead, both included.
	Plausible bool
}

// Parse reads a JSON value as a timestamp. It never fails; the note says what
// is wrong.
//
// A number whose integer part has 12 or more digits is milliseconds since 1970,
// any other number seconds; both may have a fraction. A string is a number of
// the same kind, or a date and time as in RFC 3339 or an HTTP date, with the
// usual liberties: a space for the T, an offset without a colon or of hours
// only, a date alone. Without a zone it is read as UTC, and the note says so.
// null, nothing and the empty string are missing.
func Parse(raw json.RawMessage, now time.Time) Moment {
	text := strings.TrimSpace(string(raw))
	if len(text) > 0 && text[0] == '"' {
		var s string
		if err := json.Unmarshal([]byte(text), &s); err != nil {
			return Moment{Raw: clip(text), Note: NoteUnreadable}
		}
		return Of(s, now)
	}
	if text == "" || text == "null" {
		return Moment{Raw: text, Note: NoteMissing}
	}
	m := Moment{Raw: clip(text), Note: NoteUnreadable}
	if at, ok := number(text); ok {
		m.judge(at, false, now)
	}
	return m
}

// Of reads a string like [Parse] does.
func Of(s string, now time.Time) Moment {
	m := Moment{Raw: clip(s), Note: NoteUnreadable}
	s = strings.TrimSpace(s)
	if s == "" {
		m.Note = NoteMissing
		return m
	}
	if at, ok := number(s); ok {
		m.judge(at, false, now)
	} else if at, noZone, ok := dateTime(s); ok {
		m.judge(at, noZone, now)
	}
	return m
}

func (m *Moment) judge(at time.Time, noZone bool, now time.Time) {
	m.At = at.UTC().Truncate(time.Microsecond)
	m.Plausible = !m.At.Before(Earliest) && !m.At.After(now.Add(MaxAhead))
	switch {
	case !m.Plausible:
		m.Note = NoteImplausible
	case noZone:
		m.Note = NoteNoZone
	default:
		m.Note = ""
	}
}

// Age is how long ago the moment was, never negative: a clock that runs ahead
// makes something new, not something of the future. ok is false when the
// moment can't be believed.
func (m Moment) Age(now time.Time) (age time.Duration, ok bool) {
	if !m.Plausible {
		return 0, false
	}
	return max(0, now.Sub(m.At)), true
}

// String is the one form in which moments are shown: UTC, milliseconds.
func (m Moment) String() string {
	if m.At.IsZero() && m.Note != NoteImplausible {
		return m.Note
	}
	return m.At.Format("2006-01-02T15:04:05.000Z")
}

func clip(s string) string {
	if len(s) <= maxRaw {
		return s
	}
	cut := maxRaw
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return fmt.Sprintf("%s… (%d bytes)", s[:cut], len(s))
}
