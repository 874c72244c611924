package redact

import (
	"encoding/json"
	"unicode/utf8"
)

// Form says how a payload's bytes are read.
type Form string

// The forms of a payload.
const (
	FormEmpty  Form = "empty"  // zero bytes: neither null nor ""
	FormJSON   Form = "json"   // valid JSON in valid UTF-8
	FormText   Form = "text"   // UTF-8 without control characters
	FormBinary Form = "binary" // anything else
)

// View is a payload as people may read it.
type View struct {
	Form Form
	// Redacted is what may be shown. For FormJSON it is valid JSON; for
	// FormText it has passed Visible; for FormBinary it has the same length as
	// the payload, secrets that stand in it as plain text being overwritten
	// with asterisks: show it as hex or base64, never as text.
	Redacted []byte
	// Size is the payload's length in bytes.
	Size int
	Report
}

// Payload makes the view of a payload's exact bytes. It looks at the bytes and
// not at how they were sent: JSON that came in as base64 is still JSON.
func Payload(b []byte) View {
	v := View{Form: FormOf(b), Size: len(b)}
	switch v.Form {
	case FormJSON:
		v.Redacted, v.Report = JSON(b)
	case FormText:
		out, hidden := text(Visible(string(b)))
		v.Redacted, v.Hidden = []byte(out), hidden
	case FormBinary:
		if len(b) > MaxBytes {
			v.Hidden, v.Reason = 1, "larger than can be checked"
			return v
		}
		sc := scanner{in: string(b), keepLength: true}
		sc.run()
		v.Redacted, v.Hidden = []byte(sc.result()), sc.hits
	}
	return v
}

// FormOf returns the form of a payload's bytes.
func FormOf(b []byte) Form {
	switch {
	case len(b) == 0:
		return FormEmpty
	case !utf8.Valid(b):
		return FormBinary
	case json.Valid(b) || depthOf(string(b)) > MaxDepth && (b[0] == '{' || b[0] == '['):
		return FormJSON
	}
	for _, c := range b {
		if c < 0x20 && c != '\n' && c != '\r' && c != '\t' && c != 0x1b || c == 0x7f {
			return FormBinary
		}
	}
	return FormText
}
