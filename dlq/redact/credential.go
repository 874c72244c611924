package redact

import (
	"encoding/base64"
	"strings"
)

// schemes are the authentication schemes that carry one credential; their name
// stays readable.
var schemes = []string{"bearer", "basic", "token", "apikey", "negotiate", "ntlm", "dpop"}

func isAuthorization(key string) bool {
	return len(key) >= len("authorization") && hasFold(key, len(key)-len("authorization"), "authorization")
}

// schemeAt returns the length of a scheme's name at i, with the spaces after
// it, or 0.
func schemeAt(in string, i int) int {
	for _, s := range schemes {
		if hasFold(in, i, s) && i+len(s) < len(in) && in[i+len(s)] == ' ' {
			n := len(s)
			for i+n < len(in) && in[i+n] == ' ' {
				n++
			}
			return n
		}
	}
	return 0
}

// credential hides the value of an authorization or token field and keeps its
// scheme.
func credential(val string) string {
	if n := schemeAt(val, 0); n > 0 && n < len(val) {
		return val[:n] + mark(kindToken)
	}
	return mark(kindToken)
}

// headerEnd finds the end of an Authorization or Cookie header inside a text:
// one credential after a known scheme, else the line's end, or the quote that
// encloses the whole header as in curl -H "…".
func (s *scanner) headerEnd(v, keyStart int, kind string) int {
	in := s.in
	if n := schemeAt(in, v); n > 0 && kind == kindToken {
		return unquotedEnd(in, v+n)
	}
	var enclosing byte
	if keyStart > 0 && (in[keyStart-1] == '"' || in[keyStart-1] == '\'') {
		enclosing = in[keyStart-1]
	}
	end := v
	for end < len(in) && in[end] != '\n' && in[end] != '\r' && (enclosing == 0 || in[end] != enclosing || !closes(in, end+1)) {
		end++
	}
	return end
}

// cookieNames carry settings, not sessions: they may stay.
var cookieNames = map[string]bool{
	"theme": true, "lang": true, "language": true, "locale": true, "tz": true, "timezone": true, "currency": true,
	"path": true, "domain": true, "expires": true, "max-age": true, "samesite": true, "secure": true,
	"httponly": true, "partitioned": true, "priority": true,
}

// cookies hides the values of a Cookie or Set-Cookie header and keeps names.
func cookies(val string) string {
	if !strings.Contains(val, "=") {
		return mark(kindCookie)
	}
	parts := strings.Split(val, ";")
	for i, p := range parts {
		name, value, ok := strings.Cut(p, "=")
		bare := strings.ToLower(strings.TrimSpace(name))
		switch {
		case cookieNames[bare]:
			// An address can hide in a setting too.
			if LooksSecret(p) {
				parts[i] = Text(p)
			}
		case !ok && bare == "":
		case !ok:
			parts[i] = leading(p) + mark(kindCookie)
		case telling(value, inAssign):
			parts[i] = Text(name) + "=" + mark(kindCookie)
		}
	}
	return strings.Join(parts, ";")
}

func leading(p string) string { return p[:len(p)-len(strings.TrimLeft(p, " "))] }

// word looks at the word that starts at i: a scheme with its credential, a JWT,
// a key of a well-known shape, "cvv 123", an IBAN.
func (s *scanner) word(i int) int {
	in := s.in
	if i+4 < len(in) && class[in[i]]&class[in[i+1]]&isUpper != 0 && class[in[i+2]]&class[in[i+3]]&isDigit != 0 {
		if end := s.iban(i); end > i+1 {
			return end
		}
	}
	switch in[i] | 0x20 {
	case 'b':
		if hasFold(in, i, "bearer ") {
			return s.bearer(i, len("bearer "))
		}
		if hasFold(in, i, "basic ") {
			return s.basic(i + len("basic "))
		}
	case 'c':
		if hasFold(in, i, "cvv") || hasFold(in, i, "cvc") || hasFold(in, i, "csc") {
			return s.cvv(i + 3)
		}
	case 'e':
		if strings.HasPrefix(in[i:], "eyJ") {
			return s.jwt(i)
		}
	}
	if end, kind := shapeAt(in, i); end > 0 {
		s.hide(i, end, mark(kind))
		return end
	}
	return i + 1
}

// bearer hides the credential after "Bearer", if it is one: "bearer token
// expired" is prose.
func (s *scanner) bearer(i, n int) int {
	v := i + n
	for v < len(s.in) && s.in[v] == ' ' {
		v++
	}
	end := unquotedEnd(s.in, v)
	val := strings.TrimRight(s.in[v:end], ".,:;!?")
	if !looksRandom(val) {
		return v
	}
	s.hide(v, end, mark(kindToken))
	return end
}

// looksRandom tells a credential from a word: longer than any word, or with
// digits, or with letters in a mixture that words don't have.
func looksRandom(v string) bool {
	if len(v) < 4 || isMark(v) || hasFold(v, 0, "realm=") || hasFold(v, 0, "error=") || hasFold(v, 0, "scope=") {
		return false
	}
	if len(v) >= 24 {
		return true
	}
	for i := range len(v) {
		c := class[v[i]]
		if c&isDigit != 0 || i > 0 && c&isUpper != 0 || c&isAlnum == 0 && v[i] != '-' && v[i] != '\'' {
			return true
		}
	}
	return false
}

// basic hides base64 that holds user:password; "basic plan" stays.
func (s *scanner) basic(v int) int {
	end := v
	for end < len(s.in) && class[s.in[end]]&isB64 != 0 {
		end++
	}
	val := strings.TrimRight(s.in[v:end], "=.")
	if len(val) < 4 || len(val) > 4096 {
		return v
	}
	plain, err := base64.RawStdEncoding.DecodeString(val)
	if err != nil {
		plain, err = base64.RawURLEncoding.DecodeString(val)
	}
	if err != nil || !strings.Contains(string(plain), ":") {
		return v
	}
	s.hide(v, end, mark(kindToken))
	return end
}

// jwt hides header.payload[.signature].
func (s *scanner) jwt(i int) int {
	in := s.in
	end, dots, run := i, 0, 0
	for end < len(in) && (class[in[end]]&isAlnum != 0 || in[end] == '-' || in[end] == '_' || in[end] == '.' || in[end] == '=') {
		if in[end] == '.' {
			if run < 8 && dots == 0 {
				break
			}
			dots, run = dots+1, 0
		} else {
			run++
		}
		end++
	}
	if dots == 0 {
		return end // base64 of some JSON: one look at each byte is enough
	}
	s.hide(i, end, mark(kindJWT))
	return end
}

// cvv hides the three or four digits after "cvv"; after = and : the name
// decides already.
func (s *scanner) cvv(v int) int {
	in := s.in
	if v < len(in) && in[v] == '2' {
		v++
	}
	start := v
	for v < len(in) && (in[v] == ' ' || in[v] == '#') {
		v++
	}
	end := v
	for end < len(in) && class[in[end]]&isDigit != 0 {
		end++
	}
	if v == start || end-v < 3 || end-v > 4 {
		return start
	}
	s.hide(v, end, mark(kindCVV))
	return end
}
