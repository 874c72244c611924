package dlq

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// The kinds of JSON values, as people read them.
const (
	EditString  = "string"
	EditNumber  = "number"
	EditBoolean = "boolean"
	EditNull    = "null"
	EditObject  = "object"
	EditArray   = "array"
)

// editSpan is where a value stands in a document: doc[start:end].
type editSpan struct {
	start, end int
	kind       string
}

// editFind finds the value at a JSON pointer (RFC 6901) in doc, which must be
// valid JSON of bounded depth. found counts the places that the pointer names:
// 0 none, more than 1 when a key on the way is repeated; the span is that of
// the last one, the one that most readers take.
func editFind(doc []byte, pointer string) (at editSpan, found int) {
	tokens, ok := editTokens(pointer)
	if !ok {
		return editSpan{}, 0
	}
	w := editWalker{doc: doc}
	w.space()
	w.value(tokens, true)
	return w.at, w.found
}

// editTokens splits a pointer into its unescaped parts.
func editTokens(pointer string) ([]string, bool) {
	if pointer == "" {
		return nil, true
	}
	if pointer[0] != '/' {
		return nil, false
	}
	tokens := strings.Split(pointer[1:], "/")
	for i, t := range tokens {
		if strings.Contains(strings.NewReplacer("~0", "", "~1", "").Replace(t), "~") {
			return nil, false
		}
		tokens[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(t)
	}
	return tokens, true
}

// editWalker walks over valid JSON without building values, so that every byte
// keeps its place.
type editWalker struct {
	doc   []byte
	i     int
	at    editSpan
	found int
}

func (w *editWalker) peek() byte {
	if w.i < len(w.doc) {
		return w.doc[w.i]
	}
	return 0
}

func (w *editWalker) space() {
	for w.i < len(w.doc) && strings.IndexByte(" \t\r\n", w.doc[w.i]) >= 0 {
		w.i++
	}
}

// value steps over one value; when wanted, the tokens still lead into it.
func (w *editWalker) value(tokens []string, wanted bool) {
	start, kind := w.i, EditNumber
	switch w.peek() {
	case '{':
		kind = EditObject
		w.members(tokens, wanted)
	case '[':
		kind = EditArray
		w.elements(tokens, wanted)
	case '"':
		kind = EditString
		w.str()
	default:
		w.word()
		switch w.doc[start:w.i][0] {
		case 't', 'f':
			kind = EditBoolean
		case 'n':
			kind = EditNull
		}
	}
	if wanted && len(tokens) == 0 {
		w.found++
		w.at = editSpan{start, w.i, kind}
	}
}

func (w *editWalker) members(tokens []string, wanted bool) {
	for w.i++; ; w.i++ {
		w.space()
		if w.peek() == '}' {
			break
		}
		from := w.i
		w.str()
		here := wanted && len(tokens) > 0 && editUnquote(w.doc[from:w.i]) == tokens[0]
		w.space()
		w.i++ // the colon
		w.space()
		w.value(editRest(tokens), here)
		w.space()
		if w.peek() != ',' {
			break
		}
	}
	w.i++
}

func (w *editWalker) elements(tokens []string, wanted bool) {
	n := 0
	for w.i++; ; w.i++ {
		w.space()
		if w.peek() == ']' {
			break
		}
		w.value(editRest(tokens), wanted && len(tokens) > 0 && tokens[0] == strconv.Itoa(n))
		n++
		w.space()
		if w.peek() != ',' {
			break
		}
	}
	w.i++
}

func editRest(tokens []string) []string {
	if len(tokens) == 0 {
		return nil
	}
	return tokens[1:]
}

func (w *editWalker) str() {
	for w.i++; w.i < len(w.doc) && w.doc[w.i] != '"'; w.i++ {
		if w.doc[w.i] == '\\' {
			w.i++
		}
	}
	w.i++
}

func (w *editWalker) word() {
	from := w.i
	for w.i < len(w.doc) && strings.IndexByte(",]} \t\r\n", w.doc[w.i]) < 0 {
		w.i++
	}
	w.i = max(w.i, from+1) // whatever it is, go on
}

// editUnquote decodes a JSON string with its quotes. Half a surrogate pair,
// which no text can hold, becomes U+FFFD.
func editUnquote(quoted []byte) string {
	inner := quoted[1 : len(quoted)-1]
	if !strings.ContainsRune(string(inner), '\\') {
		return string(inner)
	}
	out := make([]byte, 0, len(inner))
	for i := 0; i < len(inner); i++ {
		if inner[i] != '\\' {
			out = append(out, inner[i])
			continue
		}
		i++
		switch c := inner[i]; c {
		case 'b', 'f', 'n', 'r', 't':
			out = append(out, "\b\f\n\r\t"[strings.IndexByte("bfnrt", c)])
		case 'u':
			r := editHex(inner[i+1:])
			i += 4
			if utf16.IsSurrogate(r) {
				second := rune(utf8.RuneError)
				if i+6 < len(inner) && inner[i+1] == '\\' && inner[i+2] == 'u' {
					second = utf16.DecodeRune(r, editHex(inner[i+3:]))
				}
				if r = second; r != utf8.RuneError {
					i += 6
				}
			}
			out = utf8.AppendRune(out, r)
		default:
			out = append(out, c)
		}
	}
	return string(out)
}

func editHex(b []byte) rune {
	n, err := strconv.ParseUint(string(b[:4]), 16, 16)
	if err != nil {
		return utf8.RuneError
	}
	return rune(n)
}

// editQuote writes a text as PostgreSQL prints it from jsonb, so that a payload
// in a River row comes back the same: only what must be escaped is, and nothing
// for the sake of HTML.
func editQuote(text string) []byte {
	out := make([]byte, 0, len(text)+2)
	out = append(out, '"')
	for i := range len(text) {
		switch c := text[i]; {
		case c == '"' || c == '\\':
			out = append(out, '\\', c)
		case c >= 0x20:
			out = append(out, c)
		default:
			if at := strings.IndexByte("\b\f\n\r\t", c); at >= 0 {
				out = append(out, '\\', "bfnrt"[at])
				continue
			}
			out = append(out, '\\', 'u', '0', '0', "0123456789abcdef"[c>>4], "0123456789abcdef"[c&15])
		}
	}
	return append(out, '"')
}
