package replay

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/dlq/filter"
)

const (
	// planChunk is how many jobs one transaction freezes.
	planChunk = 2000
	// planCheckedChunk is the same for a type with declared checks: another
	// database answers for each job, and the checks of a part have a time limit.
	planCheckedChunk = 200
)

func (s *Service) planChunk(jobType string) int {
	if t, ok := s.Types().Type(jobType); ok && len(t.Checks) > 0 {
		return planCheckedChunk
	}
	return planChunk
}

// planRow is a batch as its planning sees it.
type planRow struct {
	ID          int64
	Environment string
	JobType     string
	State       string
	Filter      string
	BySelection bool
	InScope     bool
	AllowOld    string
	Cutoff      time.Time
	PlanCursor  int64
	PlanLast    int64
	Judging     bool
	TargetKind  string
	Destination string
}

// planByIndex keeps the server to indexes, by plans made anew: a plan made while
// a table was small or empty would read all of it for each job. planAsBefore
// keeps its plans again: each row written makes a few small queries of its own.
const (
	planByIndex  = `SET LOCAL enable_seqscan = off; SET LOCAL plan_cache_mode = force_custom_plan`
	planAsBefore = `SET LOCAL plan_cache_mode = auto`
)

// doPlan freezes the next jobs of a batch, or judges its next members again;
// behind the last one it completes the plan. The batch's row is locked, so that
// two at once take turns.
func (s *Service) doPlan(ctx context.Context, batch int64) (done bool, err error) {
	done, err = s.planPart(ctx, batch)
	if err != nil && ctx.Err() == nil {
		s.tellProblem(ctx, batch)
	}
	return done, err
}

// tellProblem shows people that a plan doesn't get on; the next part that works
// takes it back. What the fault is stands in the log of the engine.
func (s *Service) tellProblem(ctx context.Context, batch int64) {
	_, err := s.Pool.Exec(ctx, `
		UPDATE redrive.batches
		SET plan_problem = 'Planning met a fault. It is tried again by itself; should this stay, cancel the batch and plan again.',
		    plan_problem_at = $2
		WHERE id = (SELECT id FROM redrive.batches WHERE id = $1 AND state = 'planning' FOR UPDATE SKIP LOCKED)`, batch, s.now())
	if err != nil {
		s.log().WarnContext(ctx, "problem of a plan not written down", "batch", batch, "error", err)
	}
}

func (s *Service) planPart(ctx context.Context, batch int64) (done bool, err error) {
	err = pgx.BeginFunc(ctx, s.Pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, planByIndex); err != nil {
			return fmt.Errorf("replay: plan: %w", err)
		}
		b, err := readPlan(ctx, tx, batch)
		if errors.Is(err, pgx.ErrNoRows) || (err == nil && b.State != "planning") {
			done = true
			return nil
		}
		if err != nil {
			return err
		}
		ids, err := nextMembers(ctx, tx, b, s.planChunk(b.JobType))
		if err != nil {
			return err
		}
		if len(ids) == 0 {
			done = true
			return s.completePlan(ctx, tx, b)
		}
		added, err := s.freeze(ctx, tx, b, ids)
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `
			UPDATE redrive.batches
			SET plan_cursor = $2, planned = planned + $3, plan_problem = '', plan_problem_at = NULL
			WHERE id = $1`, b.ID, ids[len(ids)-1], added)
		if err != nil {
			return fmt.Errorf("replay: plan goes on: %w", err)
		}
		return nil
	})
	return done, err
}

func readPlan(ctx context.Context, tx pgx.Tx, id int64) (planRow, error) {
	rows, err := tx.Query(ctx, `
		SELECT id, environment, job_type, state, filter, selected IS NOT NULL AS by_selection, in_scope, allow_old, cutoff,
		       plan_cursor, plan_last, judging, target_kind, destination
		FROM redrive.batches
		WHERE id = $1
		FOR UPDATE`, id)
	if err != nil {
		return planRow{}, fmt.Errorf("replay: read plan: %w", err)
	}
	return pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[planRow])
}

// nextMembers are the next jobs in the order of their ids: of the filter or the
// selection, or of the members that stand already.
func nextMembers(ctx context.Context, tx pgx.Tx, b planRow, chunk int) ([]int64, error) {
	args := pgx.NamedArgs{"batch": b.ID, "environment": b.Environment, "type": b.JobType, "after": b.PlanCursor, "last": b.PlanLast, "chunk": chunk}
	sql := `
		SELECT dead_job_id
		FROM redrive.replays
		WHERE batch_id = @batch AND dead_job_id > @after
		ORDER BY dead_job_id
		LIMIT @chunk`
	switch {
	case b.Judging:
	case b.BySelection:
		sql = `
		SELECT d.id
		FROM (SELECT unnest(selected) AS id FROM redrive.batches WHERE id = @batch) w
		JOIN redrive.dead_jobs d ON d.id = w.id
		WHERE w.id > @after
		ORDER BY w.id
		LIMIT @chunk`
	default:
		f, err := filter.Parse(b.Filter)
		if err != nil {
			return nil, fmt.Errorf("replay: the filter of batch %d: %w", b.ID, err)
		}
		where, more := f.Where("d", b.Cutoff)
		maps.Copy(args, more)
		sql = `
		SELECT d.id
		FROM redrive.dead_jobs d
		WHERE d.environment = @environment AND d.job_type = @type AND d.id > @after AND d.id <= @last
		  AND ` + where + `
		ORDER BY d.id
		LIMIT @chunk`
	}
	rows, err := tx.Query(ctx, sql, args)
	if err != nil {
		return nil, fmt.Errorf("replay: next members: %w", err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return nil, fmt.Errorf("replay: next members: %w", err)
	}
	return ids, nil
}
