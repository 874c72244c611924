package dlq

import (
	"crypto/sha256"
	"encoding/json"
	"time"

	"github.com/redrive-dlq/redrive/dlq/moment"
	"github.com/redrive-dlq/redrive/dlq/redact"
)

// Lengths of texts in list rows, in characters.
const (
	maxClass   = 255
	maxMessage = 500
	maxReason  = 2000
)

// death is one document on its way into the store: every text is redacted and
// free of NUL, everything that needs no database is worked out.
type death struct {
	doc   *Document
	index int // of the answer
	times deathTimes
	key   string // deaths.death_key
	scope string

	attempt       int
	failure       judged
	class         string // error_class of the list row
	message       string
	reasonCode    string
	reasonText    string
	workerVersion string
	effect        string // the worker's word, or empty
	maybeEffect   bool   // without a word and a ledger row the effect is unknown
	attempts      []deathAttempt

	view        redact.View
	kind        string // payload_kind
	encoding    string
	sha         []byte
	headers     string
	extra       string
	extraRaw    []byte
	sourceRef   string
	destination string

	// Set in the transaction.
	id             int64
	generation     int
	deathGen       int // of the deaths row: 0 for one told late
	outcome        string
	payloadVersion int    // current version after this death
	newPayload     bool   // a version has to be written
	sealed         sealed // what is stored of the raw parts
}

// deathAttempt is an attempt as people may read it, with its raw text.
type deathAttempt struct {
	at            *time.Time
	atRaw, note   string
	class         string
	message       string
	stack         string
	causes        string // JSON of causeViews
	causeViews    []causeView
	worker        string
	workerVersion string
	durationMS    *int64
	sideEffect    string
	status        int
	raw           []byte
}

// current reports whether the death is the job's latest, whose details are
// written; an older one leaves only its row in deaths.
func (d *death) current() bool {
	return d.outcome == CaptureCreated || d.outcome == CaptureUpdated
}

func (c *Capturer) prepare(index int, doc *Document, now time.Time) *death {
	d := &death{
		doc:         doc,
		index:       index,
		times:       timesOf(doc, now),
		key:         deathKey(doc),
		scope:       c.scope(doc.JobType),
		attempt:     doc.attemptNumber(),
		reasonCode:  cut(oneLine(redact.Readable(doc.ReasonCode)), maxClass),
		reasonText:  cut(redact.Readable(doc.ReasonText), maxReason),
		destination: redact.Text(doc.Destination), // a URL may carry a password
		sourceRef:   "{}",
	}
	if len(doc.SourceRef) > 0 {
		d.sourceRef = string(doc.SourceRef)
	}
	for i := range doc.Attempts {
		d.attempts = append(d.attempts, prepareAttempt(&doc.Attempts[i], now))
	}
	d.failure = judge(doc, d)
	d.class, d.message = d.failure.class, d.failure.message
	if len(d.attempts) > 0 {
		d.workerVersion = d.attempts[len(d.attempts)-1].workerVersion
	}
	d.effect, d.maybeEffect = c.effectTold(doc, d)
	d.preparePayload()
	d.prepareEnvelope()
	return d
}

func prepareAttempt(a *AttemptDoc, now time.Time) deathAttempt {
	at := moment.Parse(a.At, now)
	out := deathAttempt{
		at:            shownMoment(at),
		atRaw:         cut(redact.Readable(at.Raw), maxClass),
		note:          at.Note,
		class:         redact.Readable(a.ErrorClass),
		message:       redact.Readable(a.Message),
		stack:         redact.Readable(a.Stack),
		causes:        "[]",
		worker:        cut(oneLine(redact.Visible(a.Worker)), maxClass),
		workerVersion: cut(oneLine(redact.Visible(a.WorkerVersion)), maxClass),
		durationMS:    a.DurationMS,
		sideEffect:    cut(redact.Readable(a.SideEffect), maxReason),
		raw:           a.Raw,
	}
	if len(a.Causes) > 0 {
		out.causeViews = readableCauses(a.Causes)
		out.causes = causesJSON(out.causeViews)
	}
	if len(out.raw) == 0 {
		out.raw = attemptJSON(a)
	}
	return out
}

// causeView is how attempts.causes holds one cause.
type causeView struct {
	ErrorClass string `json:"error_class"`
	Message    string `json:"message"`
}

func readableCauses(causes []CauseDoc) []causeView {
	views := make([]causeView, len(causes))
	for i, c := range causes {
		views[i] = causeView{redact.Readable(c.ErrorClass), redact.Readable(c.Message)}
	}
	return views
}

func causesJSON(views []causeView) string {
	b, err := json.Marshal(views)
	if err != nil {
		return "[]" // strings always marshal
	}
	return string(b)
}

// attemptJSON is the raw text of an attempt that a Go caller filled in.
func attemptJSON(a *AttemptDoc) []byte {
	var cause any
	for i := len(a.Causes) - 1; i >= 0; i-- {
		cause = map[string]any{"error_class": a.Causes[i].ErrorClass, "message": a.Causes[i].Message, "cause": cause}
	}
	at := a.At
	if !json.Valid(at) {
		at = nil
	}
	b, err := json.Marshal(map[string]any{
		"at": at, "error_class": a.ErrorClass, "message": a.Message, "stack": a.Stack, "cause": cause,
		"worker": a.Worker, "worker_version": a.WorkerVersion, "duration_ms": a.DurationMS, "side_effect": a.SideEffect,
	})
	if err != nil {
		return []byte("{}")
	}
	return b
}

func (d *death) preparePayload() {
	d.encoding = d.doc.PayloadEncoding
	if d.encoding == "" {
		d.encoding = EncodingJSON
	}
	sum := sha256.Sum256(d.doc.Payload)
	d.sha = sum[:]
	if d.encoding == EncodingNone {
		// Nothing can be sent; what people read is the printout, if any.
		d.kind = "printout"
		text, hidden := printoutView(d.doc)
		d.view = redact.View{Redacted: text, Report: redact.Report{Hidden: hidden}}
		return
	}
	d.view = redact.Payload(d.doc.Payload)
	d.kind = string(d.view.Form)
	if d.view.Redacted == nil {
		d.view.Redacted = []byte{}
	}
}

func (d *death) prepareEnvelope() {
	d.headers, d.extra = "[]", "{}"
	if pairs, err := redact.ParseHeaders(d.doc.Headers); err == nil && len(pairs) > 0 {
		if b, err := json.Marshal(redact.Headers(pairs)); err == nil {
			d.headers = string(b)
		}
	}
	if d.extraRaw = d.doc.Extra; len(d.extraRaw) > 0 {
		out, _ := redact.JSON(d.extraRaw)
		d.extra = redact.Visible(string(redact.Storable(out)))
	}
}
