package redact

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// unescape decodes the inside of a JSON string. Lone surrogates become �.
func unescape(raw string) string {
	i := strings.IndexByte(raw, '\\')
	if i < 0 {
		return raw
	}
	b := make([]byte, 0, len(raw))
	for {
		b = append(b, raw[:i]...)
		if i+1 >= len(raw) {
			return string(b)
		}
		c := raw[i+1]
		raw = raw[i+2:]
		switch c {
		case 'n':
			b = append(b, '\n')
		case 't':
			b = append(b, '\t')
		case 'r':
			b = append(b, '\r')
		case 'b':
			b = append(b, '\b')
		case 'f':
			b = append(b, '\f')
		case 'u':
			var r rune
			r, raw = hex4(raw)
			if utf16.IsSurrogate(r) {
				if strings.HasPrefix(raw, `\u`) {
					low, rest := hex4(raw[2:])
					if both := utf16.DecodeRune(r, low); both != utf8.RuneError {
						r, raw = both, rest
					}
				}
			}
			b = utf8.AppendRune(b, r)
		default:
			b = append(b, c)
		}
		if i = strings.IndexByte(raw, '\\'); i < 0 {
			return string(append(b, raw...))
		}
	}
}

func hex4(s string) (rune, string) {
	if len(s) < 4 {
		return utf8.RuneError, ""
	}
	n, err := strconv.ParseUint(s[:4], 16, 32)
	if err != nil {
		return utf8.RuneError, s[4:]
	}
	return rune(n), s[4:]
}

const hexDigits = "0123456789abcdef"

// quoteJSON writes s as a JSON string. Unlike encoding/json it leaves < > & as
// they are, so that a redacted copy differs from its source only where it must.
func quoteJSON(s string) string {
	b := make([]byte, 0, len(s)+2)
	b = append(b, '"')
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c == '\n':
			b = append(b, '\\', 'n')
		case c == '\r':
			b = append(b, '\\', 'r')
		case c == '\t':
			b = append(b, '\\', 't')
		case c < 0x20:
			b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		default:
			b = append(b, c)
		}
	}
	return string(append(b, '"'))
}

// Storable makes a JSON document one that PostgreSQL's jsonb accepts: it has no
// NUL (\u0000 becomes ␀) and no lone surrogates (they become �). All other
// bytes stay. For redacted copies only.
func Storable(doc []byte) []byte {
	in := string(doc)
	if !strings.Contains(in, `\u`) {
		return doc
	}
	out := make([]byte, 0, len(in))
	for i := 0; i < len(in); {
		if in[i] != '\\' || i+1 >= len(in) {
			out = append(out, in[i])
			i++
			continue
		}
		if in[i+1] != 'u' || i+6 > len(in) {
			out = append(out, in[i], in[i+1])
			i += 2
			continue
		}
		r, _ := hex4(in[i+2:])
		switch {
		case r == 0:
			out = append(out, `\u2400`...)
		case utf16.IsSurrogate(r):
			if strings.HasPrefix(in[i+6:], `\u`) {
				if low, _ := hex4(in[i+8:]); utf16.DecodeRune(r, low) != utf8.RuneError {
					out = append(out, in[i:i+12]...)
					i += 12
					continue
				}
			}
			out = append(out, `\ufffd`...)
		default:
			out = append(out, in[i:i+6]...)
		}
		i += 6
	}
	return out
}
