package replay

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/audit"
	"github.com/redrive-dlq/redrive/dlq/jobtype"
	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/rbac"
)

// ConfirmOrder is the second confirmation. The caller has checked the step-up.
type ConfirmOrder struct {
	Batch      int64
	PlanHash   string
	ReviewHash string
	Phrase     string
	Nonce      string // of the page; empty for a token, whose use is once by the batch's state
}

// Confirm orders the batch, or asks a second person. It answers the batch's
// new state. The same confirmation twice is a Conflict that changes nothing.
// Errors: NotFound, Forbidden, Conflict (another state, a plan or review that
// changed, a plan too old, a page used already, a type that can't be replayed
// any more), Invalid at phrase.
func (s *Service) Confirm(ctx context.Context, p *rbac.Principal, o ConfirmOrder) (state string, err error) {
	seen, err := s.seen(ctx, p, o.Batch)
	if err != nil {
		return "", err
	}
	if err := s.mayRun(p, seen); err != nil {
		return "", err
	}
	err = s.change(ctx, func(tx pgx.Tx) error {
		// What one person confirms of a type in several tabs adds up.
		if err := takeTurns(ctx, tx, p, seen.Environment, seen.JobType); err != nil {
			return err
		}
		if err := ensureBucket(ctx, tx, seen.Environment, seen.JobType); err != nil {
			return err
		}
		b, err := readBatch(ctx, tx, o.Batch, "FOR UPDATE")
		if err != nil {
			return err
		}
		t, err := s.checkConfirm(b, o)
		if err != nil {
			return err
		}
		if err := useNonce(ctx, tx, p, b, o.Nonce, s.now()); err != nil {
			return err
		}
		state, err = s.confirm(ctx, tx, p, b, t)
		return err
	})
	if err != nil {
		return "", err
	}
	return state, nil
}

// checkConfirm checks that what was seen is what is there, and may still run.
func (s *Service) checkConfirm(b batchRow, o ConfirmOrder) (*jobtype.Type, error) {
	if b.State != "planned" {
		return nil, problem.New(problem.Conflict, "Batch %d %s. Nothing was changed.", b.ID, b.stateWords())
	}
	if err := b.isReviewed(); err != nil {
		return nil, err
	}
	if err := s.checkPlan(b, o.PlanHash); err != nil {
		return nil, err
	}
	return s.checkAgreed(b, o)
}

// isReviewed refuses a batch whose first confirmation is missing.
func (b batchRow) isReviewed() error {
	if b.ReviewHash == "" {
		return problem.New(problem.Conflict, "Batch %d isn't reviewed yet: say first how it shall run.", b.ID)
	}
	return nil
}

// checkAgreed is what a confirmation and an approval have in common: the review
// that was seen, a type that may still be replayed this way, the phrase.
func (s *Service) checkAgreed(b batchRow, o ConfirmOrder) (*jobtype.Type, error) {
	if o.ReviewHash != b.ReviewHash {
		return nil, problem.New(problem.Conflict, "The review of batch %d changed since you looked at it. Nothing was changed; open it and look again.", b.ID)
	}
	t, err := s.stillAgreed(b)
	if err != nil {
		return nil, err
	}
	if o.Phrase != b.phrase() {
		return nil, problem.At(problem.Invalid, "phrase", "Type exactly this: %s. Nothing was changed.", b.phrase())
	}
	return t, nil
}

// confirm writes the confirmation, and orders the batch unless a second person
// is needed. The caller holds the batch's row and took its turn.
func (s *Service) confirm(ctx context.Context, tx pgx.Tx, p *rbac.Principal, b batchRow, t *jobtype.Type) (string, error) {
	why, err := s.approvalWhy(ctx, tx, p, b, t)
	if err != nil {
		return "", err
	}
	now := s.now()
	due, alone := b.due(now), ""
	if why != "" && s.Types().CoolsOff(b.Environment, t) {
		why, alone = "", why
		if least := now.Add(jobtype.CoolingOffFor); due.Before(least) {
			due = least
		}
	}
	// Why a second person is asked stays with a batch that goes without one.
	_, err = tx.Exec(ctx, `
		UPDATE redrive.batches
		SET confirmed_by = $2, confirmed_by_id = $3, confirmed_at = $4, needs_approval = $5
		WHERE id = $1`, b.ID, nameOf(p), p.UserID, now, why+alone)
	if err != nil {
		return "", fmt.Errorf("replay: confirm: %w", err)
	}
	details := b.details()
	if why != "" {
		details["needs_approval"] = why
	} else {
		details["due_at"] = due.UTC().Format(time.RFC3339)
	}
	if alone != "" {
		details["no_second_person"] = alone
	}
	entry, err := audit.Append(ctx, tx, p.Actor(), b.entry("batch.confirm", b.Reason, details, now))
	if err != nil {
		return "", err
	}
	if why != "" {
		return "waiting", s.ask(ctx, tx, b, why)
	}
	return s.order(ctx, tx, b, entry, due)
}
