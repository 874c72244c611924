package replay

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// take takes the jobs of planned replays under their locks, judged once more by
// their facts. A job that somebody holds is left for the next time around.
func (s *Service) take(ctx context.Context, tx pgx.Tx, st *starting, items []Item) error {
	jobs := make([]int64, len(items))
	for i, it := range items {
		jobs[i] = it.DeadJobID
	}
	found, err := factsOfTaken(ctx, tx, jobs)
	if err != nil {
		return err
	}
	if st.ran, err = ranSince(ctx, tx, st.ID, items); err != nil {
		return err
	}
	byID := make(map[int64]facts, len(found))
	for _, f := range found {
		byID[f.ID] = f
	}
	var taken []int64
	var missing []Item
	for _, it := range items {
		f, ok := byID[it.DeadJobID]
		if !ok {
			missing = append(missing, it)
			continue
		}
		e := s.mayTake(f, it, st)
		if e == nil {
			taken = append(taken, it.ReplayID)
			continue
		}
		if err := s.leaveOut(ctx, tx, it, *e); err != nil {
			return err
		}
	}
	if err := s.endGone(ctx, tx, missing); err != nil {
		return err
	}
	return s.taken(ctx, tx, st, taken)
}

// mayTake judges the open job of a planned replay; nil means take it.
func (s *Service) mayTake(f facts, it Item, st *starting) *End {
	e := s.mayLeave(f, it, st.allowOld)
	if v, ok := st.ahead[it.ReplayID]; e == nil && ok {
		e = &End{Outcome: Skipped, Code: v.Code, Detail: v.Detail}
	}
	if e == nil && st.ran[it.DeadJobID] {
		return &End{Outcome: Skipped, Code: "changed", Detail: "another replay of the job failed after this one was planned"}
	}
	if e == nil && f.Status != "open" {
		return &End{Outcome: Skipped, Code: "changed", Detail: "the job is being replayed already"}
	}
	return e
}

// endGone ends the replays whose jobs were purged; the others are held.
func (s *Service) endGone(ctx context.Context, tx pgx.Tx, items []Item) error {
	kept, err := storedJobs(ctx, tx, items)
	if err != nil {
		return err
	}
	for _, it := range items {
		if kept[it.DeadJobID] {
			continue
		}
		if err := s.leaveOut(ctx, tx, it, jobGone); err != nil {
			return err
		}
	}
	return nil
}

// storedJobs are those jobs of replays that are still there.
func storedJobs(ctx context.Context, tx pgx.Tx, items []Item) (map[int64]bool, error) {
	kept := map[int64]bool{}
	if len(items) == 0 {
		return kept, nil
	}
	jobs := make([]int64, len(items))
	for i, it := range items {
		jobs[i] = it.DeadJobID
	}
	rows, err := tx.Query(ctx, `SELECT id FROM redrive.dead_jobs WHERE id = ANY($1)`, jobs)
	if err != nil {
		return nil, fmt.Errorf("replay: look for jobs: %w", err)
	}
	there, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return nil, fmt.Errorf("replay: look for jobs: %w", err)
	}
	for _, id := range there {
		kept[id] = true
	}
	return kept, nil
}

// taken makes replays wait for their turn and their jobs replaying.
func (s *Service) taken(ctx context.Context, tx pgx.Tx, st *starting, replays []int64) error {
	if len(replays) == 0 {
		return nil
	}
	_, err := tx.Exec(ctx, `
		WITH r AS (
			UPDATE redrive.replays
			SET state = 'pending', due_at = $2
			WHERE id = ANY($1) AND state = 'planned'
			RETURNING dead_job_id)
		UPDATE redrive.dead_jobs d
		SET status = 'replaying', updated_at = $3
		FROM r
		WHERE d.id = r.dead_job_id`, replays, st.due, s.now())
	if err != nil {
		return fmt.Errorf("replay: take jobs: %w", err)
	}
	return nil
}

// leaveOut ends a replay whose job was never taken, and leaves the job alone:
// another replay may have it.
func (s *Service) leaveOut(ctx context.Context, tx pgx.Tx, it Item, e End) error {
	_, err := tx.Exec(ctx, `
		UPDATE redrive.replays
		SET state = 'ended', outcome = $2, outcome_code = $3, outcome_detail = $4, effect_id = $5, outcome_at = $6
		WHERE id = $1 AND state = 'planned'`, it.ReplayID, e.Outcome, e.Code, e.Detail, e.EffectID, s.now())
	if err != nil {
		return fmt.Errorf("replay: leave out: %w", err)
	}
	return s.writeDown(ctx, tx, it, e)
}
