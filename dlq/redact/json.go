package redact

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Report says what a redaction hid.
type Report struct {
	// Hidden counts the values that were replaced.
	Hidden int
	// Paths are the JSON Pointers (RFC 6901) of the replaced values, in the
	// document's order, at most [MaxPaths].
	Paths []string
	// Reason is set when the document was not read as JSON, or was hidden as a
	// whole, and says why.
	Reason string
}

// MaxPaths bounds the list of a report.
const MaxPaths = 1000

// JSON hides the secrets of a JSON document and keeps all its other bytes:
// numbers with every digit, white space, key order, repeated keys. A hidden
// value becomes a JSON string, so the result is valid JSON.
//
// A value is hidden as a whole when its key names a secret; other strings are
// scanned like [Text], and numbers for cards. What is not valid JSON is treated
// as text; what is longer than [MaxBytes] or deeper than [MaxDepth] is hidden
// as a whole. The report says so.
func JSON(b []byte) ([]byte, Report) {
	if len(b) > MaxBytes {
		return []byte(strconv.Quote(tooLong(len(b)))), Report{Hidden: 1, Reason: "larger than can be checked"}
	}
	in := string(b)
	if depthOf(in) > MaxDepth {
		note := fmt.Sprintf("‹hidden: nested deeper than %d levels›", MaxDepth)
		return []byte(strconv.Quote(note)), Report{Hidden: 1, Reason: "nested deeper than can be checked"}
	}
	if !utf8.ValidString(in) || !json.Valid(b) {
		out, hidden := text(in)
		return []byte(out), Report{Hidden: hidden, Reason: "not valid JSON: read as text"}
	}
	w := walker{scanner: scanner{in: in}}
	w.walk()
	if w.hits == 0 {
		return b, Report{}
	}
	return []byte(w.result()), Report{Hidden: w.hits, Paths: w.paths}
}

// depthOf returns how deep brackets nest outside strings.
func depthOf(in string) int {
	depth, deepest := 0, 0
	for i := 0; i < len(in); i++ {
		switch in[i] {
		case '"':
			i = stringEnd(in, i) - 1
		case '{', '[':
			depth++
			deepest = max(deepest, depth)
		case '}', ']':
			depth--
		}
	}
	return deepest
}

