package dlq

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/redrive-dlq/redrive/dlq/redact"
)

// EditLine is one line of a difference. Kind is same, gone, come or place (a
// heading: the JSON Pointer of what follows).
type EditLine struct{ Kind, Text string }

// Bounds of a difference for display.
const (
	editContext  = 3   // unchanged lines around a change
	editLineMost = 500 // characters
)

func redactedOf(doc []byte) []byte { return redact.Payload(doc).Redacted }

// editLines compares two redacted copies line by line. An edit replaces single
// values only, so that the copies have the same lines; where the redactor made
// them differ, only the changed places are listed. A change behind equal masks
// is shown, too: hiding it would look like none.
func editLines(before, after []byte, values []editValue) []EditLine {
	old, oldOK := editIndented(before)
	now, nowOK := editIndented(after)
	if !oldOK || !nowOK || bytes.Count(old, []byte("\n")) != bytes.Count(now, []byte("\n")) {
		return editPlaces(before, after, values)
	}
	at := map[int][]string{} // line to the pointers changed on it
	for _, v := range values {
		span, found := editFind(old, v.pointer)
		if found != 1 {
			return editPlaces(before, after, values)
		}
		n := bytes.Count(old[:span.start], []byte("\n"))
		at[n] = append(at[n], v.pointer)
	}
	a, b := strings.Split(string(old), "\n"), strings.Split(string(now), "\n")
	var out []EditLine
	last := -1
	for i := range a {
		if !editNear(at, i) {
			continue
		}
		if i > last+1 {
			out = append(out, EditLine{"same", "…"})
		}
		last = i
		pointers, changed := at[i]
		if !changed {
			out = append(out, EditLine{"same", editCut(a[i])})
			continue
		}
		for _, p := range pointers {
			out = append(out, EditLine{"place", p})
		}
		out = append(out, EditLine{"gone", editCut(a[i])}, EditLine{"come", editCut(b[i]) + editSameMask(a[i], b[i])})
	}
	if last < len(a)-1 {
		out = append(out, EditLine{"same", "…"})
	}
	return out
}

func editNear(changed map[int][]string, line int) bool {
	for d := -editContext; d <= editContext; d++ {
		if _, ok := changed[line+d]; ok {
			return true
		}
	}
	return false
}

// editPlaces lists the changed places alone.
func editPlaces(before, after []byte, values []editValue) []EditLine {
	var out []EditLine
	for _, v := range values {
		a, b := editShown(before, v.pointer), editShown(after, v.pointer)
		out = append(out, EditLine{"place", v.pointer}, EditLine{"gone", editCut(a)}, EditLine{"come", editCut(b) + editSameMask(a, b)})
	}
	return slices.Clip(out)
}

func editSameMask(before, after string) string {
	if before != after {
		return ""
	}
	return "   (another value behind the same mask)"
}

// editIndented lays JSON out with one value a line; strings and numbers keep
// every byte.
func editIndented(doc []byte) ([]byte, bool) {
	var out bytes.Buffer
	if json.Indent(&out, doc, "", "  ") != nil {
		return nil, false
	}
	return out.Bytes(), true
}

func editCut(line string) string {
	if utf8.RuneCountInString(line) <= editLineMost {
		return line
	}
	return string([]rune(line)[:editLineMost]) + "…"
}
