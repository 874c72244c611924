package replay

import (
	"strings"
	"unicode/utf8"

	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/dlq/redact"
)

// Limits of a reason, in characters.
const (
	reasonMin = 3
	reasonMax = 2000
)

// reasonOf is what a person typed as their reason, as it is kept: redacted,
// because everybody reads it and the audit log never forgets. Errors: Invalid
// at the field reason.
func reasonOf(text string) (string, error) {
	text = strings.TrimSpace(text)
	n := utf8.RuneCountInString(text)
	if n < reasonMin || n > reasonMax || strings.ContainsRune(text, 0) || !utf8.ValidString(text) {
		return "", problem.At(problem.Invalid, "reason", "Give a reason of 3 to 2,000 characters.")
	}
	return redact.Readable(text), nil
}

// optionalReason is reasonOf where none may be given.
func optionalReason(text string) (string, error) {
	if strings.TrimSpace(text) == "" {
		return "", nil
	}
	return reasonOf(text)
}
