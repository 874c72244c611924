package category

import "strings"

// status returns the HTTP error status (400–599) that an error names, or 0. The
// class counts before the message.
func status(class, message string) int {
	if s := Status(class); s > 0 {
		return s
	}
	return Status(message)
}

// Status returns the first HTTP error status in a text, or 0. See [IsStatus].
func Status(text string) int {
	text = cut(text)
	for i := 0; i+3 <= len(text); i++ {
		if text[i] != '4' && text[i] != '5' {
			continue
		}
		if IsStatus(text, i) {
			return int(text[i]-'0')*100 + int(text[i+1]-'0')*10 + int(text[i+2]-'0')
		}
	}
	return 0
}

// before are the words that make three digits a status; order 503 is none.
var before = map[string]bool{
	"http": true, "https": true, "status": true, "code": true, "statuscode": true, "answered": true,
	"responded": true, "response": true, "status_code": true, "respondió": true,
}

// weakBefore do so only when no thing that is counted follows: "got 503", but
// not "got 503 rows".
var weakBefore = map[string]bool{"returned": true, "error": true, "got": true, "with": true, "received": true}

// after are the first words of the standard reason phrases (RFC 9110, 15).
var after = map[string]bool{
	"bad": true, "unauthorized": true, "payment": true, "forbidden": true, "not": true, "method": true,
	"request": true, "conflict": true, "gone": true, "length": true, "precondition": true, "payload": true,
	"content": true, "uri": true, "unsupported": true, "unprocessable": true, "locked": true, "too": true,
	"internal": true, "service": true, "gateway": true, "http": true, "invalid": true, "proxy": true,
}

// IsStatus reports whether an HTTP error status stands at text[i]: three digits
// from 400 to 599, at the text's beginning or after a word such as "status",
// "HTTP" or "answered", or before a standard reason phrase.
func IsStatus(text string, i int) bool {
	if i+3 > len(text) || (text[i] != '4' && text[i] != '5') || !digit(text[i+1]) || !digit(text[i+2]) {
		return false
	}
	if i > 0 && (wordByte(text[i-1]) && text[i-1] != '_' || text[i-1] == '.' || text[i-1] == '-') {
		return false
	}
	end := i + 3
	if end < len(text) && (wordByte(text[end]) || text[end] == '-' || (text[end] == '.' || text[end] == ':') && end+1 < len(text) && digit(text[end+1])) {
		return false
	}
	if strings.TrimLeft(text[:i], " ([\t") == "" {
		return true
	}
	from := i
	for from > 0 && !wordByte(text[from-1]) && i-from < 6 {
		from--
	}
	gap := text[from:i]
	if strings.Contains(gap, "->") || strings.Contains(gap, "=>") || strings.Contains(gap, "→") {
		return true
	}
	start := from
	for start > 0 && wordByte(text[start-1]) && from-start < 16 {
		start--
	}
	prev := strings.ToLower(strings.Trim(text[start:from], "_"))
	if before[prev] {
		return true
	}
	if digit(text[max(0, from-1)]) && strings.HasSuffix(gap, " ") && strings.Contains(strings.ToLower(text[max(0, i-12):i]), "http/") {
		return true // HTTP/1.1 503
	}
	for end < len(text) && text[end] == ' ' {
		end++
	}
	stop := end
	for stop < len(text) && wordByte(text[stop]) && stop-end < 16 {
		stop++
	}
	next := strings.ToLower(text[end:stop])
	return end > i+3 && after[next] || weakBefore[prev] && (next == "" || end == i+3)
}

func digit(c byte) bool { return c >= '0' && c <= '9' }

func wordByte(c byte) bool {
	return digit(c) || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c >= 0x80
}
