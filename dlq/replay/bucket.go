package replay

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/dlq/jobtype"
)

// bucket is the token bucket of a type in an environment, held by a round.
type bucket struct {
	Environment string
	JobType     string
	Limit       jobtype.Rate
	Tokens      float64
	At          time.Time     // the wall clock that limits go by: the database's
	Left        time.Time     // when the last replay of the round left, by the same clock; zero: none did
	Jumped      bool          // the wall clock isn't to be trusted this time
	ran         time.Duration // of the process, when At was read
	dirty       bool          // it has to be written even when nothing leaves
}

func (b *bucket) name() string { return b.Environment + "\x00" + b.JobType }

// takeBucket locks the bucket and refills it; held is false when another
// process is at it.
func (s *Service) takeBucket(ctx context.Context, tx pgx.Tx, environment, jobType string) (b *bucket, held bool, err error) {
	b = &bucket{Environment: environment, JobType: jobType, Limit: (&jobtype.Type{}).Limit()}
	if t, ok := s.Types().Type(jobType); ok {
		b.Limit = t.Limit()
	}
	var tokens *float64
	var refilled *time.Time
	err = tx.QueryRow(ctx, `
		SELECT tokens, refilled_at, clock_timestamp()
		FROM redrive.release_buckets
		WHERE environment = $1 AND job_type = $2
		FOR UPDATE SKIP LOCKED`, environment, jobType).Scan(&tokens, &refilled, &b.At)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("replay: lock bucket: %w", err)
	}
	if s.Now != nil {
		b.At = s.Now()
	}
	b.ran = s.ran()
	b.Jumped = s.looked().jumped(b.name(), b.At, b.ran)
	b.Tokens = b.refilled(tokens, refilled, b.Limit.PerMinute, b.Limit.Burst)
	b.dirty = refilled != nil && b.Jumped
	return b, true, nil
}

// refilled is a bucket of the given rate as of now; one never used is full.
func (b *bucket) refilled(tokens *float64, since *time.Time, perMinute, burst int) float64 {
	switch {
	case tokens == nil || since == nil:
		return float64(burst)
	case b.Jumped:
		return min(*tokens, float64(burst))
	}
	return refill(*tokens, b.At.Sub(*since), perMinute, burst)
}

// refilledSmall is a bucket that holds one second's rate: a tenant's, or that of
// a batch slower than its type. It is written only when something left through
// it, or the clock jumped.
func (b *bucket) refilledSmall(tokens *float64, since *time.Time, perMinute int) float64 {
	return b.refilled(tokens, since, perMinute, perSecond(perMinute))
}

// leaves is the moment at which replays leave, by the clock of the limits: it
// goes on as the process runs, so that no jump reaches into a round.
func (s *Service) leaves(b *bucket) time.Time {
	b.Left = b.At.Add(max(0, s.ran()-b.ran))
	return b.Left
}

// at is when the buckets of this round were last looked at.
func (b *bucket) at() time.Time {
	if b.Left.IsZero() {
		return b.At
	}
	return b.Left
}

// rest is what a bucket holds after so many left. What came in between the look
// and their leaving counts only as far as it would have fitted in before: else a
// slow round of a full bucket, and the next one, would pass the limit together.
func (b *bucket) rest(tokens float64, left, perMinute, burst int) float64 {
	return max(tokens, refill(tokens, b.at().Sub(b.At), perMinute, burst)) - float64(left)
}

// put queues the bucket's new state.
func (b *bucket) put(batch *pgx.Batch) {
	batch.Queue(`
		UPDATE redrive.release_buckets
		SET tokens = $3, refilled_at = $4
		WHERE environment = $1 AND job_type = $2`, b.Environment, b.JobType, b.Tokens, b.at())
}

// putSmall queues that nothing came into the type's small buckets before now: the
// clock jumped, and what it says to have passed counts for none of them.
func (b *bucket) putSmall(batch *pgx.Batch) {
	for _, table := range []string{"tenant_buckets", "runs"} {
		batch.Queue(`
			UPDATE redrive.`+table+`
			SET refilled_at = $3
			WHERE environment = $1 AND job_type = $2 AND refilled_at IS NOT NULL`, b.Environment, b.JobType, b.At)
	}
}

// perSecond is what a rate lets through in a second, at least one.
func perSecond(perMinute int) int { return max(1, perMinute/60) }
