package replay

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/audit"
	"github.com/redrive-dlq/redrive/rbac"
)

// write persists the batch of one, its replay and the entry that ordered it.
func (s *Service) write(ctx context.Context, tx pgx.Tx, p *rbac.Principal, o Order, j job, v Verdict) (out Ordered, err error) {
	raw, err := encodeTarget(v.target)
	if err != nil {
		return out, fmt.Errorf("replay: encode target: %w", err)
	}
	state := "running"
	if o.At.After(s.now()) {
		state = "scheduled"
	}
	err = tx.QueryRow(ctx, `
		INSERT INTO redrive.batches
			(environment, job_type, kind, state, cutoff, reason, plan_hash, planned, eligible, due_at,
			 created_by, confirmed_by, confirmed_at, created_by_id, confirmed_by_id, target_kind, target, destination, activated_at)
		VALUES ($1, $2, 'single', $11, now(), $3, $4, 1, 1, $5, $6, $6, now(), $7, $7, $8, $9, $10, now())
		RETURNING id`, j.Environment, j.JobType, o.Reason, planHash(j), o.At, p.Email, p.UserID, kindOf(v.target), raw, v.target.Destination(), state).Scan(&out.BatchID)
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
