package replay

import (
	"fmt"

	"github.com/redrive-dlq/redrive/dlq/jobtype"
	"github.com/redrive-dlq/redrive/rbac"
)

// Verdict codes: why a job can't be replayed now.
const (
	Eligible        = "eligible"
	NotOpen         = "not_open"
	KeyDone         = "key_done"
	EffectUnknown   = "effect_unknown"
	KeyInFlight     = "key_in_flight"
	InvalidInput    = "invalid_input"
	AuthNotFixed    = "auth"
	SchemaViolation = "schema_violation"
	TypeUnknown     = "type_unknown"
	NotReplayable   = "not_replayable"
	PayloadMissing  = "payload_missing"
	TargetCantCarry = "target_cant_carry"
	OutOfScope      = "out_of_scope"

	Duplicate           = "duplicate"            // an older job of the batch has its key
	TooOld              = "too_old"              // older than its type's valid_for
	Superseded          = "superseded"           // a newer change of its entity ran already
	DependencyMissing   = "dependency_missing"   // a declared check found nothing
	DependencyUnchecked = "dependency_unchecked" // a declared check couldn't run
	PayloadUnreadable   = "payload_unreadable"   // stored, but it can't be opened
	JobGone             = "job_gone"             // it isn't stored any more
)

// Lift says what a person can do about a verdict; the console turns it into
// the button that it offers.
type Lift string

// The lifts.
const (
	LiftNone         Lift = ""
	LiftEdit         Lift = "edit"
	LiftDeclareFix   Lift = "declare_fix"
	LiftSettle       Lift = "settle"
	LiftWait         Lift = "wait"
	LiftCatalogue    Lift = "catalogue"
	LiftReopen       Lift = "reopen"
	LiftAskColleague Lift = "ask_colleague"
	LiftAllowOld     Lift = "allow_old" // a person takes old jobs along, with a reason
	LiftConfigure    Lift = "configure" // whoever runs Redrive
	LiftCreate       Lift = "create"    // the record that is missing
)

// Verdict is eligible, or blocked with a reason and what lifts it.
type Verdict struct {
	Code     string
	Detail   string // one or two plain sentences; no payload values
	Lift     Lift
	EffectID string // the earlier result's id, with KeyDone
	Fields   []jobtype.SchemaError
	target   jobtype.Target
}

// OK reports whether the job may be replayed.
func (v Verdict) OK() bool { return v.Code == Eligible }

// Needs is the right that replaying one job of a type takes: money, or a type
// without protection against doing it twice, is for on-call engineers.
func Needs(t *jobtype.Type) rbac.Permission {
	switch {
	case t == nil:
		return rbac.ReplayOne
	case t.MoneyRisk():
		return rbac.ReplayMoney
	case !t.Idempotent():
		return rbac.RunBatch
	}
	return rbac.ReplayOne
}

func judgeStatus(j job) Verdict {
	switch j.Status {
	case "open":
		return Verdict{}
	case "replaying":
		return Verdict{Code: NotOpen, Lift: LiftWait, Detail: "It is being replayed already. Wait for the outcome."}
	}
	return Verdict{Code: NotOpen, Lift: LiftReopen, Detail: fmt.Sprintf("It is %s, not open. Reopen it first.", j.Status)}
}

func judgePolicy(j job, t *jobtype.Type, known bool) Verdict {
	if !known {
		return Verdict{Code: TypeUnknown, Lift: LiftCatalogue,
			Detail: fmt.Sprintf("Nobody declared the type %s, so it isn't known where it goes and what it does. Add it to the catalogue.", j.JobType)}
	}
	if err := t.Replayable(j.Environment); err != nil {
		return Verdict{Code: NotReplayable, Lift: LiftCatalogue,
			Detail: fmt.Sprintf("The catalogue names no target for %s in %s.", j.JobType, j.Environment)}
	}
	return Verdict{}
}

// judgeCause: invalid input and auth fail again unless something changed.
func judgeCause(j facts, t *jobtype.Type) Verdict {
	if j.Fixed {
		return Verdict{}
	}
	switch j.Category {
	case "invalid_input":
		lift := LiftDeclareFix
		if len(t.Edits.Payload) > 0 && j.PayloadKind == "json" {
			lift = LiftEdit
		}
		return Verdict{Code: InvalidInput, Lift: lift,
			Detail: "The input was refused; replaying it as it is would fail again. Correct the payload, or declare what was fixed."}
	case "auth":
		return Verdict{Code: AuthNotFixed, Lift: LiftDeclareFix,
			Detail: "The credentials were refused. Fix the key first, then declare the fix."}
	}
	return Verdict{}
}

func (j job) item(t jobtype.Target) Item {
	return Item{DeadJobID: j.ID, Generation: j.Generation, PayloadVersion: j.PayloadVersion, Environment: j.Environment,
		Source: j.Source, JobID: j.JobID, JobType: j.JobType, Entity: j.Entity, Key: j.key(), TargetKind: kindOf(t),
		Target: t, SourceRef: j.SourceRef, AttemptCount: j.AttemptCount, Queue: j.Queue}
}
