package replay

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// linkWithin is how long after its outcome a replay's death is waited for.
const linkWithin = time.Hour

// category is what the breaker reads of a failure.
func (e End) category() string {
	if e.Failure != nil {
		return e.Failure.Category
	}
	return e.Category
}

// keepLate keeps a final outcome that came after the first one: it changes
// nothing and stays visible.
func (s *Service) keepLate(ctx context.Context, tx pgx.Tx, replayID int64, e End) error {
	if e.onlyUndelivered {
		return nil // our own sweep, not somebody's word
	}
	_, err := tx.Exec(ctx, `
		INSERT INTO redrive.late_outcomes (replay_id, at, outcome, code, detail, effect_id)
		SELECT id, $2, $3, $4, $5, $6
		FROM redrive.replays r
		WHERE id = $1 AND state = 'ended' AND released_at IS NOT NULL
		  AND (outcome, outcome_code, effect_id) IS DISTINCT FROM ($3::text, $4::text, $6::text)
		  AND NOT EXISTS (
			SELECT FROM redrive.late_outcomes l
			WHERE l.replay_id = r.id AND (l.outcome, l.code, l.effect_id) = ($3, $4, $6))`,
		replayID, s.now(), e.Outcome, e.Code, e.Detail, e.EffectID)
	if err != nil {
		return fmt.Errorf("replay: keep late outcome: %w", err)
	}
	return nil
}

// linkDeaths links failed replays with the deaths that their sources told of, before
// or after the outcome: the next generation of the same job.
func (s *Service) linkDeaths(ctx context.Context) error {
	_, err := s.Pool.Exec(ctx, `
		UPDATE redrive.replays r
		SET new_fingerprint = d.fingerprint, new_category = d.category, next_generation = d.generation
		FROM (SELECT u.id, x.generation, x.fingerprint, x.category
		      FROM (SELECT id, dead_job_id, generation
		            FROM redrive.replays
		            WHERE outcome = 'failed' AND next_generation = 0 AND outcome_at > $1
		            ORDER BY outcome_at DESC
		            LIMIT 1000
		            FOR UPDATE SKIP LOCKED) u
		      JOIN redrive.deaths x ON x.dead_job_id = u.dead_job_id AND x.generation = u.generation + 1) d
		WHERE r.id = d.id`, s.now().Add(-linkWithin))
	if err != nil {
		return fmt.Errorf("replay: link deaths: %w", err)
	}
	return nil
}
