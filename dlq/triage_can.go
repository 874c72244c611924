package dlq

import (
	"slices"

	"github.com/redrive-dlq/redrive/dlq/problem"
)

// TriageCan says why a job's state refuses an act, before anybody fills in its
// form: note, assign, resolve, discard, reopen, snooze, declare_fix, edit or
// settle. The acts check it again under the row's lock. Errors: Conflict.
func TriageCan(j TriageJob, name string) error {
	from := unsettled
	switch name {
	case "note", "assign":
		from = nil
	case "reopen":
		from = reopenable
	case "settle":
		// An effect that the row doesn't know of may be begun in the ledger, by
		// another job of its key; the settling itself looks there.
		if j.Effect == "done" || !slices.Contains(unsettled, j.Status) {
			return problem.New(problem.Conflict, "The effect of this job isn't unknown (status %s, effect %s), so there is nothing to settle.", j.Status, j.Effect)
		}
	}
	return act{name: name, from: from}.allowed(j)
}

// TriageReason checks a reason as every act does, and returns it as it would
// be kept. Errors: Invalid (reason).
func TriageReason(text string) (string, error) { return triageReason(text) }
