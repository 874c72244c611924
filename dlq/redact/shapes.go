package redact

import "strings"

// shape is a credential that is known by its beginning alone.
type shape struct {
	prefix string
	min    int // bytes after the prefix
	kind   string
	upper  bool // only upper-case letters and digits
}

// shapes are listed by their publishers; the minimum keeps prose away.
var shapes = []shape{
	{"ghp_", 20, kindToken, false}, {"gho_", 20, kindToken, false}, {"ghu_", 20, kindToken, false},
	{"ghs_", 20, kindToken, false}, {"ghr_", 20, kindToken, false}, {"github_pat_", 20, kindToken, false},
	{"glpat-", 16, kindToken, false}, {"xoxb-", 10, kindToken, false}, {"xoxp-", 10, kindToken, false},
	{"xoxa-", 10, kindToken, false}, {"xoxr-", 10, kindToken, false}, {"xoxs-", 10, kindToken, false},
	{"xapp-", 10, kindToken, false}, {"sk_live_", 8, kindKey, false}, {"sk_test_", 8, kindKey, false},
	{"rk_live_", 8, kindKey, false}, {"rk_test_", 8, kindKey, false}, {"whsec_", 8, kindSecret, false},
	{"sk-", 20, kindKey, false}, {"AKIA", 16, kindKey, true}, {"ASIA", 16, kindKey, true},
	{"AIza", 30, kindKey, false}, {"ya29.", 20, kindToken, false}, {"npm_", 30, kindToken, false},
	{"hf_", 30, kindToken, false}, {"SG.", 30, kindKey, false}, {"shpat_", 20, kindToken, false},
	{"dop_v1_", 30, kindToken, false}, {"pypi-", 30, kindToken, false},
}

// shapesBy holds the shapes by their first byte.
var shapesBy = func() (t [128][]shape) {
	for _, s := range shapes {
		t[s.prefix[0]] = append(t[s.prefix[0]], s)
	}
	return t
}()

// shapeAt returns where a credential of a known shape that starts at i ends,
// and its kind, or 0.
func shapeAt(in string, i int) (int, string) {
	candidates := shapesBy[in[i]&0x7f]
	if len(candidates) == 0 {
		return 0, ""
	}
	if i > 0 && (in[i-1] == '_' || in[i-1] == '-') {
		return 0, "" // inside a name such as task-queue or ask_live_…
	}
	for k := range candidates {
		s := &candidates[k]
		if i+1 >= len(in) || in[i+1] != s.prefix[1] || !strings.HasPrefix(in[i:], s.prefix) {
			continue
		}
		end := i + len(s.prefix)
		varied := false
		for end < len(in) && (class[in[end]]&isAlnum != 0 || !s.upper && (in[end] == '_' || in[end] == '-' || in[end] == '.')) {
			if s.upper && class[in[end]]&isLower != 0 {
				return 0, ""
			}
			varied = varied || class[in[end]]&(isDigit|isUpper) != 0
			end++
		}
		if end-i-len(s.prefix) >= s.min && varied {
			return end, s.kind
		}
	}
	return 0, ""
}

const pemBegin = "-----BEGIN "

// dash looks at a - : the beginning of a private key, or a command-line flag
// whose value follows after a space.
func (s *scanner) dash(i int) int {
	in := s.in
	if strings.HasPrefix(in[i:], pemBegin) {
		head := in[i+len(pemBegin) : min(len(in), i+len(pemBegin)+48)]
		if n := strings.Index(head, "PRIVATE KEY"); n >= 0 {
			return s.privateKey(i)
		}
		return i + len(pemBegin)
	}
	if end := s.userFlag(i); end > 0 {
		return end
	}
	if i+2 >= len(in) || in[i+1] != '-' || class[in[i+2]]&isAlnum == 0 || i > 0 && in[i-1] == '-' {
		return i + 1
	}
	end := i + 2
	for end < len(in) && class[in[end]]&isKey != 0 && end-i < keyTail {
		end++
	}
	if end+1 >= len(in) || in[end] != ' ' || in[end+1] == '-' {
		return i + 2
	}
	verdict, ok := judgeKey(in[i+2:end], inAssign)
	if !ok {
		return i + 2
	}
	return s.value(end, end+1, i+2, in[i+2:end], verdict, inProse, false)
}

// userFlag hides the password of curl's -u user:password and --user.
func (s *scanner) userFlag(i int) int {
	in := s.in
	n := 0
	for _, flag := range []string{"-u ", "--user "} {
		if strings.HasPrefix(in[i:], flag) {
			n = len(flag)
		}
	}
	if n == 0 || i > 0 && class[in[i-1]]&isSpace == 0 {
		return 0
	}
	v := i + n
	if v < len(in) && (in[v] == '"' || in[v] == '\'') {
		v++
	}
	end := unquotedEnd(in, v)
	colon := strings.IndexByte(in[v:end], ':')
	if colon <= 0 || !telling(in[v+colon+1:end], inAssign) {
		return 0
	}
	s.hide(v+colon+1, end, mark(kindPassword))
	return end
}

// privateKey hides a PEM block to the end of its END line, or all that is left.
func (s *scanner) privateKey(i int) int {
	in := s.in
	end := len(in)
	if n := strings.Index(in[i+len(pemBegin):], "-----END "); n >= 0 {
		end = i + len(pemBegin) + n + len("-----END ")
		if m := strings.Index(in[end:min(len(in), end+64)], "-----"); m >= 0 {
			end += m + 5
		}
	}
	s.hide(i, end, mark(kindPrivateKey))
	return end
}
