package redact

import (
	"fmt"
	"strings"
)

// Text hides the secrets in free text: error messages, stacks, causes, URLs,
// form bodies, argument printouts. It returns the text itself when there is
// nothing to hide, and only a note when the text is longer than [MaxBytes].
// Control characters stay; see [Visible] and [Readable].
func Text(s string) string {
	out, _ := text(s)
	return out
}

// Readable is what a page shows of a free text: [Visible], then [Text].
func Readable(s string) string { return Text(Visible(s)) }

// LooksSecret reports whether the redactor would hide anything in s. Search
// terms that it recognises must not travel in URLs.
func LooksSecret(s string) bool {
	_, hidden := text(s)
	return hidden > 0
}

func text(s string) (string, int) {
	if len(s) > MaxBytes {
		return tooLong(len(s)), 1
	}
	sc := scanner{in: s}
	sc.run()
	return sc.result(), sc.hits
}

func tooLong(n int) string {
	return fmt.Sprintf("‹hidden: %d bytes are more than can be checked›", n)
}

// scanner is one pass over a text.
type scanner struct {
	in   string
	out  []byte
	last int // everything before it is already in out
	hits int
	// keepLength overwrites secrets with as many asterisks, for binary data
	// whose offsets must stay.
	keepLength bool
	// run of non-space bytes last looked at for an @, so that none is looked
	// at twice.
	runEnd, runAt int
}

// trigger says what a byte may start.
const (
	onNothing = iota
	onSeparator
	onAt
	onPercent
	onDigit
	onLetter
	onDash
	onTag
)

var trigger = func() (t [256]uint8) {
	t[':'], t['='] = onSeparator, onSeparator
	t['@'], t['%'], t['-'], t['>'] = onAt, onPercent, onDash, onTag
	for c := '0'; c <= '9'; c++ {
		t[c] = onDigit
	}
	for c := 'A'; c <= 'Z'; c++ {
		t[c] = onLetter // IBANs
	}
	for c := 'a'; c <= 'z'; c++ {
		t[c] = onLetter
	}
	return t
}()

func (s *scanner) run() {
	in := s.in
	for i := 0; i < len(in); {
		switch trigger[in[i]] {
		case onNothing:
			i++
		case onLetter:
			i = s.words(i)
		case onDigit:
			i = s.digits(i)
		case onSeparator:
			if in[i] == ':' && strings.HasPrefix(in[i:], "://") {
				i = s.url(i)
			} else {
				i = s.pair(i)
			}
		case onAt:
			i = s.at(i, 1)
		case onPercent:
			if hasFold(in, i, "%40") {
				i = s.at(i, 3)
			} else if hasFold(in, i, "%2540") {
				i = s.at(i, 5)
			} else {
				i++
			}
		case onDash:
			i = s.dash(i)
		case onTag:
			i = s.element(i)
		}
	}
}

// words looks at the run of letters and digits that starts at i, and skips it
// when nothing begins there.
func (s *scanner) words(i int) int {
	in := s.in
	if next := s.word(i); next > i+1 {
		return next
	}
	i++
	if escapedBefore(in, i) {
		return i // what follows a literal \n starts anew
	}
	for i < len(in) && class[in[i]]&isAlnum != 0 {
		i++
	}
	return i
}

// escapedBefore reports whether a literal \n, \r or \t ends at i, as in a text
// that was escaped twice: a word may start after it.
func escapedBefore(in string, i int) bool {
	return i > 1 && in[i-2] == '\\' && (in[i-1] == 'n' || in[i-1] == 'r' || in[i-1] == 't')
}

// hide replaces in[start:end].
func (s *scanner) hide(start, end int, replacement string) {
	start = max(start, s.last)
	if end <= start || s.in[start:end] == replacement {
		return
	}
	s.hits++
	s.out = append(s.out, s.in[s.last:start]...)
	if s.keepLength {
		for range end - start {
			s.out = append(s.out, '*')
		}
	} else {
		s.out = append(s.out, replacement...)
	}
	s.last = end
}

func (s *scanner) result() string {
	if s.hits == 0 {
		return s.in
	}
	s.out = append(s.out, s.in[s.last:]...)
	s.last = len(s.in)
	return string(s.out)
}
