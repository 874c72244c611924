package web

import (
	"context"

	"github.com/redrive-dlq/redrive/dlq/board"
	"github.com/redrive-dlq/redrive/rbac"
	"github.com/redrive-dlq/redrive/views/batches"
	"github.com/redrive-dlq/redrive/views/component"
	"github.com/redrive-dlq/redrive/views/layout"
	"github.com/redrive-dlq/redrive/views/route"
)

// planFailedAct plans the jobs of a batch's failed replays anew.
var planFailedAct = runAct{
	pattern: route.BatchPlanFailedPattern, name: "plan_failed", states: []string{"done", "cancelled"},
	refusal: "The batch hasn't ended yet. What failed is planned anew when all of it has an outcome.",
	may: func(_ *Server, p *rbac.Principal, b board.Batch) error {
		return p.Require(b.Environment, b.JobType, rbac.PlanBatch)
	},
	view: func(_ *Server, b board.Batch, _ runForm) batches.CommandProps {
		n := component.Count(b.Failed())
		return batches.CommandProps{Page: layout.Page{Title: "Plan the " + n + " that failed anew?"}, Here: "Plan what failed", ReasonMust: true, Button: "Plan the " + n + " that failed", Back: "Back to the report",
			Consequence: "A new batch is planned of the jobs that failed in this one, as they are now. Each is judged again: what fails for its input needs an edit or a declared fix first. Nothing is sent until that batch is reviewed and confirmed."}
	},
	do: func(ctx context.Context, s *Server, p *rbac.Principal, b board.Batch, f runForm) (runDone, error) {
		ids, err := s.config.Replays.PlanFailed(ctx, p, b.ID, f.Reason)
		if err != nil || len(ids) == 0 {
			return runDone{}, err
		}
		return runDone{text: "What failed is being planned anew. Nothing was sent.", next: route.Batch(formatID(ids[0]))}, nil
	},
}
