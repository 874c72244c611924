package board

import (
	"context"
	"encoding/hex"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/dlq"
	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/rbac"
)

// groupCursor marks the cursors of the list of groups, last seen first.
const groupCursor = 'g'

// Group is a failure that jobs share. Its row is folded from deaths with a
// short delay; the counts are of the jobs in scope and exact.
type Group struct {
	Fingerprint string
	JobType     string
	Category    string
	ErrorClass  string
	Template    string // the redacted message, what varies named: "no customer ‹n›"
	FirstSeen   time.Time
	LastSeen    time.Time
	Sample      int64 // orders groups that were last seen at one moment
	Open        int   // open dead jobs now
	Jobs        int   // dead jobs of any status
}

// GroupPage is one page of groups.
type GroupPage struct {
	Rows       []Group
	Next, Prev string // cursors; empty: there is none
}

// groupSQL reads groups with the counts of the jobs in scope.
func groupSQL(where, more, order string) string {
	return `
		SELECT g.fingerprint, g.job_type, g.category, g.error_class, g.template, g.first_seen, g.last_seen,
		       g.sample_death AS sample, c.open, c.jobs
		FROM redrive.groups g
		JOIN (SELECT d.fingerprint,
		             greatest(coalesce(sum(d.n) FILTER (WHERE d.status = 'open'), 0), 0)::bigint AS open,
		             sum(d.n)::bigint AS jobs
		      FROM redrive.counts d
		      WHERE ` + where + `
		      GROUP BY d.fingerprint
		      HAVING sum(d.n) > 0) c ON c.fingerprint = g.fingerprint
		WHERE ` + more + `
		ORDER BY g.last_seen ` + order + `, g.sample_death ` + order + `
		LIMIT @limit`
}

// Groups reads one page of groups, last seen first. Errors: Invalid (cursor),
// Forbidden.
func Groups(ctx context.Context, db dlq.DB, p *rbac.Principal, environment, at string) (GroupPage, error) {
	where, args, err := scoped(p, "d", environment, pgx.NamedArgs{"limit": pageSize + 1})
	if err != nil {
		return GroupPage{}, err
	}
	place, err := readPlace(at, groupCursor, environment)
	if err != nil {
		return GroupPage{}, err
	}
	more, order := place.condition("g.last_seen", "g.sample_death", args)
	found, err := collect[Group](ctx, db, "groups", groupSQL(where, more, order), args)
	if err != nil {
		return GroupPage{}, err
	}
	var page GroupPage
	page.Rows, page.Next, page.Prev = turn(place, found, func(g Group) (time.Time, int64) { return g.LastSeen, g.Sample })
	return page, nil
}

// TopGroups reads the groups with the most open jobs in scope, at most n.
func TopGroups(ctx context.Context, db dlq.DB, p *rbac.Principal, environment string, n int) ([]Group, error) {
	where, args, err := scoped(p, "d", environment, pgx.NamedArgs{"limit": n})
	if err != nil {
		return nil, err
	}
	return collect[Group](ctx, db, "top groups", `
		SELECT g.fingerprint, g.job_type, g.category, g.error_class, g.template, g.first_seen, g.last_seen,
		       g.sample_death AS sample, c.open, c.open AS jobs
		FROM (SELECT d.fingerprint, sum(d.n)::bigint AS open
		      FROM redrive.counts d
		      WHERE d.status = 'open'
		        AND `+where+`
		      GROUP BY d.fingerprint
		      HAVING sum(d.n) > 0
		      ORDER BY open DESC, d.fingerprint
		      LIMIT @limit) c
		JOIN redrive.groups g ON g.fingerprint = c.fingerprint
		ORDER BY c.open DESC, g.fingerprint`, args)
}

// GroupOf reads one group. Errors: NotFound when there is none with a job in
// scope.
func GroupOf(ctx context.Context, db dlq.DB, p *rbac.Principal, fingerprint string) (Group, error) {
	if _, err := hex.DecodeString(fingerprint); err != nil {
		return Group{}, noGroup()
	}
	where, args, err := scoped(p, "d", "", pgx.NamedArgs{"limit": 1, "fingerprint": fingerprint})
	if err != nil {
		return Group{}, err
	}
	found, err := collect[Group](ctx, db, "group", groupSQL(where+"\n  AND d.fingerprint = @fingerprint", "true", "DESC"), args)
	if err != nil {
		return Group{}, err
	}
	if len(found) == 0 {
		return Group{}, noGroup()
	}
	return found[0], nil
}

func noGroup() error {
	return problem.New(problem.NotFound, "There is no group with this fingerprint that you may see. A failure that is seconds old gets its group in a moment.")
}

// GroupCounts counts a group's jobs by status, in scope.
func GroupCounts(ctx context.Context, db dlq.DB, p *rbac.Principal, fingerprint string) (map[string]int, error) {
	where, args, err := scoped(p, "d", "", pgx.NamedArgs{"fingerprint": fingerprint})
	if err != nil {
		return nil, err
	}
	type count struct {
		Status string
		N      int
	}
	found, err := collect[count](ctx, db, "group counts", `
		SELECT d.status, sum(d.n)::bigint AS n
		FROM redrive.counts d
		WHERE `+where+`
		  AND d.fingerprint = @fingerprint
		GROUP BY d.status`, args)
	if err != nil {
		return nil, err
	}
	counts := map[string]int{}
	for _, c := range found {
		counts[c.Status] = c.N
	}
	return counts, nil
}
