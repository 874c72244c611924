package replay

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// tenants are those with something to release, from the cursor on and around.
func (u *run) tenants(ctx context.Context, tx pgx.Tx, most int) ([]string, error) {
	after, started := strings.CutPrefix(u.TenantCursor, ">")
	var names []string
	if started {
		var err error
		if names, err = u.tenantsFrom(ctx, tx, ">", after, most); err != nil {
			return nil, err
		}
	}
	if len(names) == most {
		return names, nil
	}
	rest, err := u.tenantsFrom(ctx, tx, ">=", "", most-len(names))
	if err != nil {
		return nil, err
	}
	for _, name := range rest {
		if len(names) == most || (len(names) > 0 && name == names[0]) {
			break
		}
		names = append(names, name)
	}
	return names, nil
}

// tenantsFrom hops from tenant to tenant over the two indexes, however many
// replays each has.
func (u *run) tenantsFrom(ctx context.Context, tx pgx.Tx, from, tenant string, most int) ([]string, error) {
	next := func(op, than string) string {
		lane := `(SELECT tenant FROM redrive.replays WHERE batch_id = $1 AND wave = $2 AND %s AND tenant ` + op + ` ` + than + ` ORDER BY tenant LIMIT 1)`
		return `(SELECT min(tenant) FROM (` + fmt.Sprintf(lane, `state = 'ready'`) + ` UNION ALL ` +
			fmt.Sprintf(lane, `state = 'pending' AND NOT behind`) + `) l)`
	}
	rows, err := tx.Query(ctx, `
		WITH RECURSIVE hop AS (
			SELECT `+next(from, "$3::text")+` AS tenant, 1 AS n
			UNION ALL
			SELECT `+next(">", "hop.tenant")+`, n + 1
			FROM hop
			WHERE tenant IS NOT NULL AND n < $4)
		SELECT tenant
		FROM hop
		WHERE tenant IS NOT NULL
		ORDER BY n`, u.BatchID, u.Wave, tenant, most)
	if err != nil {
		return nil, fmt.Errorf("replay: tenants: %w", err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("replay: tenants: %w", err)
	}
	return names, nil
}
