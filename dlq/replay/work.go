package replay

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// Work is work on a batch in the background. The engine runs it until it is
// done; each call does a bounded part in transactions of its own, so that a
// killed process loses nothing and two at once do no harm.
type Work string

// The kinds of work.
const (
	WorkPlan   Work = "plan"   // freeze the selection, or judge it again
	WorkStart  Work = "start"  // take the eligible jobs of a confirmed batch
	WorkCancel Work = "cancel" // end what has not left of a cancelled batch
)

// Do runs a part of the work and says whether all of it is done.
func (s *Service) Do(ctx context.Context, w Work, batch int64) (done bool, err error) {
	if err := s.beat(ctx, batch); err != nil {
		return false, err
	}
	switch w {
	case WorkPlan:
		return s.doPlan(ctx, batch)
	case WorkStart:
		return s.doStart(ctx, batch)
	case WorkCancel:
		return s.doCancel(ctx, batch)
	}
	return true, nil
}

func (s *Service) enqueue(ctx context.Context, tx pgx.Tx, w Work, batch int64) error {
	if s.Enqueue == nil {
		return nil // tests run the work themselves
	}
	return s.Enqueue(ctx, tx, w, batch)
}
