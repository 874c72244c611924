package redact

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Header is one header of a message as it was captured. Order and repeats
// matter, so headers are a list and never a map.
type Header struct {
	Name  string
	Value Value
}

// Value is a header's value: exactly one kind of what brokers carry.
type Value struct {
	Kind ValueKind
	// Text is the string, or the literal of a number, true or false, or the
	// JSON of a list or object, by Kind.
	Text string
	// Bytes are the value of Kind ValueBytes.
	Bytes []byte
}

// ValueKind is the kind of a header's value.
type ValueKind uint8

// The kinds of header values.
const (
	ValueNull   ValueKind = iota
	ValueText             // a string
	ValueNumber           // a JSON number, exactly as written
	ValueBool             // true or false
	ValueBytes            // bytes, from {"base64": …}
	ValueJSON             // a nested list or object
)

// ShownHeader is a header as people may read it.
type ShownHeader struct {
	Name string `json:"name"`
	// Value is redacted and visible text.
	Value string `json:"value"`
	// Form says how the value was read: text, number, bool, json, int32,
	// int64, hex, empty or null. Empty and null both have an empty Value.
	Form string `json:"form"`
	// Note explains a number, such as the time that a timestamp means.
	Note string `json:"note,omitempty"`
	// Hidden is true when something in the name or value was hidden.
	Hidden bool `json:"hidden,omitempty"`
}

// Headers makes the readable copy of captured headers, in their order.
func Headers(headers []Header) []ShownHeader {
	shown := make([]ShownHeader, 0, len(headers))
	for _, h := range headers {
		shown = append(shown, showHeader(h))
	}
	return shown
}

func showHeader(h Header) ShownHeader {
	name, hidden := text(Visible(h.Name))
	s := ShownHeader{Name: name, Hidden: hidden > 0}
	verdict, secret := judgeKey(h.Name, inKey)
	raw := h.Value.Text
	switch h.Value.Kind {
	case ValueNull:
		s.Form = "null"
		return s
	case ValueText:
		s.Form = "text"
		if raw == "" {
			s.Form = "empty"
		}
	case ValueNumber:
		s.Form = "number"
	case ValueBool:
		s.Form, s.Value = "bool", raw
		return s
	case ValueJSON:
		s.Form = "json"
	case ValueBytes:
		raw, s.Form, s.Note = decode(h.Name, h.Value.Bytes)
	}
	switch {
	case raw == "":
	case secret && telling(raw, inAssign) && !(verdict.plural && isNumber(raw)):
		s.Value, s.Hidden = hideHeader(verdict, Visible(raw)), true
	case s.Form == "json":
		out, report := JSON([]byte(raw))
		s.Value, s.Hidden = Visible(string(out)), s.Hidden || report.Hidden > 0
	case s.Form == "int32" || s.Form == "int64":
		s.Value = raw
	case s.Form == "hex":
		// Plain text between the other bytes is looked at before it turns to
		// hexadecimal digits that nobody would recognise.
		sc := scanner{in: string(h.Value.Bytes), keepLength: true}
		sc.run()
		s.Value, s.Hidden = hex.EncodeToString([]byte(sc.result())), s.Hidden || sc.hits > 0
	default:
		var n int
		s.Value, n = text(Visible(raw))
		s.Hidden = s.Hidden || n > 0
	}
	return s
}

func hideHeader(v verdict, val string) string {
	switch v.kind {
	case kindCookie:
		return cookies(val)
	case kindToken:
		return credential(val)
	}
	return mark(v.kind)
}

// decode reads the bytes of a header: the numbers that Spring for Apache Kafka
// writes big-endian, printable UTF-8 as text ("0042" is text), else hex.
func decode(name string, b []byte) (value, form, note string) {
	if len(b) == 0 {
		return "", "empty", ""
	}
	if number, isTime := kafkaNumber(name); number {
		switch {
		case len(b) == 4 && !isTime:
			return strconv.FormatInt(int64(int32(binary.BigEndian.Uint32(b))), 10), "int32", ""
		case len(b) == 8:
			n := int64(binary.BigEndian.Uint64(b))
			if isTime {
				note = millis(n)
			}
			return strconv.FormatInt(n, 10), "int64", note
		}
	}
	if printable(b) {
		return string(b), "text", ""
	}
	return hex.EncodeToString(b), "hex", ""
}

// kafkaNumber knows the headers that carry big-endian numbers: those of
// Spring's DeadLetterPublishingRecoverer and of its retry topics.
func kafkaNumber(name string) (number, isTime bool) {
	rest, ok := strings.CutPrefix(name, "kafka_dlt-original-")
	if !ok {
		if rest, ok = strings.CutPrefix(name, "retry_topic-"); !ok {
			return false, false
		}
		rest = strings.TrimPrefix(rest, "original-")
	}
	switch rest {
	case "partition", "offset", "attempts":
		return true, false
	case "timestamp", "backoff-timestamp":
		return true, true
	}
	return false, false
}

func millis(n int64) string {
	const year9999 = 253402300799999
	if n < 0 || n > year9999 {
		return ""
	}
	return time.UnixMilli(n).UTC().Format("2006-01-02T15:04:05.000Z")
}

func printable(b []byte) bool {
	if !utf8.Valid(b) {
		return false
	}
	for _, c := range b {
		if c < 0x20 && c != '\n' && c != '\r' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}

// base64Bytes decodes the four usual spellings of base64.
func base64Bytes(s string) ([]byte, bool) {
	for _, e := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
		if b, err := e.DecodeString(s); err == nil {
			return b, true
		}
	}
	return nil, false
}
