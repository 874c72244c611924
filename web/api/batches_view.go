package api

import (
	"time"

	"github.com/redrive-dlq/redrive/dlq/board"
	"github.com/redrive-dlq/redrive/dlq/replay"
)

// batchView is one batch as the API tells it. Times are UTC; null: not yet.
type batchView struct {
	ID          int64     `json:"id"`
	Environment string    `json:"environment"`
	JobType     string    `json:"job_type"`
	Kind        string    `json:"kind"`
	State       string    `json:"state"`
	Reason      string    `json:"reason"`
	CreatedBy   string    `json:"created_by"`
	CreatedAt   time.Time `json:"created_at"`
	FailedOf    *int64    `json:"failed_of"` // the batch whose failed replays it plans again

	Filter       string         `json:"filter"`
	Selected     bool           `json:"selected"` // rows were selected one by one
	Cutoff       time.Time      `json:"cutoff"`
	Planned      int            `json:"planned"`
	Eligible     int            `json:"eligible"`
	Verdicts     map[string]int `json:"verdicts"`
	PlanHash     string         `json:"plan_hash"`
	PlanRevision int            `json:"plan_revision"`
	PlannedAt    *time.Time     `json:"planned_at"`
	Destination  string         `json:"destination"`

	ReviewHash    string     `json:"review_hash"`
	ReviewedBy    string     `json:"reviewed_by"`
	StartAfter    int        `json:"start_after_seconds"`
	StartAt       *time.Time `json:"start_at"`
	RatePerMinute int        `json:"rate_per_minute"`
	Canary        int        `json:"canary"`
	AcceptRepeat  bool       `json:"accept_repeat"`
	Phrase        string     `json:"phrase"` // to be typed exactly; empty until it is planned

	ConfirmedBy   string     `json:"confirmed_by"`
	ConfirmedAt   *time.Time `json:"confirmed_at"`
	NeedsApproval string     `json:"needs_approval"` // why a second person is needed
	NoSecond      bool       `json:"no_second_person"`
	ApproveUntil  *time.Time `json:"approve_until"`
	ApprovedBy    string     `json:"approved_by"`
	ApprovedAt    *time.Time `json:"approved_at"`

	DueAt      *time.Time     `json:"due_at"`
	StartedAt  *time.Time     `json:"started_at"`
	PauseKind  string         `json:"pause_kind"`
	PauseWhy   string         `json:"pause_why"`
	InCanary   bool           `json:"in_canary"`
	EndReason  string         `json:"end_reason"`
	FinishedAt *time.Time     `json:"finished_at"`
	Progress   map[string]int `json:"progress"` // how many replays stand where; adds up to planned
}

func viewBatch(b board.Batch) batchView {
	v := batchView{ID: b.ID, Environment: b.Environment, JobType: b.JobType, Kind: b.Kind, State: b.State, Reason: b.Reason,
		CreatedBy: b.CreatedBy, CreatedAt: b.CreatedAt.UTC(), FailedOf: b.ParentBatch,
		Filter: b.Filter, Selected: b.BySelection, Cutoff: b.Cutoff.UTC(), Planned: b.Planned, Eligible: b.Eligible, Verdicts: b.Verdicts,
		PlanHash: b.PlanHash, PlanRevision: b.PlanRevision, PlannedAt: utc(b.PlannedAt), Destination: b.Destination,
		ReviewHash: b.ReviewHash, ReviewedBy: b.ReviewedBy, StartAfter: b.StartAfterS, StartAt: utc(b.StartAt), RatePerMinute: b.RatePerMinute,
		Canary: b.Canary, AcceptRepeat: b.AcceptRepeat,
		ConfirmedBy: b.ConfirmedBy, ConfirmedAt: utc(b.ConfirmedAt), NeedsApproval: b.NeedsApproval, NoSecond: b.NoSecondPerson(), ApproveUntil: utc(b.ApproveUntil),
		ApprovedBy: b.ApprovedBy, ApprovedAt: utc(b.ApprovedAt),
		DueAt: utc(b.DueAt), StartedAt: utc(b.StartedAt), PauseKind: b.PauseKind, PauseWhy: b.PauseWhy,
		InCanary: b.Wave != nil && *b.Wave == 0, EndReason: b.EndReason, FinishedAt: utc(b.FinishedAt), Progress: b.Tallies}
	if b.PlanHash != "" {
		v.Phrase = replay.Phrase(b.Eligible, b.JobType, b.Environment)
	}
	return v
}
