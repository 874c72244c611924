package board

import (
	"context"
	"fmt"

	"github.com/redrive-dlq/redrive/dlq"
	"github.com/redrive-dlq/redrive/rbac"
)

// Open counts the open dead jobs in scope; an empty environment means all.
func Open(ctx context.Context, db dlq.DB, p *rbac.Principal, environment string) (n int, err error) {
	where, args, err := scoped(p, "d", environment, nil)
	if err != nil {
		return 0, err
	}
	err = db.QueryRow(ctx, `
		SELECT greatest(coalesce(sum(d.n), 0), 0)::bigint
		FROM redrive.type_counts d
		WHERE d.status = 'open'
		  AND `+where, args).Scan(&n)
	if err != nil {
		return 0, fmt.Errorf("board: open jobs: %w", err)
	}
	return n, nil
}

// TypeCount is how many dead jobs of a type an environment holds.
type TypeCount struct {
	JobType     string
	Environment string
	Open        int // of them open
	Total       int
}

// Types counts dead jobs by type and environment, by name.
func Types(ctx context.Context, db dlq.DB, p *rbac.Principal, environment string) ([]TypeCount, error) {
	where, args, err := scoped(p, "d", environment, nil)
	if err != nil {
		return nil, err
	}
	return collect[TypeCount](ctx, db, "types", `
		SELECT d.job_type, d.environment,
		       greatest(coalesce(sum(d.n) FILTER (WHERE d.status = 'open'), 0), 0)::bigint AS open,
		       sum(d.n)::bigint AS total
		FROM redrive.type_counts d
		WHERE `+where+`
		GROUP BY d.job_type, d.environment
		HAVING sum(d.n) > 0
		ORDER BY d.job_type, d.environment`, args)
}

// Captured reports whether the store holds any dead job at all, in scope or not.
func Captured(ctx context.Context, db dlq.DB) (some bool, err error) {
	err = db.QueryRow(ctx, `SELECT EXISTS (SELECT FROM redrive.dead_jobs)`).Scan(&some)
	if err != nil {
		return false, fmt.Errorf("board: any job: %w", err)
	}
	return some, nil
}
