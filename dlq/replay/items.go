package replay

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// querier is a pool or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// items reads replays with their batch; where is the rest of the statement
// from WHERE on, with r for replays and b for batches.
func (s *Service) items(ctx context.Context, db querier, where string, args pgx.NamedArgs) ([]Item, error) {
	rows, err := db.Query(ctx, `
		SELECT r.id, r.batch_id, r.dead_job_id, r.generation, r.payload_version, r.environment, r.source, r.job_id,
		       r.job_type, r.entity, r.key_scope, r.idempotency_key, r.target_kind, b.target, r.target_ref, r.released_at,
		       r.delivered_at IS NOT NULL, r.ledger_begins, r.proof
		FROM redrive.replays r
		JOIN redrive.batches b ON b.id = r.batch_id
		`+where, args)
	if err != nil {
		return nil, fmt.Errorf("replay: items: %w", err)
	}
	out, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (it Item, err error) {
		var target json.RawMessage
		var released *time.Time
		err = row.Scan(&it.ReplayID, &it.BatchID, &it.DeadJobID, &it.Generation, &it.PayloadVersion, &it.Environment, &it.Source, &it.JobID,
			&it.JobType, &it.Entity, &it.Key.Scope, &it.Key.Key, &it.TargetKind, &target, &it.TargetRef, &released,
			&it.Delivered, &it.ledgerBegins, &it.Proof)
		if err != nil {
			return it, err
		}
		it.Key.Environment = it.Environment
		if released != nil {
			it.ReleasedAt = *released
		}
		it.Target, err = decodeTarget(it.TargetKind, target)
		return it, err
	})
	if err != nil {
		return nil, fmt.Errorf("replay: items: %w", err)
	}
	return out, nil
}

// InFlight returns released replays of a target kind without an outcome, the
// oldest first, after the given replay id; at most limit.
func (s *Service) InFlight(ctx context.Context, kind string, after int64, limit int) ([]Item, error) {
	return s.items(ctx, s.Pool, `
		WHERE r.state = 'released' AND r.target_kind = @kind AND r.id > @after
		ORDER BY r.id
		LIMIT @limit`, pgx.NamedArgs{"kind": kind, "after": after, "limit": limit})
}
