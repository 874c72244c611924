package replay

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/audit"
	"github.com/redrive-dlq/redrive/dlq/jobtype"
	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/rbac"
)

const (
	// DefaultStartAfter is how long a confirmed batch waits unless a person
	// chooses otherwise: long enough to take it back.
	DefaultStartAfter = 5 * time.Minute
	// MaxCanary is the largest canary.
	MaxCanary = 1000
	// PlanFresh is how old a plan may be when it is confirmed.
	PlanFresh = time.Hour
)

// ReviewOrder is the first confirmation: how the batch shall run.
type ReviewOrder struct {
	Batch         int64
	PlanHash      string        // as shown; another one is a Conflict
	Reason        string        // required
	StartAfter    time.Duration // from the last confirmation; 0 = at once
	StartAt       time.Time     // zero: StartAfter counts
	RatePerMinute int           // 0 = the type's limit; above it Invalid
	Canary        int           // 0 = none
	AcceptRepeat  bool          // required for a type that isn't idempotent
}

// ReviewDefaults is what a review proposes for a type's batch; batch, hash and
// reason are the person's.
func ReviewDefaults(t *jobtype.Type, eligible int) ReviewOrder {
	return ReviewOrder{StartAfter: DefaultStartAfter, RatePerMinute: t.Limit().PerMinute, Canary: min(t.Canary(), eligible, MaxCanary)}
}

// Review stores the settings and returns the hash that a confirmation is bound
// to. It voids a confirmation that waits for approval: the batch is only
// planned again. Errors: NotFound, Forbidden, Conflict (another state, a plan
// that changed or is too old, nothing to replay, a type that can't be replayed
// any more), Invalid at reason, start_after_seconds, start_at,
// rate_per_minute, canary or accept_repeat.
func (s *Service) Review(ctx context.Context, p *rbac.Principal, o ReviewOrder) (reviewHash string, err error) {
	seen, err := s.seen(ctx, p, o.Batch)
	if err != nil {
		return "", err
	}
	if err := s.mayRun(p, seen); err != nil {
		return "", err
	}
	err = s.change(ctx, func(tx pgx.Tx) error {
		b, err := readBatch(ctx, tx, o.Batch, "FOR UPDATE")
		if err != nil {
			return err
		}
		t, err := s.checkReview(b, &o)
		if err != nil {
			return err
		}
		b.review(o, t)
		reviewHash = b.ReviewHash
		if err := s.writeReview(ctx, tx, p, b); err != nil {
			return err
		}
		details := b.details()
		if b.State == "waiting" {
			details["voids_confirmation_of"] = b.ConfirmedBy
		}
		_, err = audit.Append(ctx, tx, p.Actor(), b.entry("batch.review", b.Reason, details, s.now()))
		return err
	})
	if err != nil {
		return "", err
	}
	return reviewHash, nil
}

// checkReview checks the settings against batch and catalogue, and fills in
// what they leave to the type.
func (s *Service) checkReview(b batchRow, o *ReviewOrder) (*jobtype.Type, error) {
	if b.State != "planned" && b.State != "waiting" {
		return nil, problem.New(problem.Conflict, "Batch %d %s, so it can't be reviewed. Nothing was changed.", b.ID, b.stateWords())
	}
	if err := s.checkPlan(b, o.PlanHash); err != nil {
		return nil, err
	}
	t, err := s.runnable(b)
	if err != nil {
		return nil, err
	}
	if o.Reason, err = reasonOf(o.Reason); err != nil {
		return nil, err
	}
	return t, s.checkSettings(b, o, t)
}

// checkPlan refuses a plan that isn't the one shown, is too old or empty.
func (s *Service) checkPlan(b batchRow, shown string) error {
	switch {
	case b.PlanHash == "" || b.PlanHash != shown:
		return problem.New(problem.Conflict, "The plan of batch %d changed since you looked at it. Nothing was changed; open it and look again.", b.ID)
	case b.Eligible == 0:
		return problem.New(problem.Conflict, "Batch %d has nothing to replay: no job of it is eligible.", b.ID)
	case s.stale(b):
		return problem.New(problem.Conflict, "The plan of batch %d is more than an hour old. Nothing was changed; judge its jobs again, then review what is true now.", b.ID)
	}
	return nil
}

func (s *Service) stale(b batchRow) bool {
	return b.PlannedAt == nil || s.now().Sub(*b.PlannedAt) > PlanFresh
}

func (s *Service) checkSettings(b batchRow, o *ReviewOrder, t *jobtype.Type) error {
	limit, canary := t.Limit().PerMinute, min(b.Eligible, MaxCanary)
	switch now := s.now(); {
	case o.StartAfter < 0 || o.StartAfter > MaxAhead:
		return problem.At(problem.Invalid, "start_after_seconds", "A batch starts at most 30 days after its confirmation.")
	case !o.StartAt.IsZero() && !o.StartAt.After(now):
		return problem.At(problem.Invalid, "start_at", "This time is over. Choose one that is still to come, or now.")
	case o.StartAt.After(now.Add(MaxAhead)):
		return problem.At(problem.Invalid, "start_at", "A batch can be scheduled at most 30 days ahead.")
	case o.RatePerMinute < 0 || o.RatePerMinute > limit:
		return problem.At(problem.Invalid, "rate_per_minute", "Choose a rate of 1 to %s a minute: the limit of %s.", commas(limit), b.JobType)
	case o.Canary < 0 || o.Canary > canary:
		return problem.At(problem.Invalid, "canary", "Choose a canary of 0 to %s replays.", commas(canary))
	case !t.Idempotent() && !o.AcceptRepeat:
		return problem.At(problem.Invalid, "accept_repeat", "Nothing keeps %s from having its effect twice. Say that you accept this, or leave the batch.", b.JobType)
	}
	if o.RatePerMinute == 0 {
		o.RatePerMinute = limit
	}
	return nil
}

// writeReview stores the review; whoever confirmed the one before has to look
// again.
func (s *Service) writeReview(ctx context.Context, tx pgx.Tx, p *rbac.Principal, b batchRow) error {
	_, err := tx.Exec(ctx, `
		UPDATE redrive.batches
		SET state = 'planned', reason = @reason, review_hash = @hash, review_revision = @revision, reviewed_by = @by, reviewed_at = @now,
		    start_after_s = @after, start_at = @at, rate_per_minute = @rate, canary = @canary, accept_repeat = @accept,
		    confirmed_by = '', confirmed_by_id = 0, confirmed_at = NULL, needs_approval = '', approve_until = NULL
		WHERE id = @id`,
		pgx.NamedArgs{"id": b.ID, "reason": b.Reason, "hash": b.ReviewHash, "revision": b.ReviewRevision, "by": nameOf(p), "now": s.now(),
			"after": b.StartAfterS, "at": b.StartAt, "rate": b.RatePerMinute, "canary": b.Canary, "accept": b.AcceptRepeat})
	if err != nil {
		return fmt.Errorf("replay: write review: %w", err)
	}
	return nil
}

// entry is what the audit log says of an act on the batch.
func (b batchRow) entry(action, reason string, details map[string]any, at time.Time) audit.Entry {
	return audit.Entry{Action: action, Object: audit.Object{Kind: "batch", ID: strconv.FormatInt(b.ID, 10)}, Environment: b.Environment,
		JobType: b.JobType, Batch: b.ID, Reason: reason, Details: details, At: at}
}
