package replay

// VerdictInfo says in words what a verdict means, for pages and exports.
type VerdictInfo struct {
	Code  string
	Title string // two or three words
	Lifts string // a sentence: what a person can do about it, or that nothing lifts it
	Lift  Lift   // LiftNone: nothing here does
}

// Verdicts are all verdicts, in the order that people read them: what can
// leave, what a person can lift, what lifts by itself, what stays.
func Verdicts() []VerdictInfo {
	return []VerdictInfo{
		{Eligible, "Eligible", "Nothing stands in the way.", LiftNone},
		{InvalidInput, "Invalid input", "Correct the payload, or declare what was fixed, for the job, its group or this batch.", LiftDeclareFix},
		{AuthNotFixed, "Credentials refused", "Fix the credentials, then declare the fix, for the job, its group or this batch.", LiftDeclareFix},
		{SchemaViolation, "Breaks its schema", "Edit the payload so that it fits the schema of its type, or correct the schema in the catalogue.", LiftEdit},
		{EffectUnknown, "Effect unknown", "Look the key up at the provider, then settle on the job whether the effect happened.", LiftSettle},
		{DependencyMissing, "Dependency missing", "Create the record that the declared check looks for, then judge the batch again; or discard the job.", LiftCreate},
		{TooOld, "Too old", "A person who may run batches can take old jobs along, with a reason.", LiftAllowOld},
		{TypeUnknown, "Type not declared", "Declare the type in the catalogue, then plan again.", LiftCatalogue},
		{NotReplayable, "Not replayable", "Give the type a target in this environment, in the catalogue, then plan again.", LiftCatalogue},
		{DependencyUnchecked, "Dependency not checked", "Give this console the environment's database to ask, or mend the declared check; then judge the batch again.", LiftConfigure},
		{PayloadUnreadable, "Payload unreadable", "Give this console the key that the payload was sealed with, then judge the batch again.", LiftConfigure},
		{OutOfScope, "Out of your scope", "Ask a colleague whose role allows replaying this type here to plan it.", LiftAskColleague},
		{NotOpen, "Not open", "Reopen the job, or wait for the replay that it is in; then judge the batch again.", LiftReopen},
		{KeyInFlight, "Same key in flight", "Wait for the outcome of the other replay of its key, then judge the batch again.", LiftWait},
		{Duplicate, "Duplicate in this batch", "Nothing to do: an older job of this batch has the same key, and one run is enough.", LiftNone},
		{KeyDone, "Already done", "Nothing to do: the effect of its key has happened.", LiftNone},
		{Superseded, "Superseded", "Nothing lifts it: a newer change of its entity has run. Discard the job, or resolve it with a reference.", LiftNone},
		{TargetCantCarry, "Target can't carry it", "Nothing lifts it: the target would change the payload. Resolve the job by hand, with a reference.", LiftNone},
		{PayloadMissing, "Payload missing", "Nothing lifts it: its payload isn't stored, or is only a printout. Resolve the job by hand, with a reference.", LiftNone},
		{JobGone, "Job gone", "Nothing lifts it: the job was deleted since it was planned.", LiftNone},
	}
}

// VerdictOf is the verdict of a code; ok is false for none of ours.
func VerdictOf(code string) (info VerdictInfo, ok bool) {
	for _, v := range Verdicts() {
		if v.Code == code {
			return v, true
		}
	}
	return VerdictInfo{}, false
}