// stringEnd returns the index after the JSON string whose quote is at i.
func stringEnd(in string, i int) int {
	for i++; i < len(in); i++ {
		switch in[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(in)
}

// frame is one open object or array.
type frame struct {
	object bool
	index  int    // of the current element
	key    string // the current key, as written, without quotes
	named  verdict
	// telltale is set in {"name": "password", "value": …} until the value.
	telltale bool
}

// walker reads a document that is known to be valid.
type walker struct {
	scanner
	stack []frame
	paths []string
}

func (w *walker) walk() {
	in := w.in
	wantKey := false
	for i := 0; i < len(in); {
		switch c := in[i]; c {
		case '{', '[':
			w.stack = append(w.stack, frame{object: c == '{'})
			wantKey = c == '{'
			i++
		case '}', ']':
			w.stack = w.stack[:len(w.stack)-1]
			wantKey = false
			i++
		case ',':
			top := &w.stack[len(w.stack)-1]
			top.index++
			wantKey = top.object
			i++
		case '"':
			end := stringEnd(in, i)
			if wantKey {
				wantKey = false
				i = w.key(i, end)
				continue
			}
			w.str(i, end)
			i = end
		case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
			end := i + 1
			for end < len(in) && (class[in[end]]&isDigit != 0 || strings.IndexByte("+-.eE", in[end]) >= 0) {
				end++
			}
			w.number(i, end)
			i = end
		default:
			i++ // white space, colons, true, false, null
		}
	}
}

// key notes the key in[i:end], with its quotes, and when it names a secret,
// hides the value after it. It returns where to go on.
func (w *walker) key(i, end int) int {
	in := w.in
	top := &w.stack[len(w.stack)-1]
	raw := in[i+1 : end-1]
	name := unescape(raw)
	top.key = raw
	if out, hidden := text(name); hidden > 0 {
		w.replace(i, end, quoteJSON(out)) // an address as a key
	}
	v := end
	for class[in[v]]&isSpace != 0 || in[v] == ':' {
		v++
	}
	verdict, ok := judgeKey(name, inKey)
	if !ok && top.telltale && (strings.EqualFold(name, "value") || strings.EqualFold(name, "val")) {
		verdict, ok = top.named, true
		top.telltale = false
	}
	if !ok {
		return v
	}
	stop := valueEnd(in, v)
	if !w.hideKeyed(v, stop, verdict) {
		return v
	}
	return stop
}

// hideKeyed hides the value in[v:end] of a key that names a secret, unless the
// value tells nothing. It returns false when the value is to be read on.
func (w *walker) hideKeyed(v, end int, verdict verdict) bool {
	val := w.in[v:end]
	switch c := val[0]; {
	case c == '"':
		s := unescape(val[1 : len(val)-1])
		if telling(s, inAssign) {
			w.replace(v, end, quoteJSON(w.replacement(verdict, s)))
		}
	case c == 't' || c == 'f' || c == 'n', val == "{}", val == "[]":
	case verdict.weak:
		return false
	case c == '{' || c == '[':
		w.replace(v, end, quoteJSON(mark(verdict.kind)))
	case verdict.plural: // "tokens": 512
	default:
		w.replace(v, end, quoteJSON(mark(verdict.kind)))
	}
	return true
}

// str scans the string value in[i:end].
func (w *walker) str(i, end int) {
	raw := w.in[i+1 : end-1]
	s := unescape(raw)
	if n := len(w.stack); n > 0 && w.stack[n-1].object {
		top := &w.stack[n-1]
		if len(s) <= keyTail && namesAnother(top.key) {
			if v, ok := judgeKey(s, inKey); ok {
				top.named, top.telltale = v, true
			}
		}
	}
	if out, hidden := text(s); hidden > 0 {
		w.replace(i, end, quoteJSON(out))
	}
}

// namesAnother reports whether the string under this key names what a "value"
// beside it holds.
func namesAnother(key string) bool {
	switch len(key) {
	case 3:
		return strings.EqualFold(key, "key")
	case 4:
		return strings.EqualFold(key, "name")
	case 5:
		return strings.EqualFold(key, "field")
	case 6:
		return strings.EqualFold(key, "header")
	}
	return false
}

func (w *walker) number(i, end int) {
	n := end - i
	if n < 13 || n > 19 || strings.Trim(w.in[i:end], "0123456789") != "" || !isCard(w.in[i:end]) {
		return
	}
	w.replace(i, end, quoteJSON("‹card ••"+w.in[end-4:end]+"›"))
}

func (w *walker) replace(start, end int, with string) {
	hits := w.hits
	w.hide(start, end, with)
	if w.hits > hits && len(w.paths) < MaxPaths {
		w.paths = append(w.paths, w.pointer())
	}
}

var pointerEscaper = strings.NewReplacer("~", "~0", "/", "~1")

func (w *walker) pointer() string {
	var b strings.Builder
	for _, f := range w.stack {
		b.WriteByte('/')
		if f.object {
			b.WriteString(pointerEscaper.Replace(Text(unescape(f.key))))
		} else {
			b.WriteString(strconv.Itoa(f.index))
		}
	}
	return b.String()
}

// valueEnd returns the index after the value that starts at i.
func valueEnd(in string, i int) int {
	switch in[i] {
	case '"':
		return stringEnd(in, i)
	case '{', '[':
		depth := 0
		for ; i < len(in); i++ {
			switch in[i] {
			case '"':
				i = stringEnd(in, i) - 1
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					return i + 1
				}
			}
		}
		return len(in)
	}
	for i < len(in) && strings.IndexByte(",]} \t\r\n", in[i]) < 0 {
		i++
	}
	return i
}
