package replay

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/redrive-dlq/redrive/audit"
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
		if err := ledger.GiveWay(ctx, tx); err != nil {
			return err
		}
		one := batchRow{Environment: seen.Environment, JobType: seen.JobType, Eligible: 1}
		if err := s.mayReleaseOne(ctx, tx, p, one, t); err != nil {
			return err
		}
		if err := ledger.Lock(ctx, tx, seen.key()); err != nil {
			return err
		}
		j, err := readJob(ctx, tx, o.DeadJobID, "FOR UPDATE")
		if err != nil {
			return err
		}
		if j.Generation != o.Generation || j.PayloadVersion != o.PayloadVersion || j.key() != seen.key() {
			return problem.New(problem.Conflict, "The job changed since you looked at it. Nothing was replayed; reload the page and look again.")
		}
		v, err := s.judge(ctx, tx, p, j)
		if err != nil {
			return err
		}
		if !v.OK() {
			return problem.Wrap(&BlockedError{v}, problem.Conflict, "Not replayed. %s", v.Detail)
		}
		out, err = s.write(ctx, tx, p, o, j, v)
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

// write persists the batch of one, its replay and the entry that ordered it.
func (s *Service) write(ctx context.Context, tx pgx.Tx, p *rbac.Principal, o Order, j job, v Verdict) (out Ordered, err error) {
	raw, err := encodeTarget(v.target)
	if err != nil {
		return out, fmt.Errorf("replay: encode target: %w", err)
	}
	err = tx.QueryRow(ctx, `
		INSERT INTO redrive.batches
			(environment, job_type, kind, state, cutoff, reason, plan_hash, planned, eligible, due_at,
			 created_by, confirmed_by, confirmed_at, created_by_id, confirmed_by_id, target_kind, target, destination, activated_at)
		VALUES ($1, $2, 'single', 'running', now(), $3, $4, 1, 1, $5, $6, $6, now(), $7, $7, $8, $9, $10, now())
		RETURNING id`, j.Environment, j.JobType, o.Reason, planHash(j), o.At, p.Email, p.UserID, kindOf(v.target), raw, v.target.Destination()).Scan(&out.BatchID)
	if err != nil {
		return out, fmt.Errorf("replay: write batch: %w", err)
	}
	err = tx.QueryRow(ctx, `
		INSERT INTO redrive.replays
			(batch_id, dead_job_id, generation, payload_version, environment, source, job_id, job_type, tenant, entity,
			 key_scope, idempotency_key, target_kind, destination, state, due_at, order_at, fingerprint)
		SELECT $1, id, generation, payload_version, environment, source, job_id, job_type, tenant, entity,
		       key_scope, idempotency_key, $3, $4, 'pending', $5, coalesce(enqueued_at, first_failed_at, died_at), fingerprint
		FROM redrive.dead_jobs
		WHERE id = $2
		RETURNING id`, out.BatchID, j.ID, kindOf(v.target), v.target.Destination(), o.At).Scan(&out.ReplayID)
	if err != nil {
		return out, fmt.Errorf("replay: write replay: %w", err)
	}
	entry, err := audit.Append(ctx, tx, p.Actor(), audit.Entry{
		Action: "replay.order", Object: audit.Object{Kind: "replay", ID: strconv.FormatInt(out.ReplayID, 10)},
		Environment: j.Environment, JobType: j.JobType, DeadJob: j.ID, Batch: out.BatchID, Reason: o.Reason,
		Details: map[string]any{"generation": j.Generation, "payload_version": j.PayloadVersion, "due_at": o.At.UTC().Format(time.RFC3339),
			"source": j.Source, "job_id": j.JobID, "plan_hash": planHash(j), "target": v.target.Destination()},
	})
	if err != nil {
		return out, err
	}
	if _, err := tx.Exec(ctx, `UPDATE redrive.batches SET order_entry = $2 WHERE id = $1`, out.BatchID, entry); err != nil {
		return out, fmt.Errorf("replay: bind entry: %w", err)
	}
	if err := ensureBucket(ctx, tx, j.Environment, j.JobType); err != nil {
		return out, err
	}
	if err := startRun(ctx, tx, out.BatchID); err != nil {
		return out, err
	}
	if _, err := tx.Exec(ctx, `
		UPDATE redrive.dead_jobs SET status = 'replaying', updated_at = now() WHERE id = $1`, j.ID); err != nil {
		return out, fmt.Errorf("replay: mark job: %w", err)
	}
	if o.At.After(s.now()) {
		return out, nil // until it is due it stands in nobody's way
	}
	return out, makeReady(ctx, tx, out.ReplayID)
}

// planHash names exactly what was confirmed: job, generation, payload version.
func planHash(j job) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "redrive plan v1\n%d %d %d %s\n", j.ID, j.Generation, j.PayloadVersion, Eligible))
	return hex.EncodeToString(sum[:])
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

func isUnique(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == "23505"
}
