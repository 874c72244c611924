package replay

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/dlq/jobtype"
	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/rbac"
)

// thresholdWindow is how far back what one person released adds up.
const thresholdWindow = 24 * time.Hour

// nearThreshold is how close to a type's threshold single orders begin to take
// turns: further off, no number of parallel ones could pass it.
const nearThreshold = 100

// NeedsBatchError is the Conflict of a single order that has to be a batch:
// there it is reviewed, confirmed and, where the type asks for it, approved.
type NeedsBatchError struct {
	JobType string
	Why     string // a plain sentence
}

func (e *NeedsBatchError) Error() string { return "replay: needs a batch: " + e.Why }

func (e *NeedsBatchError) problem() error {
	return problem.Wrap(e, problem.Conflict, "Not replayed. %s Plan a batch of this job instead.", e.Why)
}

// needsBatch says why jobs of a type aren't replayed singly; nil when they are.
func needsBatch(jobType string, t *jobtype.Type) *NeedsBatchError {
	switch {
	case t == nil:
		return nil // the verdict says that nobody declared it
	case t.MoneyRisk():
		return &NeedsBatchError{JobType: jobType, Why: fmt.Sprintf("A replay of %s may move money, so it takes a plan, a review and a second person.", jobType)}
	case !t.Idempotent():
		return &NeedsBatchError{JobType: jobType, Why: fmt.Sprintf("Nothing keeps %s from having its effect twice, so it takes a plan and a review.", jobType)}
	}
	return nil
}

// NeedsBatch says why jobs of a type aren't replayed singly, as a sentence;
// empty when they are.
func NeedsBatch(jobType string, t *jobtype.Type) string {
	if e := needsBatch(jobType, t); e != nil {
		return e.Why
	}
	return ""
}

// takeTurns makes the orders of one person for a type of an environment go one
// after the other, so that what they release adds up. It comes before the lock
// of the batch and is held until the end of the transaction.
func takeTurns(ctx context.Context, tx pgx.Tx, p *rbac.Principal, environment, jobType string) error {
	_, err := tx.Exec(ctx, `
		SELECT pg_advisory_xact_lock(hashtextextended($1::bigint::text || chr(31) || $2 || chr(31) || $3, 7311))`, p.UserID, environment, jobType)
	if err != nil {
		return fmt.Errorf("replay: take turns: %w", err)
	}
	return nil
}

// releasedBy is how many replays of a type a person ordered, or asked for, in
// the last 24 hours. What was cancelled before anything left doesn't count.
func (s *Service) releasedBy(ctx context.Context, tx pgx.Tx, p *rbac.Principal, environment, jobType string) (n int, err error) {
	err = tx.QueryRow(ctx, `
		SELECT coalesce(sum(eligible), 0)
		FROM redrive.batches
		WHERE confirmed_by_id = $1 AND environment = $2 AND job_type = $3 AND confirmed_at > $4
		  AND NOT (state IN ('cancelling', 'cancelled') AND started_at IS NULL)`,
		p.UserID, environment, jobType, s.now().Add(-thresholdWindow)).Scan(&n)
	if err != nil {
		return 0, fmt.Errorf("replay: what was released in 24 hours: %w", err)
	}
	return n, nil
}

// approvalWhy says why a second person has to agree to n more replays of a type,
// in one sentence; empty when nobody has to. The caller took its turn.
func (s *Service) approvalWhy(ctx context.Context, tx pgx.Tx, p *rbac.Principal, b batchRow, t *jobtype.Type) (string, error) {
	if t.MoneyRisk() {
		return fmt.Sprintf("A replay of %s may move money, which takes a second person.", b.JobType), nil
	}
	before, err := s.releasedBy(ctx, tx, p, b.Environment, b.JobType)
	if err != nil {
		return "", err
	}
	return thresholdWhy(b, t, before), nil
}

func thresholdWhy(b batchRow, t *jobtype.Type, before int) string {
	limit := t.ApprovalAbove()
	switch {
	case before+b.Eligible <= limit:
		return ""
	case before == 0:
		return fmt.Sprintf("More than %s replays of %s take a second person.", commas(limit), b.JobType)
	}
	return fmt.Sprintf("With the %s that the same person released in the last 24 hours these are %s; more than %s replays of %s take a second person.",
		commas(before), commas(before+b.Eligible), commas(limit), b.JobType)
}

// mayReleaseOne refuses a single order that would pass the threshold: by single
// orders nobody gets around the second person. It comes before other locks.
func (s *Service) mayReleaseOne(ctx context.Context, tx pgx.Tx, p *rbac.Principal, b batchRow, t *jobtype.Type) error {
	if t == nil {
		return nil
	}
	before, err := s.releasedBy(ctx, tx, p, b.Environment, b.JobType)
	if err != nil || before+nearThreshold < t.ApprovalAbove() {
		return err
	}
	// Only short orders of the same person hold the turn.
	if _, err := tx.Exec(ctx, `SET LOCAL lock_timeout = '5s'`); err != nil {
		return fmt.Errorf("replay: set lock timeout: %w", err)
	}
	if err := takeTurns(ctx, tx, p, b.Environment, b.JobType); err != nil {
		return err
	}
	if before, err = s.releasedBy(ctx, tx, p, b.Environment, b.JobType); err != nil {
		return err
	}
	if why := thresholdWhy(b, t, before); why != "" {
		return (&NeedsBatchError{JobType: b.JobType, Why: why}).problem()
	}
	return nil
}
