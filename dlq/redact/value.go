package redact

import "strings"

// lookAhead bounds how far a separator inside a value is followed to see
// whether the next pair begins there.
const lookAhead = 40

// unquotedEnd finds the end of a value that no quote delimits, starting at i.
// It ends at white space; a comma, semicolon, ampersand, quote or closing
// bracket ends it only when what follows can't belong to a password any more,
// since a password may hold each of them.
func unquotedEnd(in string, i int) int {
	for i < len(in) {
		c := in[i]
		switch {
		case class[c]&isSpace != 0:
			return i
		case strings.HasPrefix(in[i:], markOpen):
			// Our own mark may hold a space.
			if n := strings.Index(in[i:min(len(in), i+lookAhead)], markClose); n > 0 {
				i += n + len(markClose)
				continue
			}
		case c == '"' || c == '\'' || c == '`' || c == ')' || c == ']' || c == '}':
			if closes(in, i+1) {
				return i
			}
		case c == ',' || c == ';' || c == '&':
			if closes(in, i+1) || pairFollows(in, i+1) {
				return i
			}
		case c == '\\':
			// An escaped line end or quote of a text inside a text.
			if i+1 < len(in) && (in[i+1] == 'n' || in[i+1] == 'r' || in[i+1] == '"') && closesOrWord(in, i+2) {
				return i
			}
		case c == '<':
			if i+1 < len(in) && in[i+1] == '/' {
				return i
			}
		}
		i++
	}
	return i
}

// closes reports whether the text at i can't continue a value.
func closes(in string, i int) bool {
	if i >= len(in) {
		return true
	}
	switch c := in[i]; c {
	case '"', '\'', '`', ')', ']', '}', ',', ';', '>', '\\':
		return true
	default:
		return class[c]&isSpace != 0
	}
}

func closesOrWord(in string, i int) bool {
	return closes(in, i) || class[in[i]]&isAlnum != 0
}

// pairFollows reports whether a name and a = or : stand at i.
func pairFollows(in string, i int) bool {
	end := min(len(in), i+lookAhead)
	if _, _, e, ok := quoteAt(in, i); ok {
		return e < end && class[in[e]]&isAlnum != 0
	}
	start := i
	for i < end && (class[in[i]]&isKey != 0 || in[i] == '[' || in[i] == ']' || in[i] == '%' || in[i] == ' ') {
		i++
	}
	return i > start && i < end && (in[i] == '=' || in[i] == ':')
}

// quotedEnd finds the closing quote of a value whose opening quote ended just
// before i. It returns where the value ends: at the closing quote, or at the
// end of the text when none follows.
func quotedEnd(in string, i, depth int, quote byte) int {
	for i < len(in) {
		if in[i] != quote && in[i] != '\\' {
			i++
			continue
		}
		start := i
		for i < len(in) && in[i] == '\\' {
			i++
		}
		slashes := i - start
		if i >= len(in) {
			return len(in)
		}
		if in[i] != quote {
			i++
			continue
		}
		// A backslash inside the value is written as twice depth+1 of them, so
		// the quote closes when exactly its own depth is left over.
		if slashes%(2*(depth+1)) != depth {
			i++
			continue
		}
		if slashes == 0 && quote == '\'' && i+1 < len(in) && in[i+1] == quote {
			i += 2 // SQL and connection strings double a quote inside quotes
			continue
		}
		return i - depth
	}
	return len(in)
}

// bracketEnd finds the end of an object, list or tuple that opens at i, or the
// end of the text.
func bracketEnd(in string, i int) int {
	depth := 0
	for i < len(in) {
		switch in[i] {
		case '{', '[', '(':
			depth++
		case '}', ']', ')':
			depth--
			if depth == 0 {
				return i + 1
			}
		case '"', '\'':
			i = quotedEnd(in, i+1, 0, in[i])
		}
		i++
	}
	return len(in)
}

// plainWords are values that say something about a secret and hold none:
// "token: expired", "password must be …".
var plainWords = map[string]bool{
	"is": true, "must": true, "has": true, "was": true, "are": true, "not": true, "no": true, "cannot": true,
	"can't": true, "should": true, "does": true, "doesn't": true, "required": true, "missing": true,
	"invalid": true, "expired": true, "too": true, "the": true, "a": true, "an": true, "this": true,
	"field": true, "denied": true, "failed": true, "wrong": true, "empty": true, "unknown": true,
	"revoked": true, "unauthorized": true, "forbidden": true, "refused": true, "could": true, "in": true,
	"expected": true, "unexpected": true, "can": true, "may": true, "for": true, "at": true, "to": true,
}

// telling reports whether a value is worth hiding: not empty, not a bare
// constant, not our own mark, not already starred out.
func telling(v string, at where) bool {
	switch v {
	case "", "null", "nil", "None", "none", "undefined", "true", "false", "True", "False", "NULL", "<nil>":
		return false
	}
	if isMark(v) {
		return false
	}
	if at == inProse && plainWords[strings.ToLower(strings.TrimRight(v, ".,;:!"))] {
		return false
	}
	return strings.Trim(v, "*•") != ""
}

// isMark reports whether the whole of v is one of our marks.
func isMark(v string) bool {
	if !strings.HasPrefix(v, markOpen) || !strings.HasSuffix(v, markClose) {
		return false
	}
	switch inner := v[len(markOpen) : len(v)-len(markClose)]; inner {
	case kindPassword, kindSecret, kindToken, kindKey, kindCookie, kindSignature, kindCode, kindCVV, kindJWT, kindPrivateKey:
		return true
	default:
		digits, ok := strings.CutPrefix(inner, "card ••")
		if !ok {
			digits, ok = strings.CutPrefix(inner, "iban ••")
		}
		return ok && len(digits) == 4 && !strings.Contains(digits, markOpen)
	}
}
