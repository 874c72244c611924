package group

import (
	"strings"

	"github.com/redrive-dlq/redrive/dlq/category"
)

// The marks of what varies.
const (
	markNumber = "‹n›"
	markID     = "‹id›"
	markTime   = "‹time›"
	markText   = "‹text›"
	markMail   = "‹email›"
	markQuery  = "‹query›"
)

// maxQuoted is how far a closing quote is looked for, in bytes.
const maxQuoted = 512

// folder is one pass over a redacted message.
type folder struct {
	in   string
	out  []byte
	last string // the mark just written, while only separators followed it
	seps int    // length of out when the mark had been written
}

func (f *folder) run() {
	in := f.in
	for i := 0; i < len(in); {
		c := in[i]
		switch {
		case strings.HasPrefix(in[i:], "‹"):
			i = f.mark(i)
		case space(c):
			for i < len(in) && space(in[i]) {
				i++
			}
			if len(f.out) > 0 && i < len(in) {
				f.plain(" ")
			}
		case c == '"' || c == '`' || c == '\'' && (i == 0 || !wordByte(in[i-1])):
			i = f.quoted(i)
		case c == '?' && i > 0 && (wordByte(in[i-1]) || in[i-1] == '/') && i+1 < len(in) && wordByte(in[i+1]):
			i = f.query(i)
		case wordByte(c):
			i = f.word(i)
		default:
			f.plain(in[i : i+1])
			i++
		}
	}
}

// plain writes text that stays. Separators between two equal marks are undone
// by put.
func (f *folder) plain(s string) {
	f.out = append(f.out, s...)
	if s != " " && s != "," && s != ";" {
		f.last = ""
	}
}

// put writes a mark, once for a whole list of the same: "duplicate rows: ‹id›".
// In a list of ids, one that happens to be all digits is one of them.
func (f *folder) put(mark string) {
	if f.last == mark || isNumberOrID(f.last) && isNumberOrID(mark) && len(f.out) > f.seps {
		f.out = f.out[:f.seps]
		return
	}
	f.out = append(f.out, mark...)
	f.last, f.seps = mark, len(f.out)
}

func isNumberOrID(mark string) bool { return mark == markNumber || mark == markID }

// mark copies a mark of the redactor, without the digits that it kept.
func (f *folder) mark(i int) int {
	end := strings.Index(f.in[i:min(len(f.in), i+64)], "›")
	if end < 0 {
		f.plain("‹")
		return i + len("‹")
	}
	name, _, _ := strings.Cut(f.in[i+len("‹"):i+end], " ••")
	f.put("‹" + name + "›")
	return i + end + len("›")
}

// quoted folds the text between two quotes on one line.
func (f *folder) quoted(i int) int {
	in := f.in
	for end := i + 1; end < min(len(in), i+maxQuoted) && in[end] != '\n'; end++ {
		if in[end] == '\\' {
			end++
			continue
		}
		if in[end] == in[i] && (end+1 == len(in) || !wordByte(in[end+1])) {
			f.put(markText)
			return end + 1
		}
	}
	f.plain(in[i : i+1])
	return i + 1
}

// query folds the query of a URL.
func (f *folder) query(i int) int {
	f.plain("?")
	f.put(markQuery)
	for i < len(f.in) && !space(f.in[i]) && strings.IndexByte("\"'`)>", f.in[i]) < 0 {
		i++
	}
	return i
}

// word folds one run of word characters, with the - : . and @ inside it.
func (f *folder) word(i int) int {
	in := f.in
	if category.IsStatus(in, i) {
		f.plain(in[i : i+3]) // 404 and 503 are different failures
		return i + 3
	}
	end := wordEnd(in, i)
	token := in[i:end]
	switch {
	case strings.Contains(token, "@"):
		f.put(markMail)
	case isTime(token):
		f.put(markTime)
	case isID(token):
		f.put(markID)
	default:
		f.digits(token)
	}
	return end
}

// digits writes a token with its runs of digits folded, and its parts that are
// ids: inv-16 becomes inv-‹n›.
func (f *folder) digits(token string) {
	for i := 0; i < len(token); {
		start := i
		switch {
		case wordByte(token[i]):
			for i < len(token) && wordByte(token[i]) {
				i++
			}
			f.part(token[start:i])
		default:
			// Numbers with points, colons or commas inside are one number.
			f.plain(token[i : i+1])
			i++
		}
	}
}

func (f *folder) part(p string) {
	if isID(p) {
		f.put(markID)
		return
	}
	for i := 0; i < len(p); {
		start := i
		if digit(p[i]) {
			for i < len(p) && digit(p[i]) {
				i++
			}
			f.put(markNumber)
			continue
		}
		for i < len(p) && !digit(p[i]) {
			i++
		}
		f.plain(p[start:i])
	}
}
