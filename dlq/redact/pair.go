package redact

import "strings"

// pair looks at the : or = at i: the name before it, and if that name tells,
// the value after it. It returns where to go on.
func (s *scanner) pair(i int) int {
	in := s.in
	v := i + 1
	compares := false
	switch {
	case in[i] == ':' && v < len(in) && in[v] == ':':
		return v + 1 // a scope operator, Token::Invalid
	case in[i] == ':' && v < len(in) && in[v] == '=', in[i] == '=' && v < len(in) && in[v] == '>':
		v++
	case in[i] == '=' && v < len(in) && in[v] == '=':
		for v < len(in) && in[v] == '=' {
			v++
		}
		compares = true
	}
	start, end, quoted := s.keyBefore(i)
	if start == end {
		return v
	}
	key := in[start:end]
	at := inProse
	switch {
	case start > 0 && in[i] == '=' && (in[start-1] == '?' || in[start-1] == '&' || in[start-1] == '#'):
		at = inQuery
	case quoted || in[i] == '=':
		at = inAssign
	}
	verdict, ok := judgeKey(key, at)
	if !ok {
		if key == "code" && (at == inQuery || at == inAssign && start == 0 && strings.IndexByte(in[v:min(len(in), v+256)], '&') > 0) {
			verdict.kind = kindCode
		} else if k, found := s.spacedKey(start, key); found {
			verdict.kind = k
		} else {
			return v
		}
	}
	return s.value(i, v, start, key, verdict, at, compares)
}

// value hides what follows a telling name.
func (s *scanner) value(sep, v, keyStart int, key string, verdict verdict, at where, compares bool) int {
	in := s.in
	tight := v
	for v < len(in) && (in[v] == ' ' || in[v] == '\t') {
		v++
	}
	if v > tight && in[sep] == '=' && sep > 0 && class[in[sep-1]]&isKey != 0 && pairFollows(in, v) {
		return v // "password= user=app": an empty value
	}
	if v < len(in) && v+1 < len(in) && strings.IndexByte("bBuUrR", in[v]) >= 0 && (in[v+1] == '\'' || in[v+1] == '"') {
		v++ // Python's prefixes
	}
	if depth, quote, open, ok := quoteAt(in, v); ok {
		end := quotedEnd(in, open, depth, quote)
		val := in[open:end]
		if telling(val, inAssign) {
			s.hide(open, end, s.replacement(verdict, val))
		}
		return end
	}
	if compares || v >= len(in) || class[in[v]]&isSpace != 0 {
		return v
	}
	var end int
	switch {
	case in[v] == '{' || in[v] == '[' || in[v] == '(':
		end = unquotedEnd(in, bracketEnd(in, v))
	case verdict.kind == kindCookie && in[sep] == ':', verdict.kind == kindToken && isAuthorization(key):
		end = s.headerEnd(v, keyStart, verdict.kind)
	default:
		end = unquotedEnd(in, v)
	}
	val := in[v:end]
	switch {
	case !telling(val, at),
		verdict.plural && isNumber(val),
		verdict.kind == kindCVV && (len(val) > 4 || !isNumber(val)),
		at == inProse && isExceptionName(key) && isWord(val),
		(key == "PWD" || key == "OLDPWD") && val[0] == '/',
		at == inProse && verdict.kind == kindToken && isAuthorization(key) && plainWords[firstWord(val)]:
		return end
	}
	s.hide(v, end, s.replacement(verdict, val))
	return end
}

func (s *scanner) replacement(verdict verdict, val string) string {
	switch verdict.kind {
	case kindCookie:
		return cookies(val)
	case kindToken:
		return credential(val)
	}
	return mark(verdict.kind)
}

// keyBefore finds the name that ends before the separator at i: letters,
// digits, _ - . and $, perhaps in quotes or in the brackets of a form field.
func (s *scanner) keyBefore(i int) (start, end int, quoted bool) {
	in := s.in
	end = i
	for n := 0; end > s.last && in[end-1] == ' ' && n < 32; n++ {
		end--
	}
	if end > s.last && (in[end-1] == '"' || in[end-1] == '\'' || in[end-1] == '`') {
		end, quoted = end-1, true
		for end > s.last && in[end-1] == '\\' && i-end < 20 {
			end--
		}
	}
	if end > s.last && in[end-1] == ']' {
		end--
		if end > s.last && (in[end-1] == '"' || in[end-1] == '\'') {
			end--
		}
	} else if end > s.last && in[end-1] == ')' && in[i] == '=' {
		end-- // PostgreSQL's detail: Key (token)=(…) already exists
	} else if end-3 > s.last && hasFold(in, end-3, "%5d") {
		end -= 3
	}
	start = end
	for start > s.last && end-start < keyTail {
		if class[in[start-1]]&isKey != 0 {
			start--
		} else if enye(in, start-2) && start-2 >= s.last {
			start -= 2
		} else {
			break
		}
	}
	return start, end, quoted
}

// spacedKey reads names of two words in prose: "API key: …".
func (s *scanner) spacedKey(start int, key string) (string, bool) {
	if !strings.EqualFold(key, "key") || start < 4 || s.in[start-1] != ' ' {
		return "", false
	}
	for _, before := range []string{"api", "access", "secret", "private", "signing", "encryption"} {
		if from := start - 1 - len(before); from >= s.last && hasFold(s.in, from, before) {
			return kindKey, true
		}
	}
	return "", false
}

func isNumber(v string) bool {
	return v != "" && strings.Trim(v, "0123456789.,_") == ""
}

func isWord(v string) bool {
	for i := range len(v) {
		if class[v[i]]&(isLower) == 0 && (i > 0 || class[v[i]]&isUpper == 0) {
			return false
		}
	}
	return v != ""
}

func firstWord(v string) string {
	if i := strings.IndexByte(v, ' '); i >= 0 {
		v = v[:i]
	}
	return strings.ToLower(strings.TrimRight(v, ".,;:!"))
}

// isExceptionName reports whether a name is an error's class that only ends in
// a telling word: "ExpiredToken: The security token …".
func isExceptionName(key string) bool {
	if i := strings.LastIndexByte(key, '.'); i >= 0 {
		key = key[i+1:]
	}
	for _, p := range []string{"Invalid", "Expired", "Missing", "Unknown", "Bad", "Unexpected", "Malformed", "Unrecognized"} {
		if strings.HasPrefix(key, p) {
			return true
		}
	}
	return false
}

// element hides the text of an XML element whose name tells. i is at the >.
func (s *scanner) element(i int) int {
	in := s.in
	start := i
	for start > s.last && class[in[start-1]]&isKey != 0 && i-start < keyTail {
		start--
	}
	if start == i || start == 0 || in[start-1] != '<' && in[start-1] != ':' {
		return i + 1
	}
	verdict, ok := judgeKey(in[start:i], inAssign)
	if !ok {
		return i + 1
	}
	end := i + 1
	for end < len(in) && in[end] != '<' {
		end++
	}
	if telling(strings.TrimSpace(in[i+1:end]), inAssign) {
		s.hide(i+1, end, s.replacement(verdict, in[i+1:end]))
	}
	return end
}
