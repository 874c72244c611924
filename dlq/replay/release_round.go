package replay

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/dlq/ledger"
)

// releaseChunk is how many replays leave in one short transaction at most.
const releaseChunk = 200

// round is one transaction of releases of a type.
type round struct {
	how     care
	bucket  *bucket
	dest    *destination
	tenants *tenants
	runs    []*run
	claimed int
	mixed   bool // some go to another destination, and have their turn later
	dry     bool // the bucket had no more tokens
	left    []*claimed
}

// releaseBucket is a round of a type; full says that there may be more. One that
// failed is done again with more care; where others' keys and entities stood in
// the way, those after it look first.
func (s *Service) releaseBucket(ctx context.Context, environment, jobType string) (released int, full bool, soon time.Duration, err error) {
	name := environment + "\x00" + jobType
	how := s.looked().care(name)
	r, err := s.tryRound(ctx, environment, jobType, how)
	if err != nil && how == quick && isHeld(err) {
		s.looked().beware(name)
		how = looking
		r, err = s.tryRound(ctx, environment, jobType, how)
	}
	if err != nil && ctx.Err() == nil {
		r, err = s.tryRound(ctx, environment, jobType, single)
	}
	if err != nil || r == nil {
		return 0, false, 0, err
	}
	more := r.claimed >= releaseChunk || (len(r.runs) >= runsARound && len(r.left) > 0)
	return len(r.left), more, r.soon(), nil
}

// soon is when the bucket may have filled up, where that is what keeps more from
// leaving: a small one is looked at more often, and one of a single token when it
// is there, or its rate would never be used.
func (r *round) soon() time.Duration {
	if !r.dry {
		return 0
	}
	l, tokens := r.bucket.Limit, r.bucket.Tokens
	in := func(tokens float64) time.Duration {
		return time.Duration(tokens / float64(l.PerMinute) * float64(time.Minute))
	}
	pause := max(soonest, min(releaseEvery, in(float64(l.Burst))/2))
	if l.Burst == 1 && tokens < 1 {
		pause = min(pause, in(1-tokens)+time.Millisecond)
	}
	return pause
}

// tryRound is one short transaction. Locks come first, bucket then destination,
// each in a statement of its own: locking and counting in one would count with a
// snapshot older than the lock.
func (s *Service) tryRound(ctx context.Context, environment, jobType string, how care) (r *round, err error) {
	// A target's row may be held by a worker who then asks for our key.
	err = pgx.BeginTxFunc(ctx, s.Pool, pgx.TxOptions{BeginQuery: ledger.BeginGivingWay}, func(tx pgx.Tx) (err error) {
		r, err = s.round(ctx, tx, environment, jobType, how)
		if err != nil || r == nil {
			return err
		}
		return r.write(ctx, tx)
	})
	if err == nil && r != nil {
		s.looked().note(r.bucket)
	}
	return r, err
}

func (s *Service) round(ctx context.Context, tx pgx.Tx, environment, jobType string, how care) (*round, error) {
	b, held, err := s.takeBucket(ctx, tx, environment, jobType)
	if err != nil || !held {
		return nil, err
	}
	r := &round{how: how, bucket: b, tenants: newTenants(b)}
	all, err := s.readRuns(ctx, tx, b)
	if err != nil {
		return nil, err
	}
	for _, u := range all {
		if err := s.enter(ctx, tx, r, u); err != nil {
			return nil, err
		}
	}
	if len(r.runs) == 0 {
		return r, nil
	}
	// Batches of one type go to one destination, except while the catalogue's
	// change reaches them; the others' turn comes.
	for _, u := range r.runs {
		if u.Destination != r.runs[0].Destination || u.TargetKind != r.runs[0].TargetKind {
			u.closed, u.elsewhere, r.mixed = true, true, true
		}
	}
	n, err := s.budget(ctx, tx, r, r.runs[0])
	if err != nil || n < 1 {
		return r, err
	}
	return r, s.leave(ctx, tx, r, n)
}

