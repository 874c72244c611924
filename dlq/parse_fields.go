package dlq

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/redrive-dlq/redrive/dlq/problem"
)

// fieldError points at a field of the document.
func fieldError(where, format string, args ...any) error {
	return problem.At(problem.Invalid, where, format, args...)
}

// quoteName shows a key or name in a message: short and without control
// characters. Values are never shown.
func quoteName(s string) string { return strconv.Quote(cutName(s)) }

func cutName(s string) string {
	const most = 64
	if len(s) <= most {
		return s
	}
	cut := most
	for !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}

// kind names the JSON type of a value for a message.
func kindOf(value []byte) string {
	switch value[0] {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case '"':
		return "a string"
	case 't', 'f':
		return "true or false"
	case 'n':
		return "null"
	}
	return "a number"
}

func isNull(value []byte) bool { return len(value) == 0 || value[0] == 'n' }

// text reads free text: a string, or null for none. Half a surrogate pair
// becomes U+FFFD; the raw bytes are kept elsewhere.
func text(where string, value []byte) (string, error) {
	if isNull(value) {
		return "", nil
	}
	if value[0] != '"' {
		return "", fieldError(where, "%s must be a string, not %s.", where, kindOf(value))
	}
	s, _ := unquote(value)
	return s, nil
}

// name reads a text that identifies something: it must be a whole string that
// PostgreSQL can hold, of at most max bytes. Nothing in it is ever altered.
func name(where string, value []byte, most int) (string, error) {
	if isNull(value) {
		return "", nil
	}
	if value[0] == '-' || value[0] >= '0' && value[0] <= '9' {
		return "", fieldError(where, "%s must be a string, not a number: put it in quotes so that no reader rounds it.", where)
	}
	if value[0] != '"' {
		return "", fieldError(where, "%s must be a string, not %s.", where, kindOf(value))
	}
	s, whole := unquote(value)
	if !whole {
		return "", fieldError(where, "%s holds half of a surrogate pair, so it names nothing exactly. Send whole characters.", where)
	}
	return s, checkName(where, s, most)
}

// checkName judges an identifying text from any door.
func checkName(where, s string, most int) error {
	switch {
	case len(s) > most:
		return fieldError(where, "%s has %d bytes; at most %d are allowed.", where, len(s), most)
	case strings.IndexByte(s, 0) >= 0:
		return fieldError(where, `%s holds a NUL character (\u0000) at byte %d, which can't be stored in a name. Leave it out, or encode the value.`, where, strings.IndexByte(s, 0))
	case !utf8.ValidString(s):
		return fieldError(where, "%s is not valid UTF-8. Encode the value, for example as hex.", where)
	}
	return nil
}

// whole reads a whole number between least and most; null keeps least's zero.
func whole(where string, value []byte, least, most int64) (n int64, told bool, err error) {
	if isNull(value) {
		return 0, false, nil
	}
	if k := kindOf(value); k != "a number" {
		return 0, false, fieldError(where, "%s must be a whole number, not %s.", where, k)
	}
	n, err = strconv.ParseInt(string(value), 10, 64)
	if err != nil || n < least || n > most {
		return 0, false, fieldError(where, "%s must be a whole number between %d and %d.", where, least, most)
	}
	return n, true, nil
}

// oneOf reads a string that must be one of the words.
func oneOf(where string, value []byte, words ...string) (string, error) {
	s, err := text(where, value)
	if err != nil {
		return "", err
	}
	return s, checkWord(where, s, words...)
}

func checkWord(where, s string, words ...string) error {
	if s == "" {
		return nil
	}
	for _, w := range words {
		if s == w {
			return nil
		}
	}
	return fieldError(where, "%s is none of the known words. Use one of %s, or leave it out.", where, strings.Join(words, ", "))
}

// raw keeps a value as sent; null counts as left out.
func raw(value []byte) json.RawMessage {
	if isNull(value) {
		return nil
	}
	return value
}
