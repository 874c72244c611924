package replay

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/redrive-dlq/redrive/dlq/ledger"
	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/rbac"
)

// MaxAhead bounds how far ahead a replay may be scheduled.
const MaxAhead = 30 * 24 * time.Hour

// Order is a confirmed wish to replay one job: what the person saw goes with
// it, so that what was confirmed is what runs.
type Order struct {
	DeadJobID      int64
	Generation     int       // as shown on the confirmation
	PayloadVersion int       // as shown on the confirmation
	Reason         string    // required
	At             time.Time // zero = now
}

// Ordered names what an order made.
type Ordered struct{ BatchID, ReplayID int64 }

// BlockedError is the Conflict of an order whose verdict isn't eligible.
type BlockedError struct{ Verdict Verdict }

func (e *BlockedError) Error() string { return "replay: blocked: " + e.Verdict.Code }

// One orders the replay of one job: batch, replay, audit entry and the job's
// status commit together. At most one of any number of parallel orders for a
// job wins; the others get a Conflict that says so. Errors: NotFound,
// Forbidden, Invalid, Conflict (wrapping *BlockedError when the verdict
// forbids it, *NeedsBatchError when jobs like this one take a batch).
func (s *Service) One(ctx context.Context, p *rbac.Principal, o Order) (Ordered, error) {
	if err := s.checkOrder(&o); err != nil {
		return Ordered{}, err
	}
	seen, err := readJob(ctx, s.Pool, o.DeadJobID, "")
	if err != nil {
		return Ordered{}, err
	}
	if !p.Can(rbac.Read, seen.Environment, seen.JobType) {
		return Ordered{}, problem.New(problem.NotFound, "There is no job %d.", o.DeadJobID)
	}
	t, _ := s.Types().Type(seen.JobType)
	if err := p.Require(seen.Environment, seen.JobType, Needs(t)); err != nil {
		return Ordered{}, err
	}
	if batch := needsBatch(seen.JobType, t); batch != nil {
		return Ordered{}, batch.problem()
	}
	var out Ordered
	err = pgx.BeginFunc(ctx, s.Pool, func(tx pgx.Tx) error {
		one := batchRow{Environment: seen.Environment, JobType: seen.JobType, Eligible: 1}
		if err := s.mayReleaseOne(ctx, tx, p, one, t); err != nil {
			return err
		}
		if err := ledger.GiveWay(ctx, tx); err != nil {
			return err
		}
		if err := ledger.Lock(ctx, tx, seen.key()); err != nil {
			return err
		}
		j, v, err := s.judgeOne(ctx, tx, p, o.DeadJobID, "FOR UPDATE OF d")
		if err != nil {
			return err
		}
		if j.Generation != o.Generation || j.PayloadVersion != o.PayloadVersion || j.key() != seen.key() {
			return problem.New(problem.Conflict, "The job changed since you looked at it. Nothing was replayed; reload the page and look again.")
		}
		if !v.OK() {
			return problem.Wrap(&BlockedError{v}, problem.Conflict, "Not replayed. %s", v.Detail)
		}
		out, err = s.write(ctx, tx, p, o, j.job, v)
		return err
	})
	if isUnique(err) {
		return Ordered{}, problem.Wrap(err, problem.Conflict, "Not replayed: another replay of this job or key is under way.")
	}
	if err != nil {
		return Ordered{}, ledger.Busy(err)
	}
	return out, nil
}

func (s *Service) checkOrder(o *Order) error {
	reason, err := reasonOf(o.Reason)
	if err != nil {
		return err
	}
	o.Reason = reason
	now := s.now()
	if o.At.IsZero() || o.At.Before(now) {
		o.At = now
	}
	if o.At.After(now.Add(MaxAhead)) {
		return problem.At(problem.Invalid, "at", "A replay can be scheduled at most 30 days ahead.")
	}
	return nil
}

// planHash names exactly what was confirmed: job, generation, payload version.
func planHash(j job) string {
	h := NewPlanHash()
	h.Add(j.ID, j.Generation, j.PayloadVersion, Eligible)
	return h.String()
}

// makeReady marks a pending replay as the head of its job, key and entity. A
// replay behind another of its entity stays pending: it is made ready when
// that one ends.
func makeReady(ctx context.Context, tx pgx.Tx, replayID int64) error {
	err := pgx.BeginFunc(ctx, tx, func(sp pgx.Tx) error {
		_, err := sp.Exec(ctx, `UPDATE redrive.replays SET state = 'ready' WHERE id = $1 AND state = 'pending'`, replayID)
		return err
	})
	var pg *pgconn.PgError
	if errors.As(err, &pg) && pg.Code == "23505" && pg.ConstraintName == "replays_one_per_entity" {
		return nil
	}
	if err != nil {
		return fmt.Errorf("replay: make ready: %w", err)
	}
	return nil
}

// isHeld says that another replay holds the job, key or entity: unique keys of a
// target's tables say nothing of that.
func isHeld(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == "23505" && pg.SchemaName == "redrive" && pg.TableName == "replays"
}

func isUnique(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == "23505"
}
