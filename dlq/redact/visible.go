package redact

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Visible makes a text safe to show and to store in a PostgreSQL text column,
// and changes nothing else: terminal codes (colours, links, cursor moves) are
// removed, every other control character becomes a visible sign (NUL is ␀, the
// bell ␇), bytes that are not UTF-8 become �, and characters that reorder or
// hide text are named (‹U+202E›). Line ends become \n, tabs stay.
func Visible(s string) string {
	i := firstOdd(s)
	if i == len(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	b.WriteString(s[:i])
	joinable := false // the rune before may be joined or modified
	for i < len(s) {
		c := s[i]
		switch {
		case c == 0x1b:
			i = afterEscape(s, i)
		case c == '\r':
			if i+1 >= len(s) || s[i+1] != '\n' {
				b.WriteByte('\n')
			}
			i++
		case c == '\n' || c == '\t' || c >= 0x20 && c < 0x7f:
			b.WriteByte(c)
			joinable = false
			i++
		case c < 0x20:
			b.WriteRune(0x2400 + rune(c))
			i++
		case c == 0x7f:
			b.WriteRune('␡')
			i++
		default:
			r, size := utf8.DecodeRuneInString(s[i:])
			switch {
			case r == utf8.RuneError:
				b.WriteRune(utf8.RuneError)
			case r == 0x9b || r == 0x9d || r == 0x90: // one-byte forms of ESC [, ESC ] and ESC P
				i = afterIntroducer(s, i+size, byte(r)-0x40)
				continue
			case !concealed(r), joinable && (r == 0x200c || r == 0x200d):
				b.WriteString(s[i : i+size])
				joinable = true
			default:
				fmt.Fprintf(&b, "‹U+%04X›", r)
			}
			i += size
		}
	}
	return b.String()
}

// firstOdd returns the index of the first byte that Visible may change.
func firstOdd(s string) int {
	for i := range len(s) {
		if c := s[i]; c >= 0x7f || c < 0x20 && c != '\n' && c != '\t' {
			return i
		}
	}
	return len(s)
}

// concealed reports whether r takes no room, or changes the order or the line
// of what is around it.
func concealed(r rune) bool {
	switch {
	case r < 0xa0, r == 0xad, r == 0x61c, r == 0x180e, r == 0xfeff:
		return true
	case r >= 0x200b && r <= 0x200f, r >= 0x2028 && r <= 0x202e, r >= 0x2060 && r <= 0x206f:
		return true
	case r >= 0xfff9 && r <= 0xfffb, r >= 0xe0000 && r <= 0xe007f:
		return true
	}
	return false
}

// afterEscape returns the index after the terminal code that starts with the
// ESC at i.
func afterEscape(s string, i int) int {
	i++
	if i >= len(s) {
		return i
	}
	switch c := s[i]; {
	case c == '[' || c == ']' || c == 'P' || c == 'X' || c == '^' || c == '_':
		return afterIntroducer(s, i+1, c)
	case c >= 0x20 && c <= 0x2f:
		for i < len(s) && s[i] >= 0x20 && s[i] <= 0x2f {
			i++
		}
		if i < len(s) && s[i] >= 0x30 && s[i] < 0x7f {
			i++
		}
		return i
	case c >= 0x30 && c < 0x7f:
		return i + 1
	}
	return i
}

// afterIntroducer returns the index after a control sequence (kind '[') or a
// control string (others), whose body starts at i. A string that is not
// terminated before the next ESC or line end hides nothing: only its
// introducer goes.
func afterIntroducer(s string, i int, kind byte) int {
	start := i
	if kind == '[' {
		for i < len(s) && s[i] >= 0x30 && s[i] <= 0x3f {
			i++
		}
		for i < len(s) && s[i] >= 0x20 && s[i] <= 0x2f {
			i++
		}
		if i < len(s) && s[i] >= 0x40 && s[i] < 0x7f {
			i++
		}
		return i
	}
	for i < len(s) && s[i] != '\n' {
		switch {
		case s[i] == 0x07:
			return i + 1
		case s[i] == 0x1b:
			if i+1 < len(s) && s[i+1] == '\\' {
				return i + 2
			}
			return start
		}
		i++
	}
	return start
}
