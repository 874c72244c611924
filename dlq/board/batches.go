package board

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/dlq"
	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/rbac"
)

// batchCursor marks the cursors of the list of batches, newest first.
const batchCursor = 'b'

// Batch is a set of replays of one environment and type, as its page shows it.
// Times that are nil haven't come; texts are redacted.
type Batch struct {
	ID          int64
	Environment string
	JobType     string
	Kind        string // single or batch
	State       string // planning, planned, waiting, scheduled, running, paused, cancelling, done, cancelled
	Reason      string
	CreatedBy   string
	CreatedByID int64
	CreatedAt   time.Time
	ParentBatch *int64 // whose failed replays it plans again

	// The plan.
	Filter       string // canonical text; empty with selected rows
	BySelection  bool   // rows were selected by hand
	Cutoff       time.Time
	Planned      int // members, frozen so far while planning
	Eligible     int
	Verdicts     map[string]int // of the completed plan
	PlanHash     string
	PlanRevision int
	PlannedAt    *time.Time
	PlanProblem  string
	TargetKind   string // river, http; empty: none
	Destination  string
	Tenants      int    // of its eligible jobs
	OlderLeftOut int    // entities of which an older open job stays behind
	AllowOld     string // why jobs older than their type allows are taken along; empty: they aren't

	// The review; ReviewHash is empty until there is one.
	ReviewHash     string
	ReviewRevision int
	ReviewedBy     string
	ReviewedAt     *time.Time
	StartAfterS    int // seconds from the last confirmation, unless StartAt
	StartAt        *time.Time
	RatePerMinute  int // 0: the type's limit
	Canary         int // 0: none
	AcceptRepeat   bool

	// Confirmation and approval.
	ConfirmedBy   string
	ConfirmedByID int64
	ConfirmedAt   *time.Time
	NeedsApproval string // why a second person is asked; empty: not
	ApproveUntil  *time.Time
	ApprovedBy    string
	ApprovedAt    *time.Time

	// The run.
	DueAt          *time.Time // nil: not ordered, or at once
	StartedAt      *time.Time
	ActivatedAt    *time.Time
	PauseKind      string // person, failures (stopped by itself), catalogue, rights
	PauseWhy       string
	PausedBy       string
	PausedAt       *time.Time
	Wave           *int // 0: the canary is out; nil: not under way
	CanaryPassedAt *time.Time
	CancelledBy    string
	EndReason      string
	FinishedAt     *time.Time

	// Tallies say how many replays stand where, exactly; they add up to Planned:
	// plan.VERDICT for what hasn't started or is left out, pending, ready,
	// released, or the outcome.
	Tallies map[string]int
	Outcome string // of a single replay; empty: not ended, or more than one
}

// Ended is how many replays have an outcome.
func (b Batch) Ended() int {
	n := 0
	for _, o := range Outcomes {
		n += b.Tallies[o]
	}
	return n
}

// NoSecondPerson says whether a second person was needed and a wait stood in for
// that person.
func (b Batch) NoSecondPerson() bool {
	return b.NeedsApproval != "" && b.ApprovedBy == "" && b.DueAt != nil
}

// Failed is how many replays failed.
func (b Batch) Failed() int { return b.Tallies["failed"] }

// StoppedItself reports whether too many failures paused it. Letting it go on is
// as grave as starting it.
func (b Batch) StoppedItself() bool { return b.State == "paused" && b.PauseKind == "failures" }

// Outcomes are the ways a replay ends, in the order people read them.
var Outcomes = []string{"succeeded", "already_done", "failed", "skipped", "unconfirmed", "cancelled"}

// BatchPage is one page of batches.
type BatchPage struct {
	Rows       []Batch
	Next, Prev string // cursors; empty: there is none
}

// batchSQL reads batches with how far they are: from counters, however many
// replays they have.
const batchSQL = `
	SELECT b.id, b.environment, b.job_type, b.kind, b.state, b.reason, b.created_by, b.created_by_id, b.created_at, b.parent_batch,
	       b.filter, b.selected IS NOT NULL AS by_selection, b.cutoff, b.planned, b.eligible, b.verdicts, b.plan_hash, b.plan_revision,
	       b.planned_at, b.plan_problem, b.target_kind, b.destination, b.tenants, b.older_left_out, b.allow_old,
	       b.review_hash, b.review_revision, b.reviewed_by, b.reviewed_at, b.start_after_s, b.start_at, b.rate_per_minute, b.canary, b.accept_repeat,
	       b.confirmed_by, b.confirmed_by_id, b.confirmed_at, b.needs_approval, b.approve_until, b.approved_by, b.approved_at,
	       b.due_at, b.started_at, b.activated_at, b.pause_kind, b.pause_why, b.paused_by, b.paused_at, u.wave, b.canary_passed_at,
	       b.cancelled_by, b.end_reason, b.finished_at, t.tallies,
	       CASE WHEN b.kind = 'single' THEN coalesce((SELECT max(i.outcome) FROM redrive.replays i WHERE i.batch_id = b.id), '') ELSE '' END AS outcome
	FROM redrive.batches b
	LEFT JOIN redrive.runs u ON u.batch_id = b.id
	CROSS JOIN LATERAL (
		SELECT coalesce(jsonb_object_agg(i.tally, i.n), '{}') AS tallies
		FROM redrive.batch_tallies i
		WHERE i.batch_id = b.id) t
	WHERE `

// BatchOf reads one batch. Errors: NotFound, also outside the scope.
func BatchOf(ctx context.Context, db dlq.DB, p *rbac.Principal, id int64) (Batch, error) {
	where, args, err := scoped(p, "b", "", pgx.NamedArgs{"id": id})
	if err != nil {
		return Batch{}, err
	}
	found, err := collect[Batch](ctx, db, "batch", batchSQL+where+`
		  AND b.id = @id`, args)
	if err != nil {
		return Batch{}, err
	}
	if len(found) == 0 {
		return Batch{}, problem.New(problem.NotFound, "There is no batch %d that you may see.", id)
	}
	return found[0], nil
}
