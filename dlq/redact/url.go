package redact

import "strings"

// url looks at the :// at i: a password before the host is hidden. Its path
// and query are read on like any text.
func (s *scanner) url(i int) int {
	in := s.in
	start := i + len("://")
	end := start
	at, colon := -1, -1
	for end < len(in) && !endsAuthority(in[end]) {
		switch in[end] {
		case '@':
			at = end
		case ':':
			if colon < 0 {
				colon = end
			}
		}
		end++
	}
	web := i >= 4 && (hasFold(in, i-4, "http") || i >= 5 && hasFold(in, i-5, "https"))
	switch {
	case at >= 0 && !web, at < 0 && colon >= 0 && !isPort(in[colon+1:end]):
		// A password may hold / ? # and @: the last @ of the run ends it.
		if last := s.lastAt(start); last > at && colon >= 0 {
			at = last
		}
	}
	if at < 0 {
		return start
	}
	switch {
	case colon >= 0 && colon < at:
		if k := strings.Index(in[start:colon], "%40"); k >= 0 {
			s.at(start+k, len("%40")) // the user is an address
		}
		if telling(in[colon+1:at], inAssign) {
			s.hide(colon+1, at, mark(kindPassword))
		}
	case web && at > start:
		if telling(in[start:at], inAssign) {
			s.hide(start, at, mark(kindToken)) // https://TOKEN@host
		}
	}
	host := at + 1
	for host < len(in) && class[in[host]]&(isDomain) != 0 {
		host++
	}
	return host
}

func endsAuthority(c byte) bool {
	return class[c]&isSpace != 0 || strings.IndexByte("/?#\"'`<>\\", c) >= 0
}

func isPort(s string) bool { return strings.Trim(s, "0123456789,;)].") == "" }

// lastAt returns the index of the last @ in the run of non-space bytes that i
// stands in, or -1. It remembers the run, so that a text full of :// is still
// read once only.
func (s *scanner) lastAt(i int) int {
	if i >= s.runEnd {
		s.runAt, s.runEnd = -1, i
		for s.runEnd < len(s.in) && class[s.in[s.runEnd]]&isSpace == 0 && strings.IndexByte("\"'`<>", s.in[s.runEnd]) < 0 {
			if s.in[s.runEnd] == '@' {
				s.runAt = s.runEnd
			}
			s.runEnd++
		}
	}
	if s.runAt < i {
		return -1
	}
	return s.runAt
}
