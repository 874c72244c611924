package replay

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/audit"
	"github.com/redrive-dlq/redrive/dlq/jobtype"
	"github.com/redrive-dlq/redrive/dlq/ledger"
	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/rbac"
)

// proofRun orders one of a proof's replays and waits for its outcome.
func (s *Service) proofRun(ctx context.Context, p *rbac.Principal, t *jobtype.Type, seen job, second bool) (ProofRun, error) {
	ordered, err := s.orderProof(ctx, p, t, seen, second)
	if isUnique(err) {
		err = problem.Wrap(err, problem.Conflict, "Not replayed: another replay of this job or key is under way.")
	}
	if err != nil {
		return ProofRun{}, ledger.Busy(err)
	}
	return s.awaitProof(ctx, ordered.ReplayID)
}

// orderProof orders a run through the same door as a single replay. The second
// is marked: its own effect, which is done, doesn't stand in its way.
func (s *Service) orderProof(ctx context.Context, p *rbac.Principal, t *jobtype.Type, seen job, second bool) (out Ordered, err error) {
	err = pgx.BeginFunc(ctx, s.Pool, func(tx pgx.Tx) error {
		if err := ledger.GiveWay(ctx, tx); err != nil {
			return err
		}
		if err := ledger.Lock(ctx, tx, seen.key()); err != nil {
			return err
		}
		// The administrator's own right: it isn't asked for the right to replay.
		f, v, err := s.judgeOne(ctx, tx, nil, seen.ID, "FOR UPDATE OF d")
		if err != nil {
			return err
		}
		if second {
			v = proofVerdict(f, t)
		}
		if !v.OK() {
			return problem.Wrap(&BlockedError{v}, problem.Conflict, "Not proven: job %d can't be replayed. %s", seen.ID, v.Detail)
		}
		o := Order{DeadJobID: f.ID, Generation: f.Generation, PayloadVersion: f.PayloadVersion, At: s.now(),
			Reason: fmt.Sprintf("first run of the proof of %s", t.Name)}
		if second {
			o.Reason = fmt.Sprintf("second run of the proof of %s: forced, although its key is done", t.Name)
		}
		if out, err = s.write(ctx, tx, p, o, f.job, v); err != nil || !second {
			return err
		}
		if _, err := tx.Exec(ctx, `UPDATE redrive.replays SET proof = true WHERE id = $1`, out.ReplayID); err != nil {
			return fmt.Errorf("replay: mark proof: %w", err)
		}
		return s.auditProof(ctx, tx, p, "type.prove", f.job, t.Name, out.BatchID, map[string]any{"replay": out.ReplayID})
	})
	return out, err
}

// proofVerdict: the job recovered by the run before, and nothing else changed.
func proofVerdict(f facts, t *jobtype.Type) Verdict {
	if f.Status != "recovered" || f.LedgerState != "done" {
		return Verdict{Code: NotOpen, Detail: "It changed after the first run."}
	}
	target, ok := t.Target(f.Environment)
	if !ok {
		return Verdict{Code: NotReplayable, Detail: "Its type has no target there any more."}
	}
	return Verdict{Code: Eligible, target: target}
}

// forProof is what a proof's second run is judged by: everything but that its
// own effect is done already.
func (f facts) forProof() facts {
	f.LedgerState, f.Effect, f.TwinID, f.TwinDone = "", "none", 0, false
	return f
}

// awaitProof waits until the replay has ended.
func (s *Service) awaitProof(ctx context.Context, replayID int64) (ProofRun, error) {
	r := ProofRun{ReplayID: replayID}
	tick := time.NewTicker(proofLook)
	defer tick.Stop()
	for {
		err := s.Pool.QueryRow(ctx, `
			SELECT outcome, outcome_code, outcome_detail
			FROM redrive.replays
			WHERE id = $1 AND state = 'ended'`, replayID).Scan(&r.Outcome, &r.Code, &r.Detail)
		if err == nil {
			return r, nil
		}
		if !errors.Is(err, pgx.ErrNoRows) && ctx.Err() == nil {
			return r, fmt.Errorf("replay: outcome of proof: %w", err)
		}
		select {
		case <-ctx.Done():
			return r, problem.Wrap(ctx.Err(), problem.Conflict, "Not proven: replay %d has no outcome yet. It goes on by itself; look at its job.", replayID)
		case <-tick.C:
		}
	}
}

func (s *Service) auditProof(ctx context.Context, tx pgx.Tx, p *rbac.Principal, action string, j job, jobType string, batch int64, details map[string]any) error {
	_, err := audit.Append(ctx, tx, p.Actor(), audit.Entry{Action: action, Object: audit.Object{Kind: "type", ID: jobType},
		Environment: j.Environment, JobType: jobType, DeadJob: j.ID, Batch: batch, Details: details, At: s.now()})
	return err
}
