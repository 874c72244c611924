package dlq

import (
	"fmt"
	"unicode/utf8"

	"github.com/redrive-dlq/redrive/dlq/problem"
)

// scanner walks JSON text and hands out spans of it, so that bytes are kept
// as they came: decoding and printing again would round numbers, drop
// repeated keys and rewrite escapes. The text is valid UTF-8 already.
type scanner struct {
	b   []byte
	pos int
}

// member is one key and value of an object, as spans of the document.
type member struct {
	key    string // decoded
	keyPos int    // offset of the key's opening quote
	value  []byte // without surrounding white space
	pos    int    // offset of the value in the document
}

func (s *scanner) fail(format string, args ...any) error {
	return problem.New(problem.Malformed, "The document is not valid JSON at byte %d: %s.", s.pos, fmt.Sprintf(format, args...))
}

func (s *scanner) space() {
	for s.pos < len(s.b) {
		switch s.b[s.pos] {
		case ' ', '\t', '\n', '\r':
			s.pos++
		default:
			return
		}
	}
}

// next is the byte at the cursor, 0 at the end.
func (s *scanner) next() byte {
	if s.pos < len(s.b) {
		return s.b[s.pos]
	}
	return 0
}

// found names what stands at the cursor for a message; never a whole value.
func (s *scanner) found() string {
	if s.pos >= len(s.b) {
		return "the end of the document"
	}
	r, _ := utf8.DecodeRune(s.b[s.pos:])
	return fmt.Sprintf("%q", r)
}

// value walks over any one value. Depth counts the containers around it.
func (s *scanner) value(depth int) error {
	// A stack of open containers instead of recursion: deep input costs bytes,
	// not goroutine stack.
	var open []byte
	for {
		s.space()
		switch c := s.next(); {
		case c == '{' || c == '[':
			if depth+len(open) >= MaxDepth {
				return problem.New(problem.Invalid, "The document nests deeper than %d levels at byte %d. Send the payload as base64 (payload_encoding: base64) if it has to.", MaxDepth, s.pos)
			}
			s.pos++
			s.space()
			if s.next() == c+2 { // '}' is '{'+2, ']' is '['+2
				s.pos++
				break
			}
			open = append(open, c)
			if c == '{' {
				if err := s.key(); err != nil {
					return err
				}
			}
			continue
		case c == '"':
			if err := s.str(); err != nil {
				return err
			}
		case c == '-' || c >= '0' && c <= '9':
			if err := s.number(); err != nil {
				return err
			}
		default:
			if err := s.literal(); err != nil {
				return err
			}
		}
		// A value has ended: close what ends with it.
		for {
			if len(open) == 0 {
				return nil
			}
			s.space()
			top := open[len(open)-1]
			if s.next() == ',' {
				s.pos++
				if top == '{' {
					if err := s.key(); err != nil {
						return err
					}
				}
				break
			}
			if s.next() != top+2 {
				return s.fail("expected a comma or %q, found %s", rune(top+2), s.found())
			}
			s.pos++
			open = open[:len(open)-1]
		}
	}
}

// key walks over a key and its colon.
func (s *scanner) key() error {
	s.space()
	if s.next() != '"' {
		return s.fail("expected a key in quotes, found %s", s.found())
	}
	if err := s.str(); err != nil {
		return err
	}
	s.space()
	if s.next() != ':' {
		return s.fail("expected a colon after the key, found %s", s.found())
	}
	s.pos++
	return nil
}

// str walks over a string.
func (s *scanner) str() error {
	for i := s.pos + 1; i < len(s.b); i++ {
		switch c := s.b[i]; {
		case c == '"':
			s.pos = i + 1
			return nil
		case c < 0x20:
			s.pos = i
			return s.fail("a string holds the raw control character 0x%02x; write it as an escape", c)
		case c == '\\':
			n, ok := escapeLen(s.b[i:])
			if !ok {
				s.pos = i
				return s.fail("a string holds a wrong escape")
			}
			i += n - 1
		}
	}
	s.pos = len(s.b)
	return s.fail("a string isn't closed")
}

// escapeLen is the length of the escape that b begins with.
func escapeLen(b []byte) (int, bool) {
	if len(b) < 2 {
		return 0, false
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2, true
	case 'u':
		_, ok := hex4(b)
		return 6, ok
	}
	return 0, false
}

// hex4 reads the code unit of an escape \uXXXX.
func hex4(b []byte) (rune, bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	var r rune
	for _, c := range b[2:6] {
		switch {
		case c >= '0' && c <= '9':
			r = r<<4 | rune(c-'0')
		case c >= 'a' && c <= 'f':
			r = r<<4 | rune(c-'a'+10)
		case c >= 'A' && c <= 'F':
			r = r<<4 | rune(c-'A'+10)
		default:
			return 0, false
		}
	}
	return r, true
}

func (s *scanner) digits() bool {
	start := s.pos
	for s.pos < len(s.b) && s.b[s.pos] >= '0' && s.b[s.pos] <= '9' {
		s.pos++
	}
	return s.pos > start
}

// number walks over a number of any size; nothing is converted.
func (s *scanner) number() error {
	if s.next() == '-' {
		s.pos++
	}
	zero := s.next() == '0'
	start := s.pos
	if !s.digits() {
		return s.fail("a number has no digits")
	}
	if zero && s.pos > start+1 {
		s.pos = start
		return s.fail("a number begins with 0")
	}
	if s.next() == '.' {
		s.pos++
		if !s.digits() {
			return s.fail("a number has no digits after its point")
		}
	}
	if c := s.next(); c == 'e' || c == 'E' {
		s.pos++
		if c := s.next(); c == '+' || c == '-' {
			s.pos++
		}
		if !s.digits() {
			return s.fail("a number has no digits in its exponent")
		}
	}
	return nil
}

func (s *scanner) literal() error {
	for _, word := range [...]string{"true", "false", "null"} {
		if end := s.pos + len(word); end <= len(s.b) && string(s.b[s.pos:end]) == word {
			s.pos = end
			return nil
		}
	}
	return s.fail("expected a value, found %s", s.found())
}
