package dlq

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
)

// payload keeps the payload's bytes exactly as the door gave them.
func (p *parser) payload(doc *Document) {
	encoding, err := oneOf("/payload_encoding", p.fields["payload_encoding"].value, EncodingJSON, EncodingBase64, EncodingNone)
	if err != nil {
		p.keep(err)
		return
	}
	m, told := p.fields["payload"]
	switch {
	case encoding == EncodingNone:
		if told && !isNull(m.value) {
			p.keep(fieldError("/payload", "/payload must be left out when payload_encoding is none."))
		}
		doc.PayloadEncoding = EncodingNone
	case (!told || isNull(m.value)) && encoding == "" && printout(doc.Headers):
		// Only a printout of the arguments exists: it is never parsed or run.
		doc.PayloadEncoding = EncodingNone
	case !told:
		p.keep(fieldError("/payload", "/payload is missing. Send it as JSON, or as base64 with payload_encoding: base64; say payload_encoding: none if it isn't kept anywhere."))
	case encoding == EncodingBase64:
		doc.PayloadEncoding = EncodingBase64
		doc.Payload, err = decodeBase64("/payload", m.value)
		p.keep(err)
	default:
		doc.PayloadEncoding = EncodingJSON
		doc.Payload = m.value
	}
}

// decodeBase64 is strict: standard alphabet, padding, no white space, no
// stray bits, so that one text means one value.
func decodeBase64(where string, value []byte) ([]byte, error) {
	if value[0] != '"' {
		return nil, fieldError(where, "%s must be a string of base64 when payload_encoding is base64, not %s.", where, kindOf(value))
	}
	s, _ := unquote(value)
	if i := strings.IndexAny(s, "\r\n"); i >= 0 { // the decoder would skip them
		return nil, fieldError(where, "%s is not valid base64 at character %d: it holds a line break. Send it in one line.", where, i)
	}
	out, err := base64.StdEncoding.Strict().DecodeString(s)
	if err != nil {
		at := len(s)
		var corrupt base64.CorruptInputError
		if errors.As(err, &corrupt) {
			at = int(corrupt)
		}
		return nil, fieldError(where, "%s is not valid base64 at character %d. Use the standard alphabet (A–Z a–z 0–9 + /) with padding.", where, at)
	}
	return out, nil
}

// headers checks the form: an object, or a list of pairs where order and
// repeats matter. A value may be anything.
func (p *parser) headers(doc *Document) {
	m, ok := p.fields["headers"]
	if !ok || isNull(m.value) {
		return
	}
	if m.value[0] != '{' && m.value[0] != '[' {
		p.keep(fieldError("/headers", "/headers must be an object or a list of [name, value] pairs, not %s.", kindOf(m.value)))
		return
	}
	if _, err := headerPairs(m.value); err != nil {
		p.keep(err)
		return
	}
	doc.Headers = m.value
}

// headerPair is one header as sent.
type headerPair struct {
	name  string
	value json.RawMessage
}

// headerPairs reads headers of either form, in their order.
func headerPairs(headers json.RawMessage) ([]headerPair, error) {
	if isNull(headers) {
		return nil, nil
	}
	s := &scanner{b: headers}
	s.space()
	if s.next() == '{' {
		members, err := s.members(1)
		if err != nil {
			return nil, err
		}
		pairs := make([]headerPair, 0, len(members))
		for _, m := range members {
			pairs = append(pairs, headerPair{name: m.key, value: m.value})
		}
		return pairs, nil
	}
	if s.next() != '[' {
		return nil, fieldError("/headers", "/headers must be an object or a list of [name, value] pairs.")
	}
	list, err := s.elements(1)
	if err != nil {
		return nil, err
	}
	pairs := make([]headerPair, 0, len(list))
	for i, e := range list {
		pair, err := headerPairOf(headers, e)
		if err != nil {
			return nil, fieldError("/headers", "/headers/%d must be a pair [name, value] whose name is a string.", i)
		}
		pairs = append(pairs, pair)
	}
	return pairs, nil
}

var errNotAPair = errors.New("not a pair")

func headerPairOf(headers []byte, e member) (headerPair, error) {
	if e.value[0] != '[' {
		return headerPair{}, errNotAPair
	}
	s := &scanner{b: headers, pos: e.pos}
	pair, err := s.elements(2)
	if err != nil || len(pair) != 2 || pair[0].value[0] != '"' {
		return headerPair{}, errNotAPair
	}
	name, _ := unquote(pair[0].value)
	return headerPair{name: name, value: pair[1].value}, nil
}

// printout says whether the headers are those of a Celery message whose
// arguments exist only as a shortened printout.
func printout(headers json.RawMessage) bool {
	pairs, err := headerPairs(headers)
	if err != nil {
		return false
	}
	for _, h := range pairs {
		if (h.name == "argsrepr" || h.name == "kwargsrepr") && !isNull(h.value) {
			return true
		}
	}
	return false
}
