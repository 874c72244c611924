package web

import (
	"context"
	"strconv"

	"github.com/redrive-dlq/redrive/dlq/board"
	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/rbac"
	"github.com/redrive-dlq/redrive/views/batches"
	"github.com/redrive-dlq/redrive/views/component"
	"github.com/redrive-dlq/redrive/views/layout"
	"github.com/redrive-dlq/redrive/views/route"
)

// runActs are the commands on a batch. Stopping is always easy: it asks for no
// passphrase, and a pause for no reason.
var runActs = []runAct{
	{
		pattern: route.BatchPausePattern, name: "pause", states: []string{"scheduled", "running"},
		refusal: "Only a batch that is scheduled or running can be paused.",
		may:     (*Server).mayRun,
		view: func(_ *Server, b board.Batch, _ runForm) batches.CommandProps {
			return batches.CommandProps{Page: layout.Page{Title: "Pause " + batchName(b) + "?"}, Here: "Pause", Button: "Pause batch " + formatID(b.ID), Back: "Let it run",
				Consequence: "Within a second nothing of it leaves any more: " + component.Plural(left(b), "replay waits", "replays wait") + ", " + out(b) + ". Its jobs keep their place; others of the same entities wait behind them."}
		},
		do: func(ctx context.Context, s *Server, p *rbac.Principal, b board.Batch, f runForm) (runDone, error) {
			done := "Paused. " + component.Plural(left(b), "replay waits", "replays wait") + " until somebody resumes the batch."
			return runDone{text: done}, s.config.Replays.Pause(ctx, p, b.ID, f.Reason)
		},
	},
	{
		pattern: route.BatchResumePattern, name: "resume", states: []string{"paused"},
		refusal: "The batch isn't paused, so there is nothing to resume.",
		may:     (*Server).mayRun,
		stepUp:  board.Batch.StoppedItself,
		view:    resumeView,
		do: func(ctx context.Context, s *Server, p *rbac.Principal, b board.Batch, f runForm) (runDone, error) {
			return runDone{text: "Resumed. Replays leave as their limits allow."}, s.config.Replays.Resume(ctx, p, b.ID, f.Reason)
		},
	},
	{
		pattern: route.BatchRatePattern, name: "rate", states: []string{"scheduled", "running", "paused"},
		refusal: "Only a batch under way can be slowed down.",
		may:     (*Server).mayRun,
		view:    rateView,
		do: func(ctx context.Context, s *Server, p *rbac.Principal, b board.Batch, f runForm) (runDone, error) {
			n, err := strconv.Atoi(f.PerMinute)
			if err != nil {
				return runDone{}, problem.At(problem.Invalid, route.FieldPerMinute, "Write a whole number of replays a minute.")
			}
			return runDone{text: "Slower now: " + component.Count(n) + " a minute at most."}, s.config.Replays.SetRate(ctx, p, b.ID, n)
		},
	},
	{
		pattern: route.BatchCancelPattern, name: "cancel", states: []string{"planning", "planned", "waiting", "scheduled", "running", "paused"},
		refusal: "The batch has ended or is being cancelled, so there is nothing to cancel.",
		may:     (*Server).mayCancelBatch,
		view:    cancelView,
		do: func(ctx context.Context, s *Server, p *rbac.Principal, b board.Batch, f runForm) (runDone, error) {
			stops, out, err := s.config.Replays.Cancel(ctx, p, b.ID, f.Reason)
			done := "Cancelled. Nothing was sent."
			if ordered(b) {
				done = "Cancelled: " + component.Count(int(stops)) + " stopped, " + component.Count(int(out)) + " out. What is out goes on to its outcome; the other jobs are open again in a moment."
			}
			return runDone{text: done}, err
		},
	},
}

func resumeView(s *Server, b board.Batch, _ runForm) batches.CommandProps {
	props := batches.CommandProps{Page: layout.Page{Title: "Resume " + batchName(b) + "?"}, Here: "Resume", Button: "Resume batch " + formatID(b.ID), Back: "Leave it paused",
		Consequence: component.Plural(left(b), "replay goes", "replays go") + " on leaving, at most " + component.Count(s.rateOf(b)) + " a minute. Holds and failing destinations still count."}
	if b.StoppedItself() {
		n := min(s.canaryOf(b), left(b))
		props.Stopped, props.ReasonMust = b.PauseWhy, true
		props.Button = "Resume with a new canary of " + component.Count(n)
		props.Consequence = component.Plural(n, "replay leaves", "replays leave") + " first as a new canary. The other " + component.Count(left(b)-n) +
			" follow only if no more than " + strconv.Itoa(s.stopPct(b)) + " % of it fails; else the batch stops again. Say what was put right."
	}
	return props
}

func rateView(s *Server, b board.Batch, f runForm) batches.CommandProps {
	now := s.rateOf(b)
	field := &batches.RateField{Now: now, Value: f.PerMinute, Error: f.errorAt(route.FieldPerMinute),
		Hint: "Below the " + component.Count(now) + " a minute of now. " + component.Plural(left(b), "replay is", "replays are") + " left: " + lasts(left(b), now) + " at the rate of now."}
	if field.Value == "" {
		field.Value = strconv.Itoa(max(1, now/2))
	}
	return batches.CommandProps{Page: layout.Page{Title: "Slow down " + batchName(b) + "?"}, Here: "Slow down", Button: "Slow it down", Back: "Keep the rate", NoReason: true, Rate: field,
		Consequence: "From the next second on it leaves at this rate. A confirmed batch only gets slower: a faster rate would take a new plan."}
}

func cancelView(_ *Server, b board.Batch, _ runForm) batches.CommandProps {
	props := batches.CommandProps{Page: layout.Page{Title: "Cancel " + batchName(b) + "?"}, Here: "Cancel", ReasonMust: true, Danger: true, Back: "Keep it, change nothing",
		Button:      "Cancel " + component.Plural(left(b), "replay", "replays"),
		Consequence: "This stops " + component.Count(left(b)) + "; " + out(b) + ". What is stopped never leaves by this batch, and its jobs are open again. What has ended stays as it is. A cancelled batch can't be resumed."}
	if !ordered(b) {
		props.Page.Title, props.Here = "Withdraw the plan of "+batchName(b)+"?", "Withdraw"
		props.Button = "Withdraw this plan"
		props.Consequence = "Nothing was sent by it, and nothing will be. The jobs stay as they are, and can be planned again."
	}
	return props
}

// out says what is out: "60 are out and go on to their outcome".
func out(b board.Batch) string {
	switch n := b.Tallies["released"]; n {
	case 0:
		return "none is out"
	case 1:
		return "1 is out and goes on to its outcome"
	default:
		return component.Count(n) + " are out and go on to their outcome"
	}
}
