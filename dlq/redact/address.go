package redact

import (
	"strings"
	"unicode/utf8"
)

// at looks at an @, or its encoded form of n bytes, at i: an e-mail address is
// masked so that its shape stays (a•••@@example.com still shows what is wrong),
// and a password before a host is hidden.
func (s *scanner) at(i, n int) int {
	in := s.in
	after := i + n
	for after < len(in) && in[after] == '@' {
		after++ // alex@@example.com
	}
	if n == 1 && s.hostPassword(i, after) {
		return after
	}
	end := after
	for end < len(in) && class[in[end]]&isDomain != 0 {
		end++
	}
	if !isMailDomain(strings.TrimRight(in[after:end], ".-")) {
		return after
	}
	start := i
	for start > s.last && class[in[start-1]]&isLocal != 0 {
		if in[start-1] == '0' && start-3 >= 0 && in[start-3] == '%' && in[start-2] == '4' {
			break // the encoded @ of another address
		}
		start--
	}
	start = trimLocal(in, start, i)
	if start == i || in[start:i] == "git" {
		return after
	}
	_, size := utf8.DecodeRuneInString(in[start:])
	s.hide(start+min(size, i-start), i, "•••")
	return after
}

// trimLocal drops what can't begin an address: the path separators and
// encoded characters before it.
func trimLocal(in string, start, end int) int {
	for start < end {
		switch c := in[start]; {
		case c == '.' || c == '-' || c == '+':
			start++
		case strings.HasPrefix(in[start:end], "%3D"), strings.HasPrefix(in[start:end], "%3C"),
			strings.HasPrefix(in[start:end], "%20"), strings.HasPrefix(in[start:end], "%22"),
			strings.HasPrefix(in[start:end], "%2F"), strings.HasPrefix(in[start:end], "%3A"):
			start += 3
		default:
			return start
		}
	}
	return start
}

// fileEndings end names such as icon@2x.png and the frames of browsers'
// stacks (step@app.js); none is a top-level domain.
var fileEndings = map[string]bool{
	"js": true, "ts": true, "jsx": true, "tsx": true, "mjs": true, "cjs": true, "png": true, "jpg": true,
	"jpeg": true, "gif": true, "svg": true, "webp": true, "css": true, "html": true, "json": true, "vue": true,
}

// isMailDomain reports whether d has a dot and ends in at least two letters.
func isMailDomain(d string) bool {
	dot := strings.LastIndexByte(d, '.')
	if dot <= 0 || len(d)-dot-1 < 2 {
		return false
	}
	for i := dot + 1; i < len(d); i++ {
		if class[d[i]]&(isUpper|isLower) == 0 && !strings.HasPrefix(strings.ToLower(d[dot+1:]), "xn--") {
			return false
		}
	}
	return !fileEndings[strings.ToLower(d[dot+1:])]
}

// hostPassword hides the password of a connection string without a scheme:
// user:password@tcp(host:3306)/db, user:password@host:5432. "10:30@noon" stays.
func (s *scanner) hostPassword(i, after int) bool {
	in := s.in
	end := after
	for end < len(in) && class[in[end]]&isDomain != 0 {
		end++
	}
	if end == after || end >= len(in) {
		return false
	}
	switch {
	case in[end] == '(' || in[end] == '/':
	case in[end] == ':' && end+1 < len(in) && class[in[end+1]]&isDigit != 0:
	default:
		return false
	}
	colon := -1
	start := i
	for start > s.last && class[in[start-1]]&isSpace == 0 && strings.IndexByte("@\"'`<>/=", in[start-1]) < 0 {
		start--
		if in[start] == ':' {
			colon = start
		}
	}
	for start < colon && class[in[start]]&isAlnum == 0 {
		start++ // an opening bracket
	}
	if colon <= start || colon+1 >= i || class[in[start]]&(isUpper|isLower) == 0 {
		return false
	}
	if !telling(in[colon+1:i], inAssign) {
		return true
	}
	s.hide(colon+1, i, mark(kindPassword))
	return true
}
