package dlq

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/rbac"
)

// auditNamedMost bounds how many jobs one name may stand for.
const auditNamedMost = 100

// AuditNamed returns the dead jobs that people know by a name, their source's
// id or their key, and the ledger's keys behind them as the audit log writes
// them; newest first, of one environment when it isn't empty, within what the
// principal may read.
func AuditNamed(ctx context.Context, db DB, p *rbac.Principal, name, environment string) (jobs []int64, keys []string, err error) {
	scope, args, err := ListScope(p, rbac.Read, "d")
	if err != nil {
		return nil, nil, err
	}
	args["name"], args["environment"], args["most"] = name, environment, auditNamedMost
	rows, err := db.Query(ctx, `
		SELECT d.id, CASE WHEN d.idempotency_key = '' THEN '' ELSE d.key_scope || ':' || d.idempotency_key END
		FROM redrive.dead_jobs d
		WHERE (d.job_id = @name OR (d.idempotency_key = @name AND d.idempotency_key <> ''))
		  AND (@environment = '' OR d.environment = @environment)
		  AND `+scope+`
		ORDER BY d.id DESC
		LIMIT @most`, args)
	if err != nil {
		return nil, nil, fmt.Errorf("dlq: jobs of a name: %w", err)
	}
	var id int64
	var key string
	_, err = pgx.ForEachRow(rows, []any{&id, &key}, func() error {
		jobs = append(jobs, id)
		if key != "" && !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
		return nil
	})
	if err != nil {
		return nil, nil, fmt.Errorf("dlq: jobs of a name: %w", err)
	}
	return jobs, keys, nil
}
