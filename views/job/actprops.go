package job

import (
	"time"

	"github.com/redrive-dlq/redrive/views/component"
	"github.com/redrive-dlq/redrive/views/layout"
)

// Act is what the page of every action shows. The page names the job, says
// what the action will do, takes a reason and offers an equally big Cancel.
type Act struct {
	Page layout.Page // Page.Environment is the job's
	Brief
	// Consequence says in words what will happen, and what will not.
	Consequence string
	// Reason is what was typed before; ReasonError what is wrong with it.
	Reason, ReasonError string
	// Problem says why the action was refused, or what must be put right.
	Problem string
	// Version is what the form was made from (field "version"): the action
	// is refused when the job has changed since. Empty: no such check.
	Version string
}

// EditProps is the page on which allowed places of a payload are edited.
type EditProps struct {
	Act
	Fields []EditField
	// From is the version of the payload that is edited.
	From int
}

// EditField is one place of the payload that may be changed. Its form field is
// named route.FieldPointer followed by Pointer.
type EditField struct {
	Pointer string // JSON Pointer, as the type declares it
	Now     string // the redacted current value, as JSON text without quotes for strings
	Hidden  bool   // Now is a mask: the value is typed anew, and left empty it stays
	Value   string // what stands in the field: what was typed, or else the value when it isn't hidden
	Kind    string // string, number, boolean, null or json: how what is typed is read
	Error   string // what is wrong with what was typed
	Hint    string // from the schema: "an e-mail address"
}

// EditDiffProps is the second page of an edit: the difference, before saving.
type EditDiffProps struct {
	Act
	Fields []EditField // their Value is sent along again
	Diff   []component.DiffLine
	// Size is that of the payload after the edit, in bytes.
	Size int64
	From int
}

// FixProps is the page on which a fix is declared.
type FixProps struct {
	Act
	Kind           string // worker_version, ticket or record
	Reference      string // "mailer 2.4.1", "OPS-1234"
	KindError      string
	ReferenceError string
}

// SettleProps is the page on which an unknown effect is settled.
type SettleProps struct {
	Act
	Question                  string // "Was the card charged?"
	Provider                  string // where to look it up
	Ended                     string // happened, not or empty: there is no default
	EffectID                  string // what the provider calls it
	EndedError, EffectIDError string
}

// ReplayProps is the page that confirms a single replay.
type ReplayProps struct {
	Act
	// SideEffects are what the replay may do, each "sends one e-mail to …".
	SideEffects []string
	Money       bool
	Idempotency string // "The provider deduplicates the key", …
	Target      string // "River app-prod, queue mail"
	PayloadNote string // "Version 2, edited by … " or "the bytes as captured (214 bytes)"
	Warnings    []string
	// Blocks, when there are any, stand in place of the form.
	Blocks []Block
	// Earlier is the result of the key's earlier effect; empty: none.
	Earlier string
	When    string // now or later; empty: now
	At      string // 2026-01-02T15:04 in UTC, as typed
	AtError string
	Now     time.Time
	// CanReplay is false when the person may look but not replay.
	CanReplay bool
}

// SnoozeProps is the page that puts a job aside.
type SnoozeProps struct {
	Act
	Until      string // 2026-01-02T15:04 in UTC, as typed
	UntilError string
	Now        time.Time
}

// AssignProps is the page that names who looks after a job.
type AssignProps struct {
	Act
	Assignee, AssigneeError string
}

// ResolveProps is the page that settles a job as done elsewhere.
type ResolveProps struct {
	Act
	Reference, ReferenceError string
}
