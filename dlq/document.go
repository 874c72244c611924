// Package dlq is the domain's core: dead jobs, their attempts and payloads,
// how they are captured, found and triaged.
package dlq

import "encoding/json"

// Limits of a document. Names that stand in an index have to stay well below
// the 2,704 bytes that a PostgreSQL btree entry can hold.
const (
	// MaxDocumentBytes is the size of one document at any door.
	MaxDocumentBytes = 16 << 20
	// MaxJobIDBytes bounds job_id.
	MaxJobIDBytes = 512
	// MaxKeyBytes bounds idempotency_key, entity and event.
	MaxKeyBytes = 1024
	// MaxNameBytes bounds environment, source, job_type, queue and tenant.
	MaxNameBytes = 255
	// MaxDestinationBytes bounds destination, which may be a URL.
	MaxDestinationBytes = 2048
	// MaxDepth is how deep a document may nest, its payload included.
	MaxDepth = 1000
	// MaxAttempts is how many attempts one document may tell.
	MaxAttempts = 1000
	// maxCauses is how many causes of an attempt are read; deeper ones stay in
	// the attempt's raw text.
	maxCauses = 32
)

// The encodings of a payload.
const (
	EncodingJSON   = "json"   // the payload's bytes are the JSON text as sent
	EncodingBase64 = "base64" // the payload's bytes were sent as base64
	EncodingNone   = "none"   // nothing to send: at most a printout was kept
)

// Document is one death as a worker or source tells it: the envelope is read,
// the payload's bytes are untouched. Texts are as told, so they may hold
// secrets, NUL and terminal codes; Capture makes the copies that people read.
type Document struct {
	Environment    string
	Source         string
	JobType        string
	JobID          string
	IdempotencyKey string // empty matches nothing
	Queue          string
	Tenant         string
	Entity         string // whose order matters: order:8821
	Event          string // what happened in the origin system
	Destination    string

	Payload         []byte
	PayloadEncoding string // EncodingJSON, EncodingBase64 or EncodingNone; empty means JSON
	PayloadVersion  int    // the worker's schema version; 0 means 1

	Headers  json.RawMessage // an object or a list of [name, value] pairs; may be nil
	Attempts []AttemptDoc    // in the order they were sent
	Extra    json.RawMessage // fields that the envelope doesn't know, one JSON object; may be nil

	EnqueuedAt json.RawMessage // read by dlq/moment
	DeadAt     json.RawMessage

	AttemptCount int // 0 means as many as Attempts
	MaxAttempts  int // 0 means not told
	ReasonCode   string
	ReasonText   string
	Category     string // the worker's own word, else empty
	GaveUp       string // attempts, window, not_retryable, poison, cancelled or empty
	Effect       string // none, done, unknown; empty means not told
	EffectID     string // the provider's id, when the effect is done

	// SourceRef is what the source needs to find the job again, a JSON object:
	// {"river_id":1,"attempt":3,"finalized_at":"…"}. No door but a source sets it.
	SourceRef json.RawMessage

	// jsonOK: ParseDocument has walked over payload and headers already.
	jsonOK bool
}

// AttemptDoc is one try as told.
type AttemptDoc struct {
	At            json.RawMessage // read by dlq/moment
	ErrorClass    string
	Message       string
	Stack         string
	Causes        []CauseDoc // outermost first; the last one is the root
	Worker        string
	WorkerVersion string
	DurationMS    *int64 // nil means not told
	SideEffect    string
	Raw           json.RawMessage // the attempt's JSON object as sent
}

// CauseDoc is one link of a cause chain.
type CauseDoc struct {
	ErrorClass string
	Message    string
}

// Defaults fill what a document leaves out: a token's environment and
// source at the HTTP door, the row's at the SQL door.
type Defaults struct {
	Environment string
	Source      string
}

// attemptNumber is the number of the attempt that died.
func (d *Document) attemptNumber() int {
	if d.AttemptCount > 0 {
		return d.AttemptCount
	}
	return len(d.Attempts)
}

// last is the attempt that died, or nil without a history.
func (d *Document) last() *AttemptDoc {
	if len(d.Attempts) == 0 {
		return nil
	}
	return &d.Attempts[len(d.Attempts)-1]
}
