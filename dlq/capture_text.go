package dlq

import (
	"strings"
	"time"
	"unicode/utf8"

	"github.com/redrive-dlq/redrive/dlq/moment"
	"github.com/redrive-dlq/redrive/dlq/redact"
)

// cut shortens a text to most characters, the last of them an ellipsis.
func cut(s string, most int) string {
	if len(s) <= most || utf8.RuneCountInString(s) <= most {
		return s
	}
	n := 0
	for i := range s {
		if n++; n == most {
			return s[:i] + "…"
		}
	}
	return s
}

// oneLine folds white space, line breaks among it, into single spaces.
func oneLine(s string) string {
	if !strings.ContainsAny(s, "\n\r\t") && !strings.Contains(s, "  ") {
		return strings.TrimSpace(s)
	}
	return strings.Join(strings.Fields(s), " ")
}

// listText is a text as list rows hold it. Only the beginning is folded: a
// message may be megabytes long.
func listText(s string, most int) string {
	if limit := 8 * most; len(s) > limit {
		for limit > 0 && !utf8.RuneStart(s[limit]) {
			limit--
		}
		s = s[:limit]
	}
	return cut(oneLine(s), most)
}

// shownMoment is the time of an attempt as rows hold it: implausible ones are
// kept for showing, with their note.
func shownMoment(m moment.Moment) *time.Time {
	if m.Note == moment.NoteMissing || m.Note == moment.NoteUnreadable || m.At.Year() < 1 || m.At.Year() > 9999 {
		return nil
	}
	return &m.At
}

// printoutView is what can be read of a job whose arguments exist only as a
// printout. It is text: nothing parses it.
func printoutView(doc *Document) (text []byte, hidden int) {
	pairs, err := redact.ParseHeaders(doc.Headers)
	if err != nil {
		return []byte{}, 0
	}
	text = []byte{}
	for _, h := range redact.Headers(pairs) {
		if h.Name != "argsrepr" && h.Name != "kwargsrepr" {
			continue
		}
		if h.Hidden {
			hidden++
		}
		text = append(append(append(append(text, h.Name...), ": "...), h.Value...), '\n')
	}
	return text, hidden
}
