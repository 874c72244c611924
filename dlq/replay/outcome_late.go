package replay

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// maxLate is how many later outcomes of one replay are kept.
	maxLate = 20
	// linkWithin is how long after its outcome a replay's death is waited for.
	linkWithin = time.Hour
	linkChunk  = 1000 // failed replays that one step of a sweep looks at
	linkSteps  = 20   // steps of one sweep
)

// category is what the breaker reads of a failure.
func (e End) category() string {
	if e.Failure != nil {
		return e.Failure.Category
	}
	return e.Category
}

// keepLate keeps a final outcome that came after the first one: it changes
// nothing and stays visible. The same word again is nothing new.
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
			WHERE l.replay_id = r.id AND (l.outcome, l.code, l.effect_id) = ($3, $4, $6))
		  AND (SELECT count(*) FROM redrive.late_outcomes l WHERE l.replay_id = r.id) < $7`,
		replayID, s.now(), e.Outcome, e.Code, e.Detail, e.EffectID, maxLate)
	if err != nil {
		return fmt.Errorf("replay: keep late outcome: %w", err)
	}
	return nil
}

// linkDeaths links failed replays with the deaths that their sources told of, before
// or after the outcome: the next generation of the same job. Readers find what
// isn't linked yet by themselves.
func (s *Service) linkDeaths(ctx context.Context) error {
	after, id := s.now().Add(-linkWithin), int64(0)
	for range linkSteps {
		var n int
		var err error
		if after, id, n, err = s.linkStep(ctx, after, id); err != nil || n < linkChunk {
			return err
		}
	}
	return nil
}

// linkStep looks at the next failed replays; it returns the last one and how
// many it saw.
func (s *Service) linkStep(ctx context.Context, after time.Time, id int64) (lastAt time.Time, last int64, seen int, err error) {
	err = s.Pool.QueryRow(ctx, `
		WITH u AS MATERIALIZED (
			SELECT id, dead_job_id, generation, outcome_at
			FROM redrive.replays
			WHERE outcome = 'failed' AND next_generation = 0 AND (outcome_at, id) > ($1, $2)
			ORDER BY outcome_at, id
			LIMIT $3),
		told AS (
			SELECT u.id, x.generation, x.fingerprint, x.category
			FROM u
			CROSS JOIN LATERAL (
				SELECT generation, fingerprint, category
				FROM redrive.deaths
				WHERE dead_job_id = u.dead_job_id AND generation = u.generation + 1
				LIMIT 1) x),
		held AS (
			SELECT r.id
			FROM redrive.replays r
			JOIN told USING (id)
			WHERE r.next_generation = 0
			FOR UPDATE OF r SKIP LOCKED),
		linked AS (
			UPDATE redrive.replays r
			SET new_fingerprint = told.fingerprint, new_category = told.category, next_generation = told.generation
			FROM told
			JOIN held USING (id)
			WHERE r.id = told.id)
		SELECT coalesce(max(outcome_at), $1), coalesce((array_agg(id ORDER BY outcome_at DESC, id DESC))[1], 0), count(*)
		FROM u`, after, id, linkChunk).Scan(&lastAt, &last, &seen)
	if err != nil {
		return after, id, 0, fmt.Errorf("replay: link deaths: %w", err)
	}
	return lastAt, last, seen, nil
}
