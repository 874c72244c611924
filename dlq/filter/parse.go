package filter

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/dlq/redact"
)

// Limits of a filter's text.
const (
	MaxBytes  = 4096 // of the whole text
	maxValue  = 1024 // bytes of one value: the longest key
	maxValues = 100  // of one field
)

// SyntaxError is the cause of the problem that Parse returns: where the wrong
// word stands, in bytes from the start of the text, and what was meant.
type SyntaxError struct {
	Offset, Length int
	Suggestion     string // the word to write instead; may be empty
}

// Error implements error.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("filter: bytes %d to %d", e.Offset, e.Offset+e.Length)
}

// Parse reads a filter. The error is a *problem.Error (Invalid, field q) whose
// message points at the wrong word by its position, 1 being the first
// character; its cause is a *SyntaxError.
func Parse(text string) (Filter, error) {
	p := parser{text: text}
	switch {
	case len(text) > MaxBytes:
		return Filter{}, p.fail(0, 0, "", "The filter is longer than %d bytes: shorten it.", MaxBytes)
	case !utf8.ValidString(text):
		return Filter{}, p.fail(0, 0, "", "The filter isn't valid UTF-8 text.")
	}
	if at := strings.IndexByte(text, 0); at >= 0 {
		return Filter{}, p.fail(at, 1, "", "There is a NUL character at position %d: remove it.", p.position(at))
	}
	for p.space(); p.at < len(p.text); p.space() {
		if err := p.term(); err != nil {
			return Filter{}, err
		}
	}
	return p.filter.normal(), nil
}

// Word returns the one word that a text consists of when the language has no
// meaning for it: a name that somebody pasted, "wel_8821" or
// "welcome:snd_5f2a". What begins with a field of the language isn't one.
func Word(text string) (string, bool) {
	word := strings.TrimFunc(text, isSpace)
	if word == "" || len(word) > maxValue || !utf8.ValidString(word) || strings.ContainsFunc(word, func(r rune) bool { return isSpace(r) || r == '"' || r == 0 }) {
		return "", false
	}
	name, _, colon := strings.Cut(strings.ToLower(strings.TrimPrefix(word, "-")), ":")
	_, known := infoOf(name)
	if colon && (known || name == wordOlder || name == wordNewer) {
		return "", false
	}
	return word, true
}

type parser struct {
	text   string
	at     int
	filter Filter
}

func isSpace(r rune) bool { return unicode.IsSpace(r) }

func (p *parser) space() {
	rest := strings.TrimLeftFunc(p.text[p.at:], isSpace)
	p.at = len(p.text) - len(rest)
}

// position is the 1-based number of the character that begins at a byte.
func (p *parser) position(at int) int { return utf8.RuneCountInString(p.text[:at]) + 1 }

func (p *parser) fail(at, length int, suggestion, format string, args ...any) error {
	return &problem.Error{
		Code: problem.Invalid, Field: "q", Message: fmt.Sprintf(format, args...),
		Err: &SyntaxError{Offset: at, Length: length, Suggestion: suggestion},
	}
}

// term reads one -name:value,value.
func (p *parser) term() error {
	start := p.at
	not := p.text[p.at] == '-'
	if not {
		p.at++
	}
	word := p.text[p.at:]
	if end := strings.IndexFunc(word, func(r rune) bool { return isSpace(r) || r == ':' || r == '"' }); end >= 0 {
		word = word[:end]
	}
	if rest := p.text[p.at+len(word):]; rest == "" || rest[0] != ':' {
		return p.noField(start, word)
	}
	nameAt := p.at
	p.at += len(word) + 1
	name := strings.ToLower(word)
	if name == wordOlder || name == wordNewer {
		return p.time(start, not, name)
	}
	info, ok := infoOf(name)
	if !ok {
		return p.unknown(nameAt, word)
	}
	values, err := p.values(info)
	if err != nil {
		return err
	}
	list := info.is(&p.filter)
	if not {
		list = info.not(&p.filter)
	} else if len(*list) > 0 {
		return p.fail(start, p.at-start, "", "%s: stands twice, the second time at position %d: write the values behind one %s:, with commas, which mean or.", name, p.position(start), name)
	}
	*list = append(*list, values...)
	if len(*list) > maxValues {
		return p.fail(start, p.at-start, "", "%s: takes at most %d values.", name, maxValues)
	}
	return nil
}

// values reads what stands behind the colon.
func (p *parser) values(info fieldInfo) ([]string, error) {
	var values []string
	for {
		start := p.at
		v, err := p.value(string(info.field))
		if err != nil {
			return nil, err
		}
		if info.words != nil {
			v = strings.ToLower(v)
			if err := p.checkWord(start, info, v); err != nil {
				return nil, err
			}
		}
		values = append(values, v)
		if p.at == len(p.text) || p.text[p.at] != ',' {
			return values, nil
		}
		p.at++
	}
}

