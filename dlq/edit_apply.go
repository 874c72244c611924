package dlq

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/redrive-dlq/redrive/dlq/problem"
)

// editValue is a new value for a place.
type editValue struct {
	pointer string
	at      editSpan
	text    []byte // JSON
}

// editPlaceAt describes a place of doc, of which view is the redacted copy.
// fault says why it can't be edited.
func editPlaceAt(doc, view []byte, pointer string) (place EditPlace, at editSpan, fault string) {
	at, found := editFind(doc, pointer)
	switch {
	case found == 0:
		return EditPlace{}, at, "isn't in this payload"
	case found > 1:
		return EditPlace{}, at, "stands more than once in this payload, so it can't be edited here"
	case at.kind == EditObject || at.kind == EditArray:
		return EditPlace{}, at, "holds an " + at.kind + "; only single values can be edited"
	}
	raw := doc[at.start:at.end]
	shown := editShown(view, pointer)
	return EditPlace{Pointer: pointer, Kind: at.kind, Now: editTyped(shown), Hidden: shown != string(raw)}, at, ""
}

// editMask stands for a value inside something that is hidden as a whole.
const editMask = `"‹hidden›"`

// editShown is what a redacted copy shows at a pointer, as JSON text.
func editShown(view []byte, pointer string) string {
	if !json.Valid(view) {
		return editMask
	}
	at, found := editFind(view, pointer)
	if found != 1 {
		return editMask
	}
	return string(view[at.start:at.end])
}

// editTyped is how a value is typed: a string without quotes and escapes.
func editTyped(value string) string {
	if strings.HasPrefix(value, `"`) {
		return editUnquote([]byte(value))
	}
	return value
}

// apply makes the edited bytes. Errors: Invalid, wrapping *EditRefused where
// values don't pass.
func (e *Editor) apply(j TriageJob, doc []byte, o EditOrder) ([]byte, []editValue, error) {
	allowed := e.pointers(j.JobType)
	view := redactedOf(doc)
	var values []editValue
	var faults []EditFault
	for _, pointer := range slices.Sorted(maps.Keys(o.Values)) {
		if !slices.Contains(allowed, pointer) {
			faults = append(faults, EditFault{pointer, "may not be edited: the type doesn't allow it"})
			continue
		}
		place, at, fault := editPlaceAt(doc, view, pointer)
		if fault == "" && j.IdempotencyKey != "" && editTyped(string(doc[at.start:at.end])) == j.IdempotencyKey {
			fault = "is the job's idempotency key; under another one its effect could happen twice"
		}
		if fault == "" {
			var text []byte
			if text, fault = place.encode(doc[at.start:at.end], o.Values[pointer]); text != nil {
				values = append(values, editValue{pointer, at, text})
			}
		}
		if fault != "" {
			faults = append(faults, EditFault{pointer, fault})
		}
	}
	if len(faults) > 0 {
		return nil, nil, editRefused(faults)
	}
	if len(values) == 0 {
		return nil, nil, problem.New(problem.Invalid, "Nothing is different from what is stored. Change a place first.")
	}
	edited := editReplace(doc, values)
	return edited, values, e.validate(j, edited)
}

// editReplace puts the new values in place of the old ones; all bytes outside
// of them are copied.
func editReplace(doc []byte, values []editValue) []byte {
	slices.SortFunc(values, func(a, b editValue) int { return a.at.start - b.at.start })
	var out bytes.Buffer
	from := 0
	for _, v := range values {
		out.Write(doc[from:v.at.start])
		out.Write(v.text)
		from = v.at.end
	}
	out.Write(doc[from:])
	return out.Bytes()
}

// validate checks the edited payload against the schema of its version.
func (e *Editor) validate(j TriageJob, doc []byte) error {
	t, ok := e.Types().Type(j.JobType)
	if !ok {
		return nil
	}
	found, err := t.Validate(j.SchemaVersion, doc)
	if err != nil {
		return problem.Wrap(err, problem.Invalid, "The edited payload can't be checked: %s.", err)
	}
	if len(found) == 0 {
		return nil
	}
	faults := make([]EditFault, len(found))
	for i, f := range found {
		faults[i] = EditFault{f.Pointer, f.Message}
	}
	return editRefused(faults)
}

func editRefused(faults []EditFault) error {
	where := faults[0].Pointer
	if where == "" {
		where = "The payload"
	}
	return problem.Wrap(&EditRefused{faults}, problem.Invalid, "Nothing was saved. %s %s.", where, faults[0].Message)
}

// encode turns what was typed into JSON; nil without a fault when the place
// stays as it is. raw is the value in place.
func (p EditPlace) encode(raw []byte, typed string) (text []byte, fault string) {
	if !utf8.ValidString(typed) || strings.ContainsRune(typed, 0) {
		return nil, "holds characters that no payload can carry"
	}
	typed = editNewlines(typed)
	if p.Hidden && typed == "" {
		return nil, ""
	}
	if p.Hidden && typed == editNewlines(p.Now) {
		return nil, "is the mask, not a value: type the value anew, or leave the field empty to keep it"
	}
	if p.Kind == EditString {
		if typed == editNewlines(editUnquote(raw)) {
			return nil, ""
		}
		return editQuote(typed), ""
	}
	typed = strings.TrimSpace(typed)
	if typed == string(raw) {
		return nil, ""
	}
	return editScalar(typed)
}

// editNewlines undoes what a browser does to line ends: a form sends each as CR
// LF, so they can't tell an edit from an untouched field.
func editNewlines(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n")
}

// editScalar reads a typed number, boolean, null or quoted string. Numbers are
// taken only as PostgreSQL would print them again.
func editScalar(typed string) (text []byte, fault string) {
	const want = "must be a number, true, false, null or a text in double quotes"
	if typed == "" || !json.Valid([]byte(typed)) {
		return nil, want
	}
	switch c := typed[0]; {
	case c == '{' || c == '[':
		return nil, want
	case c == '"':
		value := editUnquote([]byte(typed))
		if strings.ContainsRune(value, 0) || strings.ContainsRune(value, utf8.RuneError) {
			return nil, "holds characters that no payload can carry"
		}
		return editQuote(value), ""
	case c == '-' && strings.Trim(typed, "-0.eE+") == "":
		return nil, "must be written without the minus: it is zero"
	case strings.ContainsAny(typed, "eE") && c != 't' && c != 'f':
		return nil, "must be a number without an exponent"
	case len(typed) > 1000:
		return nil, "has too many digits"
	}
	return []byte(typed), ""
}
