package replay

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/dlq"
	"github.com/redrive-dlq/redrive/dlq/filter"
	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/rbac"
)

// split says which environments and types a selection touches, within what the
// person may see. Ages of its filter become times: the plan's cut-off is theirs.
func (s *Service) split(ctx context.Context, p *rbac.Principal, sel *Selection, now time.Time) ([]members, error) {
	var parts []members
	var err error
	switch {
	case len(sel.IDs) > 0 && !sel.Filter.Empty():
		return nil, problem.At(problem.Invalid, "ids", "Select rows or give a filter, not both.")
	case len(sel.IDs) > MaxSelected:
		return nil, problem.At(problem.Invalid, "ids", "At most 10,000 rows can be selected one by one; narrow a filter instead.")
	case len(sel.IDs) > 0:
		parts, err = s.splitIDs(ctx, p, sel.IDs)
	case sel.Filter.Empty():
		return nil, problem.At(problem.Invalid, "q", "Nothing is selected. Select rows, or give a filter that says which jobs to replay.")
	default:
		sel.Filter = fixed(sel.Filter, now)
		parts, err = s.splitFilter(ctx, p, sel.Filter, now)
	}
	if err != nil {
		return nil, err
	}
	switch {
	case len(parts) == 0:
		return nil, problem.At(problem.Invalid, "q", "No job that you may see matches this selection, so there is nothing to plan.")
	case len(parts) > MaxBatches:
		return nil, problem.At(problem.Invalid, "q", "This selection touches more than %d environments and types, and each becomes a batch of its own. Narrow it, for example by type.", MaxBatches)
	}
	return parts, nil
}

// fixed is the filter with ages turned into times.
func fixed(f filter.Filter, now time.Time) filter.Filter {
	if f.Newer != 0 {
		if from := now.Add(-f.Newer).Add(time.Microsecond); from.After(f.From) { // younger, and From is inclusive
			f.From = from
		}
		f.Newer = 0
	}
	if f.Older != 0 {
		if to := now.Add(-f.Older).Add(time.Microsecond); f.To.IsZero() || to.Before(f.To) { // at least that old, and To is exclusive
			f.To = to
		}
		f.Older = 0
	}
	return f
}

func (s *Service) splitIDs(ctx context.Context, p *rbac.Principal, ids []int64) ([]members, error) {
	scope, args, err := dlq.ListScope(p, rbac.Read, "d")
	if err != nil {
		return nil, err
	}
	ids = slices.Clone(ids) // the caller's stay as they are
	slices.Sort(ids)
	ids = slices.Compact(ids)
	args["ids"] = ids
	rows, err := s.Pool.Query(ctx, `
		SELECT d.environment, d.job_type, array_agg(d.id ORDER BY d.id)
		FROM redrive.dead_jobs d
		WHERE d.id = ANY(@ids)
		  AND `+scope+`
		GROUP BY d.environment, d.job_type
		ORDER BY d.environment, d.job_type`, args)
	if err != nil {
		return nil, fmt.Errorf("replay: selected jobs: %w", err)
	}
	parts, err := pgx.CollectRows(rows, pgx.RowToStructByPos[members])
	if err != nil {
		return nil, fmt.Errorf("replay: selected jobs: %w", err)
	}
	found := 0
	for _, m := range parts {
		found += len(m.IDs)
	}
	if found < len(ids) {
		return nil, problem.At(problem.Invalid, "ids", "%s of the %s selected jobs aren't there, or not yours to see. Nothing was planned; select again.",
			commas(len(ids)-found), commas(len(ids)))
	}
	return parts, nil
}

// splitFilter asks the counters which types there are, and for each whether
// anything matches: the store itself is never grouped.
func (s *Service) splitFilter(ctx context.Context, p *rbac.Principal, f filter.Filter, now time.Time) ([]members, error) {
	scope, args, err := dlq.ListScope(p, rbac.Read, "c")
	if err != nil {
		return nil, err
	}
	where, more := f.Where("d", now)
	maps.Copy(args, more)
	args["limit"] = MaxBatches + 1
	rows, err := s.Pool.Query(ctx, `
		SELECT c.environment, c.job_type, NULL::bigint[]
		FROM (SELECT DISTINCT environment, job_type FROM redrive.type_counts WHERE n > 0) c
		WHERE `+scope+`
		  AND EXISTS (
			SELECT
			FROM redrive.dead_jobs d
			WHERE d.environment = c.environment AND d.job_type = c.job_type
			  AND `+where+`)
		ORDER BY c.environment, c.job_type
		LIMIT @limit`, args)
	if err != nil {
		return nil, fmt.Errorf("replay: types of a selection: %w", err)
	}
	parts, err := pgx.CollectRows(rows, pgx.RowToStructByPos[members])
	if err != nil {
		return nil, fmt.Errorf("replay: types of a selection: %w", err)
	}
	return parts, nil
}
