package redact

// What a byte may be part of. Tables instead of functions: these run once for
// every byte of every captured text.
const (
	isUpper = 1 << iota
	isLower
	isDigit
	isKey    // part of a key name: letters, digits, _ - . $
	isLocal  // part of an address before the @
	isDomain // part of an address after the @
	isB64    // base64 and base64url, and the dots of a JWT
	isSpace
)

const isAlnum = isUpper | isLower | isDigit

var class = func() (t [256]uint16) {
	for c := range 256 {
		switch {
		case c >= 'A' && c <= 'Z':
			t[c] = isUpper | isKey | isLocal | isDomain | isB64
		case c >= 'a' && c <= 'z':
			t[c] = isLower | isKey | isLocal | isDomain | isB64
		case c >= '0' && c <= '9':
			t[c] = isDigit | isKey | isLocal | isDomain | isB64
		case c >= 0x80:
			// UTF-8 letters stand in addresses and in our own marks.
			t[c] = isLocal
		}
	}
	for _, c := range "_-.$" {
		t[c] |= isKey
	}
	for _, c := range "._%+-" {
		t[c] |= isLocal
	}
	for _, c := range ".-" {
		t[c] |= isDomain
	}
	for _, c := range "_-.+/=~" {
		t[c] |= isB64
	}
	for _, c := range " \t\r\n\v\f" {
		t[c] |= isSpace
	}
	return t
}()

// quoteAt reports the quote that opens or closes at in[i]: its bytes are zero
// or more backslashes and one quote character. JSON inside JSON inside a log
// line escapes its quotes once for each level, so the depth belongs to the
// quote. ok is false when there is none; end is the index after it.
func quoteAt(in string, i int) (depth int, quote byte, end int, ok bool) {
	for i < len(in) && in[i] == '\\' && depth < 16 {
		depth++
		i++
	}
	if i < len(in) && (in[i] == '"' || in[i] == '\'' || in[i] == '`') {
		return depth, in[i], i + 1, true
	}
	return 0, 0, 0, false
}

// hasFold reports whether in, from i on, starts with the lower-case word.
func hasFold(in string, i int, word string) bool {
	if len(in)-i < len(word) {
		return false
	}
	for k := range len(word) {
		c := in[i+k]
		if class[c]&isUpper != 0 {
			c += 'a' - 'A'
		}
		if c != word[k] {
			return false
		}
	}
	return true
}
