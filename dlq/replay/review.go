package replay

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/audit"
	"github.com/redrive-dlq/redrive/dlq/jobtype"
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
