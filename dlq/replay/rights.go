package replay

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/rbac"
)

// querying is a transaction or a pool that rights are read from.
type querying interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// firstWhy says why the word of whoever confirmed the batch counts no more; empty
// when it does. A role that is taken away counts at once, also for what was
// asked for before.
func (s *Service) firstWhy(ctx context.Context, db querying, b batchRow) (string, error) {
	if b.ConfirmedByID == 0 { // confirmed before people were kept with batches
		return "", nil
	}
	p, err := rbac.PersonNow(ctx, db, b.ConfirmedByID)
	if err != nil {
		return "", err
	}
	if p == nil || s.mayRun(p, b) != nil {
		return b.ConfirmedBy + ", who confirmed it, may not run it any more", nil
	}
	return "", nil
}

// agreedWhy is firstWhy for all who agreed to the batch.
func (s *Service) agreedWhy(ctx context.Context, db querying, b batchRow) (string, error) {
	why, err := s.firstWhy(ctx, db, b)
	if err != nil || why != "" || b.ApprovedByID == 0 {
		return why, err
	}
	p, err := rbac.PersonNow(ctx, db, b.ApprovedByID)
	if err != nil {
		return "", err
	}
	if !p.Can(rbac.ApproveBatch, b.Environment, b.JobType) {
		return b.ApprovedBy + ", who approved it, may not approve it any more", nil
	}
	return "", nil
}

// startWhy is agreedWhy for a batch whose time has come. A single replay is its
// person's own, and small.
func (s *Service) startWhy(ctx context.Context, tx pgx.Tx, u *run) (string, error) {
	if u.Kind != "batch" {
		return "", nil
	}
	b, err := readBatch(ctx, tx, u.BatchID, "")
	if err != nil {
		return "", err
	}
	return s.agreedWhy(ctx, tx, b)
}

// mayTakeOver refuses that one of two who agreed to a batch lets it go on alone,
// after the other lost the right to.
func (b batchRow) mayTakeOver(p *rbac.Principal) error {
	if b.PauseKind != "rights" || b.ApprovedByID == 0 || (p.UserID != b.ConfirmedByID && p.UserID != b.ApprovedByID) {
		return nil
	}
	return problem.New(problem.Forbidden, "You are one of the two who agreed to batch %d, so somebody else has to resume it.", b.ID)
}

// orderedWhy says why the catalogue of now forbids what was ordered; empty when
// it doesn't.
func (s *Service) orderedWhy(b batchRow) string {
	if why := s.catalogueWhy(b); why != "" {
		return why
	}
	t, ok := s.Types().Type(b.JobType)
	switch {
	case !ok || b.ApprovedBy != "":
		return ""
	case t.MoneyRisk():
		return "a replay of " + b.JobType + " may move money now, and no second person agreed to it"
	case b.NeedsApproval != "" && !s.Types().CoolsOff(b.Environment, t):
		return "in " + b.Environment + " a wait no longer stands in for a second person, and none agreed to it"
	case b.NeedsApproval == "" && b.Eligible > t.ApprovalAbove():
		return fmt.Sprintf("more than %s replays of %s take a second person now, and none agreed to these %s", commas(t.ApprovalAbove()), b.JobType, commas(b.Eligible))
	}
	return ""
}
