package replay

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/rbac"
)

// recordProof writes that the type is proven; with a why it isn't, and what was
// said before of it there holds no longer.
func (s *Service) recordProof(ctx context.Context, p *rbac.Principal, proof Proof, why string) error {
	j := job{ID: proof.DeadJobID, Environment: proof.Environment}
	details := map[string]any{"first": proof.First.ReplayID, "first_outcome": proof.First.Outcome,
		"second": proof.Second.ReplayID, "second_outcome": proof.Second.Outcome, "effect_id": proof.EffectID}
	err := pgx.BeginFunc(ctx, s.Pool, func(tx pgx.Tx) error {
		if why != "" {
			_, err := tx.Exec(ctx, `DELETE FROM redrive.type_proofs WHERE job_type = $1 AND environment = $2`, proof.JobType, proof.Environment)
			if err != nil {
				return err
			}
			return s.auditProof(ctx, tx, p, "type.not_proven", j, proof.JobType, 0, details)
		}
		_, err := tx.Exec(ctx, `
			INSERT INTO redrive.type_proofs (job_type, environment, proven_at, proven_by, dead_job_id, replays, catalogue_version)
			VALUES ($1, $2, $3, $4, $5, $6, (SELECT coalesce(max(id), 0) FROM redrive.catalogue_versions))
			ON CONFLICT (job_type, environment) DO UPDATE
			SET proven_at = excluded.proven_at, proven_by = excluded.proven_by, dead_job_id = excluded.dead_job_id,
			    replays = excluded.replays, catalogue_version = excluded.catalogue_version`,
			proof.JobType, proof.Environment, s.now(), p.Actor().Name, proof.DeadJobID, []int64{proof.First.ReplayID, proof.Second.ReplayID})
		if err != nil {
			return err
		}
		return s.auditProof(ctx, tx, p, "type.proven", j, proof.JobType, 0, details)
	})
	if err != nil {
		return fmt.Errorf("replay: record proof: %w", err)
	}
	if why != "" {
		return problem.New(problem.Conflict, "Not proven: %s.", why)
	}
	return nil
}
