package replay

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/dlq/filter"
	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/rbac"
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

var errUnbuilt = problem.New(problem.Unavailable, "This isn't built yet.")

// Do runs a part of the work and says whether all of it is done.
func (s *Service) Do(ctx context.Context, w Work, batch int64) (done bool, err error) {
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

func (s *Service) doPlan(context.Context, int64) (bool, error)   { return true, errUnbuilt }
func (s *Service) doStart(context.Context, int64) (bool, error)  { return true, errUnbuilt }
func (s *Service) doCancel(context.Context, int64) (bool, error) { return true, errUnbuilt }

// Selection is what a person chose to replay: what a filter matches, or ids.
// An empty selection is an error, never everything.
type Selection struct {
	Filter filter.Filter
	IDs    []int64 // of dead jobs; at most MaxSelected
}

// MaxSelected is how many rows may be selected by id; more take a filter.
const MaxSelected = 10_000

// Plan persists one batch for each environment and type that the selection
// touches and begins to freeze them; it returns their ids, at least one.
// Errors: Invalid (empty or matching nothing, more than 50 types, the reason),
// Forbidden for one who may plan nothing of it.
func (s *Service) Plan(ctx context.Context, p *rbac.Principal, sel Selection, reason string) ([]int64, error) {
	return nil, errUnbuilt
}

// PlanFailed plans the jobs of a batch's failed replays anew.
func (s *Service) PlanFailed(ctx context.Context, p *rbac.Principal, batch int64, reason string) ([]int64, error) {
	return nil, errUnbuilt
}

// Rejudge judges the members of an unconfirmed batch again (the same jobs, as
// they are now); reviews of the plan before are void.
func (s *Service) Rejudge(ctx context.Context, p *rbac.Principal, batch int64) error {
	return errUnbuilt
}

// FixOrder declares for a group or a batch what was fixed.
type FixOrder struct {
	Environment string // of a group; a batch has its own
	Fingerprint string // either a group …
	Batch       int64  // … or a batch
	Kind        string // worker_version, ticket, record
	Ref         string // the version, the ticket's number, the record; required
	Reason      string // required
}

// DeclareFix lifts invalid input and auth of what it covers; a batch that
// isn't confirmed yet is judged again.
func (s *Service) DeclareFix(ctx context.Context, p *rbac.Principal, o FixOrder) error {
	return errUnbuilt
}
