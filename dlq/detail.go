package dlq

import (
	"encoding/json"
	"time"

	"github.com/redrive-dlq/redrive/audit"
	"github.com/redrive-dlq/redrive/dlq/jobtype"
)

// Caps of what a job's page shows.
const (
	// DetailPayloadBytes is how much of a redacted payload is read for display.
	DetailPayloadBytes = 64 << 10
	detailAttempts     = 500 // the latest ones
	detailRelated      = 5   // of each set
	detailEntries      = 200 // the latest ones
	detailRelatedCap   = 1000
)

// DetailTypes is what the page asks the catalogue; *jobtype.Catalogue is one.
type DetailTypes interface {
	Type(name string) (*jobtype.Type, bool)
}

// DetailQuery says which version of the payload is shown.
type DetailQuery struct {
	Version int         // 0: the current one
	Types   DetailTypes // may be nil: then no type is declared
	Now     time.Time   // zero: time.Now
}

// Details is everything the page of a dead job needs; nothing of it is raw.
// Whether a replay is possible now, and why not, is the replay package's word.
type Details struct {
	Job      DetailJob
	Payload  DetailPayload
	Versions []DetailVersion // oldest first
	Headers  []DetailHeader
	Extra    json.RawMessage // fields of the envelope that nobody knows: a redacted JSON object
	Attempts []DetailAttempt // of all generations, as they were sent
	Deaths   []DetailDeath
	Replays  []DetailReplay // oldest first
	late     []DetailLate   // of all replays
	now      time.Time
	Timeline []DetailEvent // attempts, deaths, replays with later outcomes and edits, oldest first
	Ledger   *DetailLedger // nil: no key, or no entry
	Related  []DetailRelatedSet
	Notes    []DetailNote
	Entries  []audit.Record // its audit entries, oldest first

	Sentence string // what happened, in words
	Advice   DetailAdvice
}

// DetailJob is the job's row.
type DetailJob struct {
	ID             int64
	Environment    string
	Source         string
	JobID          string
	Generation     int
	JobType        string
	Queue          string
	Tenant         string
	Entity         string
	Event          string
	Destination    string
	KeyScope       string
	IdempotencyKey string // empty: none
	Status         string
	Effect         string
	EffectID       string
	Category       string
	CategoryBy     string // redrive or worker
	ReasonCode     string
	ReasonText     string
	GaveUp         string
	ErrorClass     string
	ErrorMessage   string
	StatusCode     int
	Fingerprint    string
	AttemptCount   int
	MaxAttempts    int
	WorkerVersion  string
	PayloadVersion int
	SchemaVersion  int
	PayloadSize    int64
	PayloadKind    string // json, text, binary, empty, printout
	EnqueuedAt     *time.Time
	FirstFailedAt  *time.Time
	DiedAt         time.Time
	DiedAtNote     string
	CapturedAt     time.Time
	UpdatedAt      time.Time
	Assignee       string
	SnoozedUntil   *time.Time
	SettledReason  string
	SettledRef     string
	SettledBy      string
	SettledAt      *time.Time
	FixKind        string
	FixRef         string
	SourceGone     bool // its source no longer has it
}

// DetailPayload is the shown version.
type DetailPayload struct {
	Version   int
	Text      []byte // redacted, at most DetailPayloadBytes
	Size      int64  // of the real bytes
	ShownSize int64  // of the whole redacted copy
	Truncated bool
	Kind      string // json, text, binary, empty, printout, gone
	Encoding  string // json, base64, none
	Hidden    int    // how many values the copy hides
	SHA256    string // hex; only for those who may reveal
}

// DetailVersion is one version of the payload.
type DetailVersion struct {
	Version   int
	Origin    string // capture or edit
	Size      int64
	CreatedBy string
	Reason    string
	CreatedAt time.Time
}

// DetailHeader is one header as people may read it.
type DetailHeader struct {
	Name   string `json:"name"`
	Value  string `json:"value"`
	Form   string `json:"form"` // text, number, bool, json, int32, int64, hex, empty or null
	Note   string `json:"note"`
	Hidden bool   `json:"hidden"`
}

// DetailCause is one link of a chain of causes.
type DetailCause struct {
	ErrorClass string `json:"error_class"`
	Message    string `json:"message"`
}

// DetailAttempt is one try.
type DetailAttempt struct {
	ID            int64
	Generation    int
	Seq           int
	At            *time.Time // nil: missing or unreadable
	AtRaw         string
	AtNote        string
	ErrorClass    string
	Message       string
	Stack         string
	Causes        []DetailCause // outermost first; the root is the last
	Worker        string
	WorkerVersion string
	DurationMS    *int64
	SideEffect    string
	StatusCode    int
	ReplayID      *int64 // the replay that made it; nil: none of ours
}

// DetailDeath is one time the job was given up.
type DetailDeath struct {
	Generation  int
	Attempt     int
	DiedAt      time.Time
	Category    string
	ErrorClass  string
	Fingerprint string
	CapturedAt  time.Time
	Replay      *DetailReplay `db:"-"` // which failed with it; nil: none of ours
}

// DetailReplay is one replay of the job.
type DetailReplay struct {
	ID             int64
	BatchID        int64
	Single         bool // its batch is of it alone
	Generation     int
	PayloadVersion int
	State          string // pending, ready, released, ended
	Outcome        string // empty: not ended
	OutcomeCode    string
	OutcomeDetail  string
	EffectID       string
	By             string
	Reason         string
	OrderedAt      time.Time
	DueAt          *time.Time
	ReleasedAt     *time.Time
	DeadlineAt     *time.Time
	OutcomeAt      *time.Time
	NextGeneration int          // of the job, which its failure made; 0: none told
	Late           []DetailLate `db:"-"` // oldest first
}

// DetailLate is a final outcome that came after the first one, and changed
// nothing.
type DetailLate struct {
	ReplayID int64
	At       time.Time
	Outcome  string
	Code     string
	Detail   string // redacted
	EffectID string
}

// DetailEvent is a point of the timeline; exactly one of its pointers is set.
type DetailEvent struct {
	At      *time.Time // nil: not known; it stands where it was sent
	Attempt *DetailAttempt
	Death   *DetailDeath
	Replay  *DetailReplay
	Late    *DetailLate
	Edit    *DetailVersion
}

// DetailLedger is the ledger's entry of the job's key.
type DetailLedger struct {
	State      string // begun, done, failed
	Result     string // redacted JSON; empty: none
	EffectID   string
	Begins     int
	BegunAt    time.Time
	FinishedAt *time.Time
	SettledBy  string
}

// DetailRelatedSet are other dead jobs that share something with this one.
type DetailRelatedSet struct {
	By    string // key, entity or group
	Jobs  []DetailRelated
	Total int64 // at most 1,000 are counted
	More  bool  // there are more than Total
}

// DetailRelated is one other dead job.
type DetailRelated struct {
	ID      int64
	JobID   string
	JobType string
	Status  string
	DiedAt  time.Time
}

// DetailNote is a person's note.
type DetailNote struct {
	ID        int64
	Author    string
	Body      string
	CreatedAt time.Time
}

// Last is the latest attempt that was sent; nil when there is no history.
func (d *Details) Last() *DetailAttempt {
	if len(d.Attempts) == 0 {
		return nil
	}
	return &d.Attempts[len(d.Attempts)-1]
}
