package replay

import (
	"context"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5"
)

// recordDeath writes the attempt that a failed replay made: the job is open
// again, one generation further.
func (s *Service) recordDeath(ctx context.Context, tx pgx.Tx, it Item, f Failure) error {
	now := s.now()
	var generation, attempts int
	err := tx.QueryRow(ctx, `
		UPDATE redrive.dead_jobs
		SET generation = generation + 1, attempt_count = least(attempt_count, 2147483646) + 1, died_at = $3, died_at_note = '',
		    last_death_at = $3, last_death_attempt = least(attempt_count, 2147483646) + 1,
		    category = $4, category_by = 'redrive', error_class = left($5, 255), error_message = left($6, 500),
		    status_code = $7, fingerprint = $8, gave_up = '', fix_kind = '', fix_ref = '', reason_code = '', reason_text = '',
		    updated_at = $3
		WHERE id = $1 AND generation = $2
		RETURNING generation, attempt_count`,
		it.DeadJobID, it.Generation, now, f.Category, f.Class, f.Message, f.StatusCode, f.Fingerprint).Scan(&generation, &attempts)
	if err == pgx.ErrNoRows {
		return nil // a source told of this death first
	}
	if err != nil {
		return fmt.Errorf("replay: next generation: %w", err)
	}
	_, err = tx.Exec(ctx, `
		UPDATE redrive.replays
		SET new_fingerprint = $2, next_generation = $3
		WHERE id = $1`, it.ReplayID, f.Fingerprint, generation)
	if err != nil {
		return fmt.Errorf("replay: link death: %w", err)
	}
	_, err = tx.Exec(ctx, `
		INSERT INTO redrive.deaths (dead_job_id, generation, attempt, death_key, died_at, environment, job_type, category, fingerprint, template, error_class)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, left($11, 255))`,
		it.DeadJobID, generation, attempts, "replay:"+strconv.FormatInt(it.ReplayID, 10), now, it.Environment, it.JobType,
		f.Category, f.Fingerprint, f.Template, f.Class)
	if err != nil {
		return fmt.Errorf("replay: death: %w", err)
	}
	_, err = tx.Exec(ctx, `
		INSERT INTO redrive.attempts (dead_job_id, generation, seq, at, error_class, message, worker, duration_ms, status_code, replay_id)
		VALUES ($1, $2, 1, $3, $4, $5, 'redrive', $6, $7, $8)`,
		it.DeadJobID, generation, now, f.Class, f.Message, f.DurationMS, f.StatusCode, it.ReplayID)
	if err != nil {
		return fmt.Errorf("replay: attempt: %w", err)
	}
	_, err = tx.Exec(ctx, `
		INSERT INTO redrive.documents (dead_job_id, generation, headers_raw, extra_raw, sealing, headers, extra)
		SELECT dead_job_id, $2, headers_raw, extra_raw, sealing, headers, extra
		FROM redrive.documents
		WHERE dead_job_id = $1 AND generation = $2 - 1
		ON CONFLICT DO NOTHING`, it.DeadJobID, generation)
	if err != nil {
		return fmt.Errorf("replay: document: %w", err)
	}
	return nil
}
