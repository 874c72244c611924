package replay

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/redrive-dlq/redrive/dlq/jobtype"
	"github.com/redrive-dlq/redrive/dlq/ledger"
	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/rbac"
)

// proofLook is how often a proof looks whether its run has ended.
const proofLook = 100 * time.Millisecond

// Proof says that one job of a type, replayed twice, had its effect once.
type Proof struct {
	JobType, Environment string
	DeadJobID            int64
	First, Second        ProofRun
	EffectID             string // the provider's id, when known
}

// ProofRun is one of a proof's two replays.
type ProofRun struct {
	ReplayID int64
	Outcome  string
	Code     string
	Detail   string
}

// Prove replays one dead job twice against the ledger and records, when the
// second run found the effect in place, that the type's effect happens once.
// Never in the first environment, the most careful one: the second run is
// forced past the key that is done. tell gets plain sentences as it goes on. It
// waits for both runs until ctx ends. Errors: Forbidden, NotFound, Invalid, and
// Conflict when the type isn't proven, which says why.
func (s *Service) Prove(ctx context.Context, p *rbac.Principal, jobType, environment string, deadJobID int64, tell func(string)) (Proof, error) {
	out := Proof{JobType: jobType, Environment: environment, DeadJobID: deadJobID}
	t, err := s.provable(p, jobType, environment)
	if err != nil {
		return out, err
	}
	j, err := readJob(ctx, s.Pool, deadJobID, "")
	switch {
	case err != nil:
		return out, err
	case j.JobType != jobType || j.Environment != environment:
		return out, problem.New(problem.NotFound, "Job %d is no %s in %s.", deadJobID, jobType, environment)
	case j.key().Key == "":
		return out, problem.New(problem.Conflict, "Job %d has no idempotency key, so the ledger can't tell whether its effect happened. Choose one that has.", deadJobID)
	}
	tell(fmt.Sprintf("First run: job %d is replayed as it is.", deadJobID))
	if out.First, err = s.proofRun(ctx, p, t, j, false); err != nil {
		return out, err
	}
	tell(out.First.sentence("first"))
	first, err := s.doneAfter(ctx, out.First, j.key())
	if err != nil {
		return out, err
	}
	out.EffectID = first.EffectID
	tell("The ledger holds the effect as done. Second run: the same job is replayed again, although its key is done.")
	if out.Second, err = s.proofRun(ctx, p, t, j, true); err != nil {
		return out, err
	}
	tell(out.Second.sentence("second"))
	last, _, err := ledger.Of(ctx, s.Pool, j.key())
	if err != nil {
		return out, err
	}
	why := ""
	switch {
	case last.State != "done" || last.EffectID != first.EffectID || last.Begins != first.Begins:
		why = "the ledger says of this effect what it didn't say after the first run"
	case out.Second.Outcome == Succeeded:
		why = "the second run worked through instead of finding the effect in place, so the effect may have happened twice; its worker has to ask the ledger first and to answer already_done"
	case out.Second.Outcome != AlreadyDone:
		why = "the second run didn't find the effect in place"
	}
	return out, s.recordProof(ctx, p, out, why)
}

// provable returns the type, if it can be proven there by this person.
func (s *Service) provable(p *rbac.Principal, jobType, environment string) (*jobtype.Type, error) {
	if err := p.Require(environment, jobType, rbac.Administer); err != nil {
		return nil, err
	}
	catalogue := s.Types()
	t, known := catalogue.Type(jobType)
	switch {
	case !known:
		return nil, problem.New(problem.NotFound, "Nobody declared the type %s.", jobType)
	case !slices.Contains(catalogue.Environments, environment):
		return nil, problem.At(problem.Invalid, "environment", "There is no environment %s.", environment)
	case catalogue.Environments[0] == environment:
		return nil, problem.At(problem.Invalid, "environment", "Nothing is proven in %s: a proof forces a second run, so it belongs into another environment.", environment)
	case t.Idempotency.By == "none":
		return nil, problem.New(problem.Conflict, "%s declares no protection (idempotency.by is none), so there is nothing to prove.", jobType)
	}
	if err := t.Replayable(environment); err != nil {
		return nil, problem.New(problem.Conflict, "The catalogue names no target for %s in %s.", jobType, environment)
	}
	return t, nil
}

// doneAfter is what the ledger says after the first run: the effect is done, or
// there is nothing to compare a second run with.
func (s *Service) doneAfter(ctx context.Context, first ProofRun, k ledger.Key) (ledger.Row, error) {
	if first.Outcome != Succeeded && first.Outcome != AlreadyDone {
		return ledger.Row{}, problem.New(problem.Conflict, "Not proven: the first run has to succeed, and ended as %s (%s). Nothing was forced.", first.Outcome, first.Detail)
	}
	row, found, err := ledger.Of(ctx, s.Pool, k)
	if err != nil {
		return row, err
	}
	if !found || row.State != "done" {
		return row, problem.New(problem.Conflict, "Not proven: after the first run the ledger doesn't hold the effect as done, so the worker doesn't write it there. Nothing was forced.")
	}
	return row, nil
}

func (r ProofRun) sentence(which string) string {
	return fmt.Sprintf("The %s run (replay %d) ended as %s: %s.", which, r.ReplayID, r.Outcome, r.Detail)
}
