package replay

import (
	"github.com/redrive-dlq/redrive/dlq/jobtype"
	"github.com/redrive-dlq/redrive/dlq/problem"
)

// checkReview checks the settings against batch and catalogue, and fills in
// what they leave to the type.
func (s *Service) checkReview(b batchRow, o *ReviewOrder) (*jobtype.Type, error) {
	if b.State != "planned" && b.State != "waiting" {
		return nil, problem.New(problem.Conflict, "Batch %d %s, so it can't be reviewed. Nothing was changed.", b.ID, b.stateWords())
	}
	if err := s.checkPlan(b, o.PlanHash); err != nil {
		return nil, err
	}
	t, err := s.runnable(b)
	if err != nil {
		return nil, err
	}
	if o.Reason, err = reasonOf(o.Reason); err != nil {
		return nil, err
	}
	return t, s.checkSettings(b, o, t)
}

// checkPlan refuses a plan that isn't the one shown, is too old or empty.
func (s *Service) checkPlan(b batchRow, shown string) error {
	switch {
	case b.PlanHash == "" || b.PlanHash != shown:
		return problem.New(problem.Conflict, "The plan of batch %d changed since you looked at it. Nothing was changed; open it and look again.", b.ID)
	case b.Eligible == 0:
		return problem.New(problem.Conflict, "Batch %d has nothing to replay: no job of it is eligible.", b.ID)
	case s.stale(b):
		return problem.New(problem.Conflict, "The plan of batch %d is more than an hour old. Nothing was changed; judge its jobs again, then review what is true now.", b.ID)
	}
	return nil
}

func (s *Service) stale(b batchRow) bool {
	return b.PlannedAt == nil || s.now().Sub(*b.PlannedAt) > PlanFresh
}

func (s *Service) checkSettings(b batchRow, o *ReviewOrder, t *jobtype.Type) error {
	limit, canary := t.Limit().PerMinute, min(b.Eligible, MaxCanary)
	switch now := s.now(); {
	case o.StartAfter < 0 || o.StartAfter > MaxAhead:
		return problem.At(problem.Invalid, "start_after_seconds", "A batch starts at most 30 days after its confirmation.")
	case !o.StartAt.IsZero() && !o.StartAt.After(now):
		return problem.At(problem.Invalid, "start_at", "This time is over. Choose one that is still to come, or now.")
	case o.StartAt.After(now.Add(MaxAhead)):
		return problem.At(problem.Invalid, "start_at", "A batch can be scheduled at most 30 days ahead.")
	case o.RatePerMinute < 0 || o.RatePerMinute > limit:
		return problem.At(problem.Invalid, "rate_per_minute", "Choose a rate of 1 to %s a minute: the limit of %s.", commas(limit), b.JobType)
	case o.Canary < 0 || o.Canary > canary:
		return problem.At(problem.Invalid, "canary", "Choose a canary of 0 to %s replays.", commas(canary))
	case !t.Idempotent() && !o.AcceptRepeat:
		return problem.At(problem.Invalid, "accept_repeat", "Nothing keeps %s from having its effect twice. Say that you accept this, or leave the batch.", b.JobType)
	}
	if o.RatePerMinute == 0 {
		o.RatePerMinute = limit
	}
	return nil
}
