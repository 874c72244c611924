package web

import (
	"github.com/redrive-dlq/redrive/dlq/board"
	"github.com/redrive-dlq/redrive/dlq/redact"
	"github.com/redrive-dlq/redrive/views/batches"
	"github.com/redrive-dlq/redrive/views/component"
)

// batchWho says by whom and why a batch was ordered, and what proves it.
func (s *Server) batchWho(b board.Batch) batches.Who {
	w := batches.Who{Selected: "filter " + redact.Readable(b.Filter), Cutoff: b.Cutoff, PlannedBy: b.CreatedBy, PlannedAt: b.CreatedAt, Reason: reasonText(b.Reason),
		ReviewedBy: b.ReviewedBy, ReviewedAt: when(b.ReviewedAt), ConfirmedBy: b.ConfirmedBy, ConfirmedAt: when(b.ConfirmedAt), NeedsWord: secondWord(b),
		ApprovedBy: b.ApprovedBy, ApprovedAt: when(b.ApprovedAt), DueAt: when(b.DueAt), StartedAt: when(b.StartedAt), EndedAt: when(b.FinishedAt),
		CancelledBy: b.CancelledBy, EndReason: reasonText(b.EndReason), Destination: s.destinationName(b), PlanHash: b.PlanHash, PlanRevision: b.PlanRevision, ReviewHash: b.ReviewHash}
	if b.BySelection {
		w.Selected = component.Plural(b.Planned, "row", "rows") + " chosen by hand"
	}
	if b.ParentBatch != nil {
		w.Parent = formatID(*b.ParentBatch)
	}
	if t, ok := s.config.Types().Type(b.JobType); ok {
		w.SideEffects = sideEffects(t)
	}
	if ordered(b) {
		w.Settings = "at most " + component.Count(s.rateOf(b)) + " a minute, no canary"
		if b.Canary > 0 {
			w.Settings = "at most " + component.Count(s.rateOf(b)) + " a minute, " + component.Count(b.Canary) + " first as a canary"
		}
		if b.AcceptRepeat {
			w.Settings += "; the type isn't idempotent, and that was accepted"
		}
	}
	return w
}
