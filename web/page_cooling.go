package web

import (
	"slices"
	"strings"

	"github.com/redrive-dlq/redrive/dlq/board"
	"github.com/redrive-dlq/redrive/dlq/jobtype"
	"github.com/redrive-dlq/redrive/views/batches"
	"github.com/redrive-dlq/redrive/views/component"
)

// coolsOff says in a sentence that a wait stands in for the second person of a
// batch that needs one, for the reason why.
func coolsOff(environment, why string) string {
	return "No second person is asked in " + environment + ": instead it waits " + component.Duration(jobtype.CoolingOffFor) +
		" at least after the confirmation, and everybody sees that. " + why
}

// coolingNote marks a batch in lists that goes without the second person it
// would have needed.
func coolingNote(b board.Batch, note string) string {
	if !b.NoSecondPerson() {
		return note
	}
	if note == "" {
		return "no second person"
	}
	return "no second person; " + note
}

// coolingWait says the same on the batch's page, as long as something may leave.
func coolingWait(b board.Batch) (batches.Wait, bool) {
	if !b.NoSecondPerson() || !slices.Contains([]string{"scheduled", "running", "paused"}, b.State) {
		return batches.Wait{}, false
	}
	return batches.Wait{Tone: "warning", Icon: "alert", Bold: "No second person agreed to this:",
		Text: "in " + b.Environment + " a wait of " + component.Duration(jobtype.CoolingOffFor) + " stands in for one. " + b.NeedsApproval +
			" Whoever may approve batches may still cancel it."}, true
}

// secondWord is why a second person was asked, or what stood in for one.
func secondWord(b board.Batch) string {
	if b.NoSecondPerson() {
		return "None: a wait of " + component.Duration(jobtype.CoolingOffFor) + " stood in. " + b.NeedsApproval
	}
	return b.NeedsApproval
}

// coolingWords say of a type where a wait stands in for a second person; empty
// where it nowhere does.
func coolingWords(c *jobtype.Catalogue, t *jobtype.Type) string {
	if len(c.CoolingOff) == 0 || t.MoneyRisk() {
		return ""
	}
	return "in " + strings.Join(c.CoolingOff, ", ") + " a wait of " + component.Duration(jobtype.CoolingOffFor) + " instead"
}
