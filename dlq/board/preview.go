package board

import (
	"context"
	"fmt"
	"maps"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/dlq"
	"github.com/redrive-dlq/redrive/dlq/filter"
)

// sampleSize is how many jobs of each verdict a plan shows.
const sampleSize = 3

// Samples reads a few members of each verdict of a batch that BatchOf returned.
func Samples(ctx context.Context, db dlq.DB, b Batch) (map[string][]Replay, error) {
	verdicts := make([]string, 0, len(b.Verdicts))
	for v := range b.Verdicts {
		verdicts = append(verdicts, v)
	}
	found, err := collect[Replay](ctx, db, "samples", `
		SELECT `+replayColumns+`
		FROM unnest(@verdicts::text[]) v(verdict)
		CROSS JOIN LATERAL (
			SELECT *
			FROM redrive.replays
			WHERE batch_id = @batch AND verdict >= v.verdict AND verdict <= v.verdict
			ORDER BY verdict, id
			LIMIT @limit) r
		ORDER BY r.id`, pgx.NamedArgs{"batch": b.ID, "verdicts": verdicts, "limit": sampleSize})
	if err != nil {
		return nil, err
	}
	of := map[string][]Replay{}
	for _, r := range found {
		of[r.Verdict] = append(of[r.Verdict], r)
	}
	return of, nil
}

// CanaryMembers reads who the canary of n replays would be, or is, in the order of
// choice; at most MaxItems.
func CanaryMembers(ctx context.Context, db dlq.DB, batch int64, n int) ([]Replay, error) {
	return collect[Replay](ctx, db, "canary", `
		SELECT `+replayColumns+`
		FROM redrive.replays r
		WHERE r.batch_id = @batch AND r.canary_rank <= @n
		ORDER BY r.canary_rank
		LIMIT @limit`, pgx.NamedArgs{"batch": batch, "n": n, "limit": MaxItems})
}

// lateIDs is how far below a plan's last job one is looked for that committed
// after the plan: ids are given before transactions commit.
const lateIDs = 20_000

// LeftOut is what a plan doesn't take along, because it came or changed later.
type LeftOut struct {
	Arrived int  // jobs that match the filter and came after the cut-off
	Changed int  // eligible members that changed since, of the first 10,000
	Fixed   int  // blocked members that a fix declared since would lift, of the first 10,000
	More    bool // counting stopped at 10,000
}

// LeftOutOf counts what a batch that BatchOf returned leaves out, up to 10,000
// each.
func LeftOutOf(ctx context.Context, db dlq.DB, b Batch) (l LeftOut, err error) {
	args := pgx.NamedArgs{"batch": b.ID, "environment": b.Environment, "type": b.JobType, "cap": reportCap}
	if !b.BySelection {
		f, err := filter.Parse(b.Filter)
		if err != nil {
			return l, fmt.Errorf("board: the filter of batch %d: %w", b.ID, err)
		}
		where, more := f.Where("d", b.Cutoff)
		maps.Copy(args, more)
		args["late"] = lateIDs
		err = db.QueryRow(ctx, `
			SELECT count(*)
			FROM (SELECT
			      FROM redrive.dead_jobs d
			      WHERE d.environment = @environment AND d.job_type = @type
			        AND d.id > (SELECT plan_last - @late FROM redrive.batches WHERE id = @batch)
			        AND NOT EXISTS (SELECT FROM redrive.replays r WHERE r.batch_id = @batch AND r.dead_job_id = d.id)
			        AND `+where+`
			      LIMIT @cap) c`, args).Scan(&l.Arrived)
		if err != nil {
			return l, fmt.Errorf("board: late arrivals: %w", err)
		}
	}
	err = db.QueryRow(ctx, `
		SELECT count(*)
		FROM (SELECT dead_job_id, generation, payload_version
		      FROM redrive.replays
		      WHERE batch_id = @batch AND verdict >= 'eligible' AND verdict <= 'eligible' AND state = 'planned'
		      ORDER BY verdict, id
		      LIMIT @cap) r
		LEFT JOIN redrive.dead_jobs d ON d.id = r.dead_job_id
		WHERE d.id IS NULL OR d.generation <> r.generation OR d.payload_version <> r.payload_version OR d.status <> 'open'`, args).Scan(&l.Changed)
	if err != nil {
		return l, fmt.Errorf("board: changed members: %w", err)
	}
	if l.Fixed, err = fixedSince(ctx, db, args); err != nil {
		return l, err
	}
	l.More = l.Arrived >= reportCap
	return l, nil
}

// fixedSince counts the members that wait for a fix and have one: it was
// declared after the plan, for their group or in another batch.
func fixedSince(ctx context.Context, db dlq.DB, args pgx.NamedArgs) (n int, err error) {
	err = db.QueryRow(ctx, `
		SELECT count(*)
		FROM (SELECT dead_job_id
		      FROM redrive.replays
		      WHERE batch_id = @batch AND verdict IN ('invalid_input', 'auth') AND state = 'planned'
		      LIMIT @cap) r
		JOIN redrive.dead_jobs d ON d.id = r.dead_job_id
		WHERE d.fix_kind <> ''
		   OR EXISTS (
			SELECT FROM redrive.fixes x
			WHERE x.environment = d.environment AND x.fingerprint = d.fingerprint AND x.fingerprint <> ''
			  AND x.job_type = d.job_type AND x.declared_at >= d.died_at)
		   OR EXISTS (
			SELECT FROM redrive.replays o
			JOIN redrive.fixes x ON x.batch_id = o.batch_id
			WHERE o.dead_job_id = d.id AND o.generation = d.generation AND x.declared_at >= d.died_at)`, args).Scan(&n)
	if err != nil {
		return 0, fmt.Errorf("board: fixed since the plan: %w", err)
	}
	return n, nil
}
