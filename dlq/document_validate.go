package dlq

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/redrive-dlq/redrive/dlq/problem"
)

type nameField struct {
	key  string
	most int
	into *string
}

// nameFields are the texts that identify something; they are stored exactly.
func (d *Document) nameFields() [10]nameField {
	return [...]nameField{
		{"environment", MaxNameBytes, &d.Environment},
		{"source", MaxNameBytes, &d.Source},
		{"job_type", MaxNameBytes, &d.JobType},
		{"job_id", MaxJobIDBytes, &d.JobID},
		{"idempotency_key", MaxKeyBytes, &d.IdempotencyKey},
		{"queue", MaxNameBytes, &d.Queue},
		{"tenant", MaxNameBytes, &d.Tenant},
		{"entity", MaxKeyBytes, &d.Entity},
		{"event", MaxKeyBytes, &d.Event},
		{"destination", MaxDestinationBytes, &d.Destination},
	}
}

type wordField struct {
	key   string
	words []string
	into  *string
}

var (
	categoryWords = []string{"transient", "throttled", "missing_state", "invalid_input", "auth", "unknown"}
	gaveUpWords   = []string{"attempts", "window", "not_retryable", "poison", "cancelled"}
	effectWords   = []string{"none", "done", "unknown"}
)

// wordFields are the texts that must be one of a few words. The worker's own
// words win over what Redrive works out.
func (d *Document) wordFields() [3]wordField {
	return [...]wordField{
		{"category", categoryWords, &d.Category},
		{"gave_up", gaveUpWords, &d.GaveUp},
		{"effect", effectWords, &d.Effect},
	}
}

// validate judges a document from any door, so that one which the database
// would refuse never reaches the statement that others share.
func (d *Document) validate() error {
	for i, f := range d.nameFields() {
		if err := checkName("/"+f.key, *f.into, f.most); err != nil {
			return err
		}
		if i < 4 && *f.into == "" {
			return fieldError("/"+f.key, "/%s is missing or empty. %s", f.key, missingAdvice[f.key])
		}
	}
	for _, f := range d.wordFields() {
		if err := checkWord("/"+f.key, *f.into, f.words...); err != nil {
			return err
		}
	}
	for _, f := range []struct {
		key string
		n   int
	}{{"attempt_count", d.AttemptCount}, {"max_attempts", d.MaxAttempts}, {"payload_version", d.PayloadVersion}} {
		if f.n < 0 || f.n > math.MaxInt32 {
			return fieldError("/"+f.key, "/%s must be a whole number between 0 and %d.", f.key, math.MaxInt32)
		}
	}
	if len(d.Payload) > MaxDocumentBytes {
		return tooLarge(len(d.Payload), MaxDocumentBytes)
	}
	if err := checkName("/effect_id", d.EffectID, MaxNameBytes); err != nil {
		return err
	}
	if d.EffectID != "" && d.Effect != "done" {
		return fieldError("/effect_id", "/effect_id names an effect that happened: it needs effect: done.")
	}
	return d.validateJSON()
}

var missingAdvice = map[string]string{
	"environment": "Name where the job ran, for example production (a token or the setting redrive.environment may give a default).",
	"source":      "Name the queue system the job died in (a token may give a default).",
	"job_type":    "Name the kind of job, for example send_welcome_email.",
	"job_id":      "Send the id that the job has in its source.",
}

// validateJSON checks the parts that are kept as JSON text.
func (d *Document) validateJSON() error {
	if len(d.SourceRef) > 0 && !validRef(d.SourceRef) {
		return fieldError("/source_ref", "/source_ref must be a JSON object that jsonb can hold.")
	}
	if d.jsonOK {
		return nil
	}
	switch d.PayloadEncoding {
	case "", EncodingJSON:
		if !utf8.Valid(d.Payload) || !validJSON(d.Payload) {
			return problem.At(problem.Invalid, "/payload", "/payload is not valid JSON. Send it with the encoding base64.")
		}
	case EncodingBase64:
	case EncodingNone:
		if len(d.Payload) > 0 {
			return fieldError("/payload", "/payload must be empty when its encoding is none.")
		}
	default:
		return fieldError("/payload_encoding", "/payload_encoding must be one of %s, %s, %s.", EncodingJSON, EncodingBase64, EncodingNone)
	}
	_, err := headerPairs(d.Headers)
	return err
}

func validJSON(b []byte) bool {
	s := &scanner{b: b}
	if s.value(0) != nil {
		return false
	}
	s.space()
	return s.pos == len(b)
}

// validRef reports whether jsonb takes the object: no NUL, no half surrogates
// (any \u escape of them is refused) and no number beyond its range.
func validRef(ref json.RawMessage) bool {
	if len(ref) > 1<<16 || !utf8.Valid(ref) || !validJSON(ref) || bytes.TrimSpace(ref)[0] != '{' {
		return false
	}
	lower := strings.ToLower(string(ref))
	return !strings.Contains(lower, `\u0000`) && !strings.Contains(lower, `\ud`) && json.Unmarshal(ref, &map[string]any{}) == nil
}

// quoteJSON writes a string as JSON; NUL and the like become escapes.
func quoteJSON(s string) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(s) != nil {
		return []byte(`""`)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