// value reads one value, bare or in quotes.
func (p *parser) value(name string) (string, error) {
	start := p.at
	var v string
	if strings.HasPrefix(p.text[p.at:], `"`) {
		var err error
		if v, err = p.quoted(name); err != nil {
			return "", err
		}
	} else {
		v = p.text[p.at:]
		if end := strings.IndexFunc(v, func(r rune) bool { return isSpace(r) || r == ',' }); end >= 0 {
			v = v[:end]
		}
		p.at += len(v)
	}
	switch {
	case v == "":
		return "", p.fail(start, p.at-start, "", "%s: at position %d has no value: write it directly behind the colon, in quotes if it holds spaces.", name, p.position(start))
	case len(v) > maxValue:
		return "", p.fail(start, p.at-start, "", "The value of %s: at position %d is longer than %d bytes.", name, p.position(start), maxValue)
	}
	return v, nil
}

func (p *parser) quoted(name string) (string, error) {
	start := p.at
	var b strings.Builder
	for p.at++; p.at < len(p.text); p.at++ {
		switch c := p.text[p.at]; {
		case c == '\\' && p.at+1 < len(p.text) && (p.text[p.at+1] == '"' || p.text[p.at+1] == '\\'):
			p.at++
			b.WriteByte(p.text[p.at])
		case c == '"':
			p.at++
			if r, _ := utf8.DecodeRuneInString(p.text[p.at:]); p.at < len(p.text) && r != ',' && !isSpace(r) {
				return "", p.fail(p.at, 1, "", "After the closing quote of %s:, at position %d, a space or a comma must follow.", name, p.position(p.at))
			}
			return b.String(), nil
		default:
			b.WriteByte(c)
		}
	}
	return "", p.fail(start, len(p.text)-start, "", "The quote that opens at position %d is never closed.", p.position(start))
}

func (p *parser) checkWord(start int, info fieldInfo, v string) error {
	if slices.Contains(info.words, v) {
		return nil
	}
	hint := nearest(strings.NewReplacer("-", "_", " ", "_").Replace(v), info.words)
	message := fmt.Sprintf("%s: at position %d knows no such word%s.", info.field, p.position(start), echo(v))
	return p.fail(start, p.at-start, hint, "%s%s It takes %s.", message, didYouMean(hint), strings.Join(info.words, ", "))
}

// time reads what stands behind older: or newer:.
func (p *parser) time(start int, not bool, name string) error {
	if not {
		other := map[string]string{wordOlder: wordNewer, wordNewer: wordOlder}[name]
		return p.fail(start, len(name)+2, other+":", "-%s: at position %d: write %s: instead.", name, p.position(start), other)
	}
	valueAt := p.at
	v, err := p.value(name)
	if err != nil {
		return err
	}
	age, at, ok := readTime(v)
	if !ok {
		return p.fail(valueAt, p.at-valueAt, "2d", "%s: at position %d takes an age like 30m, 1h, 2d or 3w, or a UTC date like 2026-01-31.", name, p.position(valueAt))
	}
	ageOf, atOf := &p.filter.Older, &p.filter.To
	if name == wordNewer {
		ageOf, atOf = &p.filter.Newer, &p.filter.From
	}
	if (age != 0 && *ageOf != 0) || (age == 0 && !atOf.IsZero()) {
		return p.fail(start, p.at-start, "", "%s: stands twice, the second time at position %d: keep one.", name, p.position(start))
	}
	if age != 0 {
		*ageOf = age
	} else {
		*atOf = at
	}
	return nil
}

func (p *parser) unknown(at int, word string) error {
	names := []string{wordOlder, wordNewer}
	for _, info := range fields {
		names = append(names, string(info.field))
	}
	hint := aliases[strings.ToLower(word)]
	if hint == "" {
		hint = nearest(strings.ToLower(word), names)
	}
	if hint != "" {
		hint += ":"
	}
	slices.Sort(names)
	return p.fail(at, len(word), hint, "At position %d: there is no field%s.%s The fields are %s.",
		p.position(at), echo(word), didYouMean(hint), strings.Join(names, ", "))
}

// noField refuses a word without a field: a filter has no free text.
func (p *parser) noField(start int, word string) error {
	length := max(len(word), 1)
	if slices.Contains(Statuses, word) {
		return p.fail(start, length, "status:"+word, "At position %d: the word %q has no field. Did you mean status:%s?", p.position(start), word, word)
	}
	return p.fail(start, length, "", "At position %d: what stands there has no field. Write field:value, for example class:TimeoutError, job:4711 or key:invoice_123.", p.position(start))
}

// echo repeats a wrong word unless it is long or looks like a secret.
func echo(word string) string {
	if word == "" || len(word) > 40 || redact.LooksSecret(word) {
		return ""
	}
	return fmt.Sprintf(" %q", word)
}

func didYouMean(hint string) string {
	if hint == "" {
		return ""
	}
	return " Did you mean " + hint + "?"
}

// readTime reads an age or a moment: exactly one of the two.
func readTime(v string) (age time.Duration, at time.Time, ok bool) {
	if age, ok = readAge(v); ok {
		return age, at, true
	}
	for _, layout := range []string{time.DateOnly, time.RFC3339Nano} {
		if at, err := time.Parse(layout, v); err == nil && plausible(at) {
			return 0, at.UTC().Truncate(time.Microsecond), true
		}
	}
	return 0, at, false
}

// plausible: PostgreSQL and people both deal with four-digit years.
func plausible(at time.Time) bool { return at.Year() >= 1900 && at.Year() < 10000 }
