// Package board reads what the console shows beside dead jobs: groups, batches,
// sources, where replays go, and counts. Every reader takes the principal and
// returns only what is in their scope; nothing it returns is raw.
package board

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/dlq"
	"github.com/redrive-dlq/redrive/rbac"
)

// Limits of the lists.
const (
	pageSize = 50
	// MaxItems is how many replays of one batch are listed.
	MaxItems = 200
)

// scoped is the condition on environment and job type under alias, within the
// principal's scope and, unless empty, one environment; with its arguments.
func scoped(p *rbac.Principal, alias, environment string, more pgx.NamedArgs) (string, pgx.NamedArgs, error) {
	where, args, err := dlq.ListScope(p, rbac.Read, alias)
	if err != nil {
		return "", nil, err
	}
	if environment != "" {
		where += "\n  AND " + alias + ".environment = @environment"
		args["environment"] = environment
	}
	maps.Copy(args, more)
	return where, args, nil
}

// environments are those whose sources the principal sees; nil means all. A
// limit to a type limits no source: a source has jobs of many types.
func environments(p *rbac.Principal) []string {
	everywhere, limits := p.Scopes(rbac.Read)
	if everywhere {
		return nil
	}
	all := []string{}
	for _, g := range limits {
		if g.Environment == "" {
			return nil
		}
		all = append(all, g.Environment)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// collect runs a query whose rows are read by name.
func collect[T any](ctx context.Context, db dlq.DB, what, sql string, args pgx.NamedArgs) ([]T, error) {
	rows, err := db.Query(ctx, sql, args)
	if err != nil {
		return nil, fmt.Errorf("board: %s: %w", what, err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByName[T])
	if err != nil {
		return nil, fmt.Errorf("board: %s: %w", what, err)
	}
	return list, nil
}
