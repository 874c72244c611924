package replay

import (
	"fmt"

	"github.com/redrive-dlq/redrive/dlq/jobtype"
	"github.com/redrive-dlq/redrive/dlq/problem"
)

// runnable is the batch's type, when replays of it can still go where the plan
// said. Errors: Conflict.
func (s *Service) runnable(b batchRow) (*jobtype.Type, error) {
	t, why := s.typeNow(b)
	if why != "" {
		return nil, b.forbidden(why)
	}
	return t, nil
}

// stillAgreed is runnable for a batch that was reviewed: what keeps its effects
// from happening twice is as it was then.
func (s *Service) stillAgreed(b batchRow) (*jobtype.Type, error) {
	if why := s.catalogueWhy(b); why != "" {
		return nil, b.forbidden(why)
	}
	return s.runnable(b)
}

// typeNow is the batch's type by the catalogue of now, and why its replays can't
// go where the plan said; empty when they can.
func (s *Service) typeNow(b batchRow) (t *jobtype.Type, why string) {
	t, known := s.Types().Type(b.JobType)
	if !known {
		return nil, "the catalogue no longer declares " + b.JobType
	}
	target, ok := t.Target(b.Environment)
	switch {
	case !ok:
		return nil, fmt.Sprintf("the catalogue no longer names a target for %s in %s", b.JobType, b.Environment)
	case kindOf(target) != b.TargetKind || target.Destination() != b.Destination:
		return nil, fmt.Sprintf("the catalogue sends %s of %s elsewhere now", b.JobType, b.Environment)
	}
	return t, ""
}

// forbidden is the Conflict of a batch that may not run as it was planned.
func (b batchRow) forbidden(why string) error {
	return problem.New(problem.Conflict, "Batch %d can't be replayed: %s. Nothing was changed.", b.ID, why)
}
