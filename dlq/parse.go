package dlq

import (
	"bytes"
	"math"
	"unicode/utf8"

	"github.com/redrive-dlq/redrive/dlq/problem"
)

// envelopeKeys are the fields that a document may have; all else is Extra.
var envelopeKeys = []string{
	"environment", "source", "job_type", "job_id", "idempotency_key", "queue", "tenant", "entity", "event",
	"destination", "payload", "payload_encoding", "payload_version", "headers", "attempts", "enqueued_at",
	"dead_at", "attempt_count", "max_attempts", "reason", "category", "gave_up", "effect", "effect_id",
}

// ParseDocument reads one document, as design.md's "Fixed outside faces" has
// it. The payload's bytes are a span of raw, which the document then owns.
// Errors are *problem.Error: TooLarge, Malformed (not UTF-8, not JSON; with
// the byte offset) or Invalid (with the field as a JSON Pointer).
func ParseDocument(raw []byte, d Defaults) (*Document, error) {
	if len(raw) > MaxDocumentBytes {
		return nil, tooLarge(len(raw), MaxDocumentBytes)
	}
	// Before all else: encoding/json takes invalid UTF-8 and replaces it.
	if !utf8.Valid(raw) {
		return nil, problem.New(problem.Malformed, "The document is not valid UTF-8 at byte %d. Send a payload that isn't text as base64, with payload_encoding: base64.", invalidUTF8(raw))
	}
	s := &scanner{b: raw}
	if bytes.HasPrefix(raw, []byte("\ufeff")) {
		s.pos = len("\ufeff") // a byte order mark that some editors write
	}
	s.space()
	if s.next() != '{' {
		return nil, s.fail("expected an object, found %s", s.found())
	}
	members, err := s.object("", 0)
	if err != nil {
		return nil, err
	}
	if s.space(); s.pos < len(raw) {
		return nil, s.fail("something follows the document; send one document, or one a line as application/x-ndjson")
	}
	fields, extra, err := sortFields(members, envelopeKeys)
	if err != nil {
		return nil, err
	}
	doc := &Document{Environment: d.Environment, Source: d.Source, Extra: extra}
	p := parser{raw: raw, fields: fields}
	p.names(doc)
	p.numbers(doc)
	p.words(doc)
	p.reason(doc)
	p.attempts(doc)
	p.headers(doc)
	p.payload(doc)
	if p.err != nil {
		return nil, p.err
	}
	doc.jsonOK = true
	return doc, doc.validate()
}

func tooLarge(size, limit int) error {
	return problem.New(problem.TooLarge, "The document has %d bytes; at most %d are allowed. Store the large part elsewhere and send a reference.", size, limit)
}

// invalidUTF8 is the offset of the first byte that isn't UTF-8.
func invalidUTF8(b []byte) int {
	for i := 0; i < len(b); {
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return len(b)
}

// sortFields splits members into the known ones and one object of the others.
// A key that is a known one but for its case is refused: it would silently
// count as unknown.
func sortFields(members []member, known []string) (map[string]member, []byte, error) {
	fields := make(map[string]member, len(members))
	var extra []byte
	for _, m := range members {
		unknown := true
		for _, k := range known {
			if m.key == k {
				fields[k], unknown = m, false
				break
			}
			if foldKey(m.key) == foldKey(k) {
				return nil, nil, fieldError("/"+pointerToken(m.key), "The key %s (byte %d) is written %s here. Keys are case-sensitive.", quoteName(m.key), m.keyPos, quoteName(k))
			}
		}
		if unknown {
			extra = appendMember(extra, m)
		}
	}
	if extra != nil {
		extra = append(extra, '}')
	}
	return fields, extra, nil
}

func appendMember(object []byte, m member) []byte {
	if object == nil {
		object = append(object, '{')
	} else {
		object = append(object, ',')
	}
	object = append(object, quoteJSON(m.key)...)
	object = append(object, ':')
	return append(object, m.value...)
}

// parser reads the fields of one document and keeps the first error.
type parser struct {
	raw    []byte
	fields map[string]member
	err    error
}

func (p *parser) keep(err error) {
	if p.err == nil {
		p.err = err
	}
}

func (p *parser) names(doc *Document) {
	for _, f := range doc.nameFields() {
		m, ok := p.fields[f.key]
		if !ok || isNull(m.value) {
			continue
		}
		s, err := name("/"+f.key, m.value, f.most)
		p.keep(err)
		if s != "" || (f.key != "environment" && f.key != "source") {
			*f.into = s
		}
	}
	doc.EnqueuedAt = raw(p.fields["enqueued_at"].value)
	doc.DeadAt = raw(p.fields["dead_at"].value)
}

func (p *parser) numbers(doc *Document) {
	for _, f := range []struct {
		key   string
		least int64
		into  *int
	}{
		{"attempt_count", 0, &doc.AttemptCount},
		{"max_attempts", 0, &doc.MaxAttempts},
		{"payload_version", 1, &doc.PayloadVersion},
	} {
		n, _, err := whole("/"+f.key, p.fields[f.key].value, f.least, math.MaxInt32)
		p.keep(err)
		*f.into = int(n)
	}
	if doc.PayloadVersion == 0 {
		doc.PayloadVersion = 1
	}
}

func (p *parser) words(doc *Document) {
	for _, f := range doc.wordFields() {
		s, err := oneOf("/"+f.key, p.fields[f.key].value, f.words...)
		p.keep(err)
		*f.into = s
	}
	var err error
	doc.EffectID, err = name("/effect_id", p.fields["effect_id"].value, MaxNameBytes)
	p.keep(err)
}

func (p *parser) reason(doc *Document) {
	m, ok := p.fields["reason"]
	if !ok || isNull(m.value) {
		return
	}
	if m.value[0] != '{' {
		p.keep(fieldError("/reason", "/reason must be an object {code, text}, not %s.", kindOf(m.value)))
		return
	}
	s := &scanner{b: p.raw, pos: m.pos}
	members, err := s.object("/reason", 1)
	if err != nil {
		p.keep(err)
		return
	}
	for _, r := range members {
		switch r.key {
		case "code":
			doc.ReasonCode, err = text("/reason/code", r.value)
		case "text":
			doc.ReasonText, err = text("/reason/text", r.value)
		}
		p.keep(err)
	}
}
