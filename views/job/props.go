// Package job is the page of one dead job and the pages of the actions on it.
// Everything it shows is redacted before it gets here.
package job

import (
	"time"

	"github.com/redrive-dlq/redrive/views/component"
	"github.com/redrive-dlq/redrive/views/layout"
	"github.com/redrive-dlq/redrive/views/route"
)

// Props is what the page of a dead job shows.
type Props struct {
	Page layout.Page // Page.Environment is the job's, Page.Live its event stream
	Brief
	Source, Queue, Tenant, Entity, Event, Destination string
	Owner, Runbook                                    string // Runbook: an http(s) URL or empty
	Effect                                            string // none, done, unknown
	Category                                          string
	CategoryByWorker                                  bool   // the worker said it; else we classified
	GaveUp                                            string // attempts, window, not_retryable, poison, cancelled; empty: not said
	WorkerReason                                      string // the worker's own reason text
	Fingerprint                                       string
	GroupSize                                         int
	Generation, Attempts, MaxAttempts                 int // MaxAttempts 0: not known
	EnqueuedAt, DiedAt, CapturedAt                    Moment
	SnoozedUntil                                      time.Time

	// Summary is the first line: what happened, in words.
	Summary string
	Advice  Advice
	// Blocks are the reasons for which a replay is refused now.
	Blocks []Block
	// Trouble says what is wrong with the destination now; empty: nothing.
	Trouble string
	// Settled is the result of a job that needs nothing any more.
	Settled string

	Payload  Payload
	Headers  []Header
	Error    *Error // nil: no attempt history was sent
	Timeline []Event
	Ledger   *Ledger // nil: no idempotency key
	Related  []Related
	Trail    []component.Entry
	Notes    []Note
	// Extra are fields of the captured document that Redrive doesn't know.
	Extra []Header
	Can   Can
}

// Brief is what every page about a job names it by.
type Brief struct {
	ID          string // ours
	JobID       string // the source's
	Type        string
	Environment string
	Status      string
	Key         string // idempotency key; empty: none
}

// Can says which actions are offered: the person may, and the job's state
// allows it. What is false is not shown at all.
type Can struct {
	Edit, Fix, Settle, Replay, Cancel, Resolve, Snooze, Discard, Reopen, Assign, Note bool
}

// Advice is what to do next. Primary is the one action that is emphasised;
// empty: none. It is shown only where Can allows it.
type Advice struct {
	Tone    string // info, success, warning, error
	Title   string
	Text    string
	Primary route.Action
}

// Block is a reason against a replay and what lifts it; Href may lead there.
type Block struct {
	Reason, Lift string
	Href, Link   string
}

// Moment is a time as the source told it. Raw is its own text, shown when
// Note says that the time is not to be trusted ("implausible", "missing").
type Moment struct {
	At   time.Time
	Raw  string
	Note string
}

// Payload is what is shown of one version of a job's payload.
type Payload struct {
	// Kind is json, text, binary, empty (0 bytes) or gone (purged).
	Kind string
	// View is tree, raw, hex, base64 or diff (against the version before).
	View string
	// Text is the redacted text (json, text), Binary the bytes shown as hex.
	Text   string
	Binary []byte
	// Size is that of all stored bytes; Truncated says Text or Binary is only
	// the first part of them.
	Size      int64
	Truncated bool
	Encoding  string // as the source told it: utf-8, base64, …; empty: json
	MediaType string // empty: not told
	Hidden    int    // how many values the redactor hid
	Version   int
	Versions  []Version // oldest first
	Diff      []component.DiffLine
	Download  string // path of the redacted download; empty: none
	// Note says what is special ("only a printout of the arguments is stored").
	Note string
}

// Version is one version of the payload; 1 is as captured.
type Version struct {
	Number int
	At     time.Time
	By     string
	Reason string
}

// Header is a name and a value. Kind is text, number, bytes (Value is hex),
// empty or null; repeated names keep their order.
type Header struct {
	Name, Value, Kind string
}

