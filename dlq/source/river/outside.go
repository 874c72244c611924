package river

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/jackc/pgx/v5"
)

// Marks in dead_jobs.source_ref for what happened to a row without us.
const (
	refGone    = "gone"            // the row was deleted, usually by River's retention
	refRetried = "retried_outside" // somebody retried it; its end isn't known yet
)

// What a recovered job's page says. The second is for a replay that ended
// unconfirmed: its target was slower than its deadline.
const (
	recoveredReason = "It completed at its source, without a replay from here."
	recoveredLate   = "It completed at its source, after a replay whose end was not known in time."
)

// unsettled is an open or snoozed job of this source. Jobs that are being
// replayed are not among them: their end belongs to the replay.
type unsettled struct {
	ID         int64
	JobID      string
	Generation int32
	JobType    string
	Attempt    int32   // of the last death
	RiverID    string  // of the row; a re-inserted job's differs from its job id
	Schema     *string // of River, when it died
	Gone       bool
	Retried    bool
}

// changes are the decisions on one page of unsettled jobs.
type changes struct {
	recovered, gone, retried, back jobSet
}

// jobSet names jobs at a generation: a death that is captured meanwhile makes
// the decision void.
type jobSet struct {
	ids         []int64
	generations []int32
}

func (s *jobSet) add(j unsettled) {
	s.ids = append(s.ids, j.ID)
	s.generations = append(s.generations, j.Generation)
}

// passOutside compares the rest of our unsettled jobs with their rows.
func (r *Reader) passOutside(ctx context.Context) error {
	for {
		n, err := r.passOutsidePage(ctx)
		if err != nil {
			return err
		}
		if n < pageRows {
			return nil
		}
	}
}

func (r *Reader) passOutsidePage(ctx context.Context) (int, error) {
	ctx, cancel := r.bounded(ctx)
	defer cancel()
	jobs, err := r.unsettled(ctx)
	if err != nil || len(jobs) == 0 {
		return 0, err
	}
	states, err := r.states(ctx, jobs)
	if err != nil {
		return 0, err
	}
	here := slices.DeleteFunc(slices.Clone(jobs), r.elsewhere)
	if err := r.apply(ctx, decide(here, states)); err != nil {
		return 0, err
	}
	r.pass.job = jobs[len(jobs)-1].JobID
	return len(jobs), nil
}

// unsettled reads a page in the order of the identity's index.
func (r *Reader) unsettled(ctx context.Context) ([]unsettled, error) {
	args := r.named()
	args["after"], args["limit"] = r.pass.job, pageRows
	rows, err := r.store.Query(ctx, `
		SELECT id, job_id, generation, job_type, last_death_attempt AS attempt, coalesce(source_ref ->> 'river_id', '') AS river_id,
		       source_ref ->> 'schema' AS schema,
		       source_ref ? '`+refGone+`' AS gone, source_ref ? '`+refRetried+`' AS retried
		FROM redrive.dead_jobs
		WHERE environment = @environment
		  AND source = @source
		  AND job_id > @after
		  AND status IN ('open', 'snoozed')
		ORDER BY job_id
		LIMIT @limit`, args)
	if err != nil {
		return nil, fmt.Errorf("river: read unsettled jobs: %w", err)
	}
	jobs, err := pgx.CollectRows(rows, pgx.RowToStructByName[unsettled])
	if err != nil {
		return nil, fmt.Errorf("river: read unsettled jobs: %w", err)
	}
	return jobs, nil
}

// elsewhere reports whether a job died in another schema: its id means another
// row here, so it is left alone.
func (r *Reader) elsewhere(j unsettled) bool { return j.Schema != nil && *j.Schema != r.src.Schema }

// riverID is 0 for a job that isn't River's, such as a hand-made row.
func (j unsettled) riverID() int64 {
	for _, s := range []string{j.RiverID, j.JobID} {
		if id, err := strconv.ParseInt(s, 10, 64); err == nil && id > 0 {
			return id
		}
	}
	return 0
}

