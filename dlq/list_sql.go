package dlq

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/dlq/cursor"
	"github.com/redrive-dlq/redrive/dlq/filter"
	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/rbac"
)

// ListScope is the condition that limits rows to what the principal may perm,
// for a table or view with the columns environment and job_type under alias;
// all argument names begin with scope_. Errors: Unauthorized, and Forbidden for
// one who may it nowhere.
func ListScope(p *rbac.Principal, perm rbac.Permission, alias string) (string, pgx.NamedArgs, error) {
	if err := p.Require("", "", perm); err != nil {
		return "", nil, err
	}
	args := pgx.NamedArgs{}
	everywhere, limits := p.Scopes(perm)
	if everywhere {
		return "true", args, nil
	}
	var or []string
	for i, g := range limits {
		var and []string
		for _, part := range []struct{ column, value string }{{"environment", g.Environment}, {"job_type", g.JobType}} {
			if part.value != "" {
				name := "scope_" + part.column + strconv.Itoa(i)
				and = append(and, alias+"."+part.column+" = @"+name)
				args[name] = part.value
			}
		}
		or = append(or, strings.Join(and, " AND "))
	}
	if len(or) == 0 {
		return "false", args, nil
	}
	return "(" + strings.Join(or, " OR ") + ")", args, nil
}

// listSQL is the page's statement. Where the filter leaves several statuses
// possible and an index begins with another field and the status, each
// combination is read in order by that index and the few rows are merged: a
// page costs the same however rare its rows are.
func listSQL(q ListQuery, p *rbac.Principal, at *cursor.Cursor, scope string, scopeArgs pgx.NamedArgs) (string, pgx.NamedArgs) {
	where, args := q.Filter.Where("d", q.Now)
	maps.Copy(args, scopeArgs)
	args["limit"] = q.Limit + 1
	order := "died_at DESC, id DESC"
	where += "\n  AND " + scope
	if at != nil {
		args["at"], args["id"] = at.At, at.ID
		if at.Direction == cursor.Prev {
			where += "\n  AND (d.died_at, d.id) > (@at, @id)"
			order = "died_at ASC, id ASC"
		} else {
			where += "\n  AND (d.died_at, d.id) < (@at, @id)"
		}
	}
	one := func(extra string) string {
		return "SELECT " + listColumns + "\nFROM redrive.dead_jobs d\nWHERE " + where + extra + "\nORDER BY " + order + "\nLIMIT @limit"
	}
	inner := one("")
	if extras := listBranches(q.Filter, p, args); len(extras) > 0 {
		parts := make([]string, len(extras))
		for i, extra := range extras {
			parts[i] = "(" + one(extra) + ")"
		}
		inner = strings.Join(parts, "\nUNION ALL\n")
	}
	return `SELECT j.*, coalesce((
	SELECT coalesce(r.outcome, r.state)
	FROM redrive.replays r
	WHERE r.dead_job_id = j.id AND r.state <> 'planned'
	ORDER BY r.id DESC
	LIMIT 1), '') AS last_replay_state
FROM (SELECT * FROM (` + inner + `) b ORDER BY ` + order + ` LIMIT @limit) j
ORDER BY ` + order, args
}

// listMaxBranches bounds the combinations that are read apart.
const listMaxBranches = 24

// listBranches returns the conditions of each combination of a leading field
// and a status; nil when one ordered read serves.
func listBranches(f filter.Filter, p *rbac.Principal, args pgx.NamedArgs) []string {
	for _, field := range []filter.Field{filter.Job, filter.Key, filter.Entity, filter.EffectID, filter.Group, filter.Class, filter.Tenant, filter.Source} {
		if len(f.Is(field)) > 0 {
			return nil // its own index needs no status
		}
	}
	if len(f.Environments) == 0 {
		f.Environments = listEnvironments(p)
	}
	statuses := f.Possible()
	column, values := "", []string(nil)
	for _, lead := range []struct {
		field  filter.Field
		column string
	}{{filter.Type, "job_type"}, {filter.Category, "category"}, {filter.Environment, "environment"}} {
		if is := f.Is(lead.field); len(is) > 0 {
			column, values = lead.column, is
			break
		}
	}
	if column == "" && len(statuses) == len(filter.Statuses) {
		return nil // the list's own order
	}
	if len(statuses)*max(len(values), 1) > listMaxBranches {
		return nil
	}
	var extras []string
	for i, status := range statuses {
		name := "branch_status" + strconv.Itoa(i)
		args[name] = status
		extra := "\n  AND d.status = @" + name
		if column == "" {
			extras = append(extras, extra)
		}
		for k, value := range values {
			lead := "branch_lead" + strconv.Itoa(k)
			args[lead] = value
			extras = append(extras, extra+"\n  AND d."+column+" = @"+lead)
		}
	}
	return slices.Clip(extras)
}

// listEnvironments are those that a principal is limited to; nil: not limited.
func listEnvironments(p *rbac.Principal) []string {
	everywhere, limits := p.Scopes(rbac.Read)
	if everywhere {
		return nil
	}
	var all []string
	for _, g := range limits {
		if g.Environment == "" {
			return nil
		}
		if !slices.Contains(all, g.Environment) {
			all = append(all, g.Environment)
		}
	}
	return all
}

// listTotal counts what matches: from the counters when they know, else row
// by row up to the cap.
func listTotal(ctx context.Context, db DB, q ListQuery, scope string, scopeArgs pgx.NamedArgs) (t ListTotal, err error) {
	where, args := q.Filter.Where("d", q.Now)
	maps.Copy(args, scopeArgs)
	if q.Filter.Counted() {
		counts := "redrive.type_counts"
		if q.Filter.ByFingerprint() {
			counts = "redrive.counts"
		}
		err = db.QueryRow(ctx, `
			SELECT greatest(coalesce(sum(d.n), 0), 0)::bigint
			FROM `+counts+` d
			WHERE `+where+`
			  AND `+scope, args).Scan(&t.N)
		if err != nil {
			return t, fmt.Errorf("dlq: count: %w", err)
		}
		return t, nil
	}
	args["cap"] = ListCountCap + 1
	err = db.QueryRow(ctx, `
		SELECT count(*)
		FROM (SELECT
		      FROM redrive.dead_jobs d
		      WHERE `+where+`
		        AND `+scope+`
		      LIMIT @cap) c`, args).Scan(&t.N)
	if err != nil {
		return t, fmt.Errorf("dlq: count: %w", err)
	}
	if t.N > ListCountCap {
		t = ListTotal{N: ListCountCap, More: true}
	}
	return t, nil
}

// ListCount counts exactly, for a batch: the rows themselves, however many.
func ListCount(ctx context.Context, db DB, p *rbac.Principal, q ListQuery) (n int64, err error) {
	if _, err := q.prepare(); err != nil {
		return 0, err
	}
	scope, scopeArgs, err := ListScope(p, rbac.Read, "d")
	if err != nil {
		return 0, err
	}
	where, args := q.Filter.Where("d", q.Now)
	maps.Copy(args, scopeArgs)
	err = db.QueryRow(ctx, `
		SELECT count(*)
		FROM redrive.dead_jobs d
		WHERE `+where+`
		  AND `+scope, args).Scan(&n)
	if err != nil {
		return 0, fmt.Errorf("dlq: count: %w", err)
	}
	return n, nil
}

// listNotFound is the answer for a job that isn't there or not in scope: one
// for both, so that ids outside the scope can't be probed.
func listNotFound(id int64) error {
	return problem.New(problem.NotFound, "There is no job %d that you may see.", id)
}