// enter makes a batch part of the round, unless it stops, or may not run any
// more.
func (s *Service) enter(ctx context.Context, tx pgx.Tx, r *round, u *run) error {
	if u.Kind == "batch" {
		if why := s.orderedWhy(u.batch(r.bucket)); why != "" {
			return s.pauseRun(ctx, tx, r.bucket, u, "catalogue", why, map[string]any{})
		}
	}
	if u.State == "scheduled" {
		if why, err := s.startWhy(ctx, tx, u); err != nil {
			return err
		} else if why != "" {
			return s.pauseRun(ctx, tx, r.bucket, u, "rights", why, map[string]any{})
		}
		if err := s.begin(ctx, tx, r.bucket, u); err != nil {
			return err
		}
	}
	if err := s.gate(ctx, tx, r.bucket, u); err != nil || u.closed {
		return err
	}
	r.runs = append(r.runs, u)
	return nil
}

// budget is how many may leave now: by rate, holds, breaker, concurrency and
// what isn't delivered yet.
func (s *Service) budget(ctx context.Context, tx pgx.Tx, r *round, u *run) (int, error) {
	b := r.bucket
	hold, err := HeldBy(ctx, tx, b.Environment, b.JobType, u.Destination)
	if err != nil || hold != nil {
		return 0, err
	}
	d, held, err := s.takeDestination(ctx, tx, b.Environment, u.Destination)
	if err != nil || !held {
		return 0, err
	}
	r.dest = d
	if err := s.watch(ctx, tx, d, b.At); err != nil {
		return 0, err
	}
	n := min(releaseChunk, int(math.Floor(b.Tokens)))
	r.dry = n < releaseChunk
	if n < 1 {
		return 0, nil
	}
	room, err := s.room(ctx, tx, d, b.At, concurrencyOf(u.target, s.Types(), b.Environment, b.JobType), perSecond(b.Limit.PerMinute))
	return min(n, room), err
}

// leave lets up to n replays of the round's batches leave.
func (s *Service) leave(ctx context.Context, tx pgx.Tx, r *round, n int) error {
	items, err := s.claim(ctx, tx, r, n)
	r.claimed, r.dry = len(items), r.dry && len(items) > 0
	if err != nil || len(items) == 0 {
		return err
	}
	may, err := s.judgeClaimed(ctx, tx, items, r.how)
	if err != nil {
		return err
	}
	if r.left, err = s.send(ctx, tx, may, r.how); err != nil {
		return err
	}
	stayed := map[int64]*claimed{}
	for _, c := range items {
		stayed[c.ReplayID] = c
	}
	undelivered := 0
	for _, c := range r.left {
		delete(stayed, c.ReplayID)
		c.run.left++
		if !c.Delivered {
			undelivered++
		}
	}
	for _, c := range stayed {
		r.tenants.give(c.Tenant)
	}
	r.bucket.Tokens = r.bucket.rest(r.bucket.Tokens, len(r.left), r.bucket.Limit.PerMinute, r.bucket.Limit.Burst)
	r.dest.left(len(r.left), undelivered)
	return nil
}

// claim holds up to n replays: singles first, since a person waits for each.
func (s *Service) claim(ctx context.Context, tx pgx.Tx, r *round, n int) ([]*claimed, error) {
	singles := map[int64]*run{}
	for _, u := range r.runs {
		if u.Kind == "single" && !u.closed {
			singles[u.BatchID] = u
		}
	}
	items, err := s.claimSingles(ctx, tx, r.tenants, singles, n)
	if err != nil {
		return nil, err
	}
	for _, u := range r.runs {
		want := min(n-len(items), int(math.Floor(u.tokens)))
		if u.Kind == "single" || u.closed || want < 1 {
			continue
		}
		more, err := s.claimRun(ctx, tx, r.tenants, u, want)
		if err != nil {
			return nil, err
		}
		items = append(items, more...)
	}
	return items, nil
}

// write writes all buckets in one go. A round in which nothing left writes
// nothing: what came in is known from the last refill.
func (r *round) write(ctx context.Context, tx pgx.Tx) error {
	var batch pgx.Batch
	if r.bucket.dirty {
		r.bucket.putSmall(&batch)
	}
	if len(r.left) > 0 || r.bucket.dirty {
		r.bucket.put(&batch)
	}
	for _, u := range r.runs {
		if u.left > 0 || u.served != u.TenantCursor || len(r.runs) >= runsARound || (r.mixed && !u.elsewhere) {
			u.put(&batch, r.bucket)
		}
	}
	r.tenants.put(&batch)
	if r.dest != nil && r.dest.changed {
		r.dest.put(&batch)
	}
	if batch.Len() == 0 {
		return nil
	}
	if err := tx.SendBatch(ctx, &batch).Close(); err != nil {
		return fmt.Errorf("replay: write buckets: %w", err)
	}
	return nil
}