// Error is the last attempt's error. Causes are outermost first, without the
// error itself; the page shows the root cause first.
type Error struct {
	Class, Message string
	Causes         []Cause
	Stack          string
}

// Cause is one link of a chain of causes.
type Cause struct{ Class, Message string }

// Event is a point on the timeline, oldest first: an attempt by a worker, a
// replay, a death, an edit.
type Event struct {
	Kind          string // attempt, replay, death, edit or act
	Title         string // "Attempt 2", "Replay by oncall@demo.test"
	At            Moment
	State         string // attempts: failed, succeeded, timeout; replays: their state; else empty
	Worker        string
	WorkerVersion string
	Duration      time.Duration // 0: not known
	Code          string        // "400"; empty: none
	ErrorClass    string
	Message       string
	SideEffect    string // what the attempt is known to have done
	Reason        string
	Href          string // of the batch or replay
}

// Ledger is the entry of the job's idempotency key.
type Ledger struct {
	Scope  string
	State  string // begun, done, failed; none: no entry
	Result string // redacted
	By     string // who or what wrote it
	At     time.Time
}

// Related is a set of other dead jobs.
type Related struct {
	Title string // "Same key", "Same entity", "Same failure"
	Jobs  []RelatedJob
	Total int
	Href  string // the list with all of them
}

// RelatedJob is one other dead job.
type RelatedJob struct {
	ID, JobID, Type, Status string
	DiedAt                  time.Time
}

// Note is a person's note on the job.
type Note struct {
	At   time.Time
	By   string
	Text string
}

// actionLook is how an action reads on its button.
type actionLook struct {
	action     route.Action
	word, icon string
}

var actionWords = map[route.Action]actionLook{
	route.Edit:    {route.Edit, "Edit the payload", "pencil"},
	route.Fix:     {route.Fix, "Declare a fix", "wrench"},
	route.Settle:  {route.Settle, "Settle the effect", "search"},
	route.Replay:  {route.Replay, "Replay …", "replay"},
	route.Cancel:  {route.Cancel, "Take the replay back", "back"},
	route.Resolve: {route.Resolve, "Resolve", "check"},
	route.Snooze:  {route.Snooze, "Snooze", "clock"},
	route.Assign:  {route.Assign, "Assign", "person"},
	route.Discard: {route.Discard, "Discard", "bin"},
	route.Reopen:  {route.Reopen, "Reopen", "back"},
}

func (c Can) allows(a route.Action) bool {
	switch a {
	case route.Edit:
		return c.Edit
	case route.Fix:
		return c.Fix
	case route.Settle:
		return c.Settle
	case route.Replay:
		return c.Replay
	case route.Cancel:
		return c.Cancel
	case route.Resolve:
		return c.Resolve
	case route.Discard:
		return c.Discard
	case route.Reopen:
		return c.Reopen
	case route.Snooze:
		return c.Snooze
	case route.Assign:
		return c.Assign
	}
	return false
}

// secondary lists the allowed actions besides the emphasised one; Discard
// stands apart and is not among them.
func (p Props) secondary() []actionLook {
	var looks []actionLook
	for _, action := range route.Actions {
		if action != p.Advice.Primary && action != route.Discard && p.Can.allows(action) {
			looks = append(looks, actionWords[action])
		}
	}
	return looks
}

// rootFirst lists the error and its causes with the root cause first.
func (e *Error) rootFirst() []Cause {
	chain := append([]Cause{{e.Class, e.Message}}, e.Causes...)
	for i, j := 0, len(chain)-1; i < j; i, j = i+1, j-1 {
		chain[i], chain[j] = chain[j], chain[i]
	}
	return chain
}

// gaveUpWords says why the worker stopped trying.
func gaveUpWords(code string) string {
	switch code {
	case "attempts":
		return "All its attempts were used"
	case "window":
		return "Its time to try was over"
	case "poison":
		return "Poison: it broke its worker again and again"
	}
	return component.Sentence(code)
}
