package replay

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/rbac"
)

// batchRow is a batch as its review, confirmation and commands see it.
type batchRow struct {
	ID             int64
	Environment    string
	JobType        string
	Kind           string
	State          string
	Reason         string
	CreatedByID    int64
	Eligible       int
	PlanHash       string
	PlanRevision   int
	PlannedAt      *time.Time
	TargetKind     string
	Destination    string
	ReviewHash     string
	ReviewRevision int
	StartAfterS    int
	StartAt        *time.Time
	RatePerMinute  int
	Canary         int
	AcceptRepeat   bool
	ConfirmedBy    string
	ConfirmedByID  int64
	NeedsApproval  string
	ApproveUntil   *time.Time
	ApprovedBy     string
	ApprovedByID   int64
	DueAt          *time.Time
	StartedAt      *time.Time
	PauseKind      string
}

// readBatch reads a batch; lock is empty or the rest of the statement. Errors:
// NotFound.
func readBatch(ctx context.Context, db querier, id int64, lock string) (batchRow, error) {
	rows, err := db.Query(ctx, `
		SELECT id, environment, job_type, kind, state, reason, created_by_id, eligible, plan_hash, plan_revision, planned_at,
		       target_kind, destination, review_hash, review_revision, start_after_s, start_at, rate_per_minute, canary, accept_repeat,
		       confirmed_by, confirmed_by_id, needs_approval, approve_until, approved_by, approved_by_id, due_at, started_at, pause_kind
		FROM redrive.batches
		WHERE id = $1 `+lock, id)
	if err != nil {
		return batchRow{}, fmt.Errorf("replay: read batch: %w", err)
	}
	b, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[batchRow])
	if errors.Is(err, pgx.ErrNoRows) {
		return b, noBatch(id)
	}
	if err != nil {
		return b, fmt.Errorf("replay: read batch: %w", err)
	}
	return b, nil
}

func noBatch(id int64) error {
	return problem.New(problem.NotFound, "There is no batch %d that you may see.", id)
}

// seen reads a batch before any lock; one outside the principal's scope isn't
// there. Environment, type and kind never change.
func (s *Service) seen(ctx context.Context, p *rbac.Principal, id int64) (batchRow, error) {
	b, err := readBatch(ctx, s.Pool, id, "")
	if err != nil {
		return b, err
	}
	if !p.Can(rbac.Read, b.Environment, b.JobType) {
		return batchRow{}, noBatch(id)
	}
	return b, nil
}

// mayRun requires what confirming and steering a batch takes.
func (s *Service) mayRun(p *rbac.Principal, b batchRow) error {
	needs := []rbac.Permission{rbac.RunBatch}
	if t, ok := s.Types().Type(b.JobType); ok && t.MoneyRisk() {
		needs = append(needs, rbac.ReplayMoney)
	}
	return p.Require(b.Environment, b.JobType, needs...)
}

// phrase is what is typed to confirm the batch.
func (b batchRow) phrase() string { return Phrase(b.Eligible, b.JobType, b.Environment) }

// stateWords says where the batch stands, for a refusal.
func (b batchRow) stateWords() string {
	switch b.State {
	case "planning":
		return "is still being planned"
	case "planned":
		return "isn't confirmed yet"
	case "waiting":
		return "was confirmed by " + b.ConfirmedBy + " and waits for a second person"
	case "scheduled":
		return "was confirmed already and is scheduled"
	case "running":
		return "was confirmed already and is running"
	case "cancelling":
		return "is being cancelled"
	}
	return "is " + b.State // paused, done, cancelled
}