// current is a row as it is now.
type current struct {
	ID      int64
	State   string
	Kind    string
	Attempt int32
}

// states are the rows by id; one that is missing is gone.
func (r *Reader) states(ctx context.Context, jobs []unsettled) (map[int64]current, error) {
	ids := make([]int64, len(jobs))
	for i, j := range jobs {
		ids[i] = j.riverID()
	}
	rows, err := r.from.Query(ctx, `
		SELECT j.id, j.state::text, j.kind, j.attempt
		FROM `+r.table+` j
		WHERE j.id = ANY(@ids)`, pgx.NamedArgs{"ids": ids})
	if err != nil {
		return nil, fmt.Errorf("river: read states: %w", err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[current])
	if err != nil {
		return nil, fmt.Errorf("river: read states: %w", err)
	}
	states := make(map[int64]current, len(list))
	for _, c := range list {
		states[c.ID] = c
	}
	return states, nil
}

// decide names only jobs for which something changes.
func decide(jobs []unsettled, states map[int64]current) changes {
	var c changes
	for _, j := range jobs {
		id := j.riverID()
		if id == 0 {
			continue
		}
		row, found := states[id]
		if found && (row.Kind != j.JobType || row.Attempt < j.Attempt) {
			found = false // ids began anew there: this is another job's row
		}
		switch {
		case !found:
			if !j.Gone {
				c.gone.add(j)
			}
		case row.State == "completed":
			c.recovered.add(j)
		case row.State == "discarded" || row.State == "cancelled":
			if j.Gone || j.Retried {
				c.back.add(j)
			}
		default: // available, running, scheduled, retryable, pending
			if !j.Retried {
				c.retried.add(j)
			}
		}
	}
	return c
}

func (r *Reader) apply(ctx context.Context, c changes) error {
	for _, change := range []struct {
		set  jobSet
		what string
	}{
		{c.recovered, `status = 'recovered', settled_ref = '',
		    settled_reason = CASE
		        WHEN EXISTS (
		            SELECT
		            FROM redrive.replays r
		            WHERE r.dead_job_id = d.id
		              AND r.generation = d.generation
		              AND r.outcome = 'unconfirmed'
		        ) THEN '` + recoveredLate + `'
		        ELSE '` + recoveredReason + `'
		    END,
		    settled_by = 'redrive', settled_at = now(), snoozed_until = NULL`},
		{c.gone, `source_ref = (d.source_ref - '` + refRetried + `') || '{"` + refGone + `": true}'`},
		{c.retried, `source_ref = (d.source_ref - '` + refGone + `') || '{"` + refRetried + `": true}'`},
		{c.back, `source_ref = d.source_ref - '` + refGone + `' - '` + refRetried + `'`},
	} {
		if len(change.set.ids) == 0 {
			continue
		}
		if err := r.change(ctx, change.set, change.what); err != nil {
			return err
		}
	}
	return nil
}

// change locks the rows in the order that captures use, and touches only those
// that are still as they were read.
func (r *Reader) change(ctx context.Context, set jobSet, what string) error {
	_, err := r.store.Exec(ctx, `
		WITH locked AS (
		    SELECT d.id
		    FROM redrive.dead_jobs d
		    JOIN unnest(@ids::bigint[], @generations::integer[]) AS k (id, generation)
		      ON d.id = k.id AND d.generation = k.generation
		    WHERE d.status IN ('open', 'snoozed')
		    ORDER BY d.environment, d.source, d.job_id
		    FOR UPDATE OF d)
		UPDATE redrive.dead_jobs d
		SET `+what+`, updated_at = now()
		FROM locked
		WHERE d.id = locked.id`,
		pgx.NamedArgs{"ids": set.ids, "generations": set.generations})
	if err != nil {
		return fmt.Errorf("river: note an outside change: %w", err)
	}
	return nil
}
