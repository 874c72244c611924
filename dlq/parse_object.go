package dlq

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/redrive-dlq/redrive/dlq/problem"
)

// object reads the members of the object at the cursor; the values are only
// walked over. Where is its place (a JSON Pointer, empty for the document).
// Keys that repeat or differ only in case are refused: readers disagree about
// which of them counts.
func (s *scanner) object(where string, depth int) ([]member, error) {
	members, err := s.members(depth)
	if err != nil {
		return nil, err
	}
	seen := make(map[string]string, len(members))
	for _, m := range members {
		folded := foldKey(m.key)
		if before, ok := seen[folded]; ok {
			place := where + "/" + pointerToken(m.key)
			if before == m.key {
				return nil, problem.At(problem.Invalid, place, "The key %s stands twice in %s (byte %d). Send it once.", quoteName(m.key), placeName(where), m.keyPos)
			}
			return nil, problem.At(problem.Invalid, place, "The keys %s and %s in %s differ only in case (byte %d). Send one of them.",
				quoteName(before), quoteName(m.key), placeName(where), m.keyPos)
		}
		seen[folded] = m.key
	}
	return members, nil
}

// members reads an object's members without judging its keys.
func (s *scanner) members(depth int) ([]member, error) {
	s.pos++ // the brace
	var out []member
	s.space()
	if s.next() == '}' {
		s.pos++
		return out, nil
	}
	for {
		s.space()
		m := member{keyPos: s.pos}
		if err := s.key(); err != nil {
			return nil, err
		}
		m.key, _ = unquote(s.b[m.keyPos : bytes.LastIndexByte(s.b[:s.pos], '"')+1])
		s.space()
		m.pos = s.pos
		if err := s.value(depth + 1); err != nil {
			return nil, err
		}
		m.value = s.b[m.pos:s.pos:s.pos]
		out = append(out, m)
		s.space()
		switch s.next() {
		case ',':
			s.pos++
		case '}':
			s.pos++
			return out, nil
		default:
			return nil, s.fail("expected a comma or '}', found %s", s.found())
		}
	}
}

// elements reads the list at the cursor into spans.
func (s *scanner) elements(depth int) ([]member, error) {
	s.pos++ // the bracket
	var out []member
	s.space()
	if s.next() == ']' {
		s.pos++
		return out, nil
	}
	for {
		s.space()
		m := member{pos: s.pos}
		if err := s.value(depth + 1); err != nil {
			return nil, err
		}
		m.value = s.b[m.pos:s.pos:s.pos]
		out = append(out, m)
		s.space()
		switch s.next() {
		case ',':
			s.pos++
		case ']':
			s.pos++
			return out, nil
		default:
			return nil, s.fail("expected a comma or ']', found %s", s.found())
		}
	}
}

// unquote decodes a JSON string that the scanner has accepted. Whole is false
// when half a surrogate pair had to be replaced by U+FFFD.
func unquote(b []byte) (text string, whole bool) {
	b = b[1 : len(b)-1]
	if bytes.IndexByte(b, '\\') < 0 {
		return string(b), true
	}
	whole = true
	out := make([]byte, 0, len(b))
	for i := 0; i < len(b); {
		if b[i] != '\\' {
			next := bytes.IndexByte(b[i:], '\\')
			if next < 0 {
				next = len(b) - i
			}
			out = append(out, b[i:i+next]...)
			i += next
			continue
		}
		if b[i+1] != 'u' {
			out = append(out, plainEscapes[b[i+1]])
			i += 2
			continue
		}
		r, _ := hex4(b[i:])
		i += 6
		if utf16.IsSurrogate(r) {
			low, ok := hex4(b[i:])
			if pair := utf16.DecodeRune(r, low); ok && pair != unicode.ReplacementChar {
				r = pair
				i += 6
			} else {
				r = unicode.ReplacementChar
				whole = false
			}
		}
		out = utf8.AppendRune(out, r)
	}
	return string(out), whole
}

var plainEscapes = map[byte]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// foldKey maps keys that case-insensitive readers take for one to one text.
func foldKey(key string) string {
	return strings.Map(func(r rune) rune {
		least := r
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			least = min(least, f)
		}
		return least
	}, key)
}

// pointerToken escapes a key for a JSON Pointer (RFC 6901).
func pointerToken(key string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(cutName(key))
}

func placeName(where string) string {
	if where == "" {
		return "the document"
	}
	return where
}
