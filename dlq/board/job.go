package board

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/dlq"
	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/rbac"
)

// JobVersion is a text that differs whenever the page of a dead job would:
// the job changed, or its latest replay went on. Errors: NotFound, also outside
// the scope.
func JobVersion(ctx context.Context, db dlq.DB, p *rbac.Principal, id int64) (version string, err error) {
	where, args, err := scoped(p, "d", "", pgx.NamedArgs{"id": id})
	if err != nil {
		return "", err
	}
	err = db.QueryRow(ctx, `
		SELECT concat_ws('/', extract(epoch FROM d.updated_at)::text, d.generation, d.status, d.payload_version,
		       (SELECT concat_ws('/', r.id, coalesce(r.outcome, r.state), r.delivered_at IS NOT NULL)
		        FROM redrive.replays r
		        WHERE r.dead_job_id = d.id
		        ORDER BY r.id DESC
		        LIMIT 1),
		       (SELECT max(n.id) FROM redrive.notes n WHERE n.dead_job_id = d.id))
		FROM redrive.dead_jobs d
		WHERE d.id = @id
		  AND `+where, args).Scan(&version)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", problem.New(problem.NotFound, "There is no job %d that you may see.", id)
	}
	if err != nil {
		return "", fmt.Errorf("board: job version: %w", err)
	}
	return version, nil
}

// Payload is what a person may read of one version of a payload, whole.
type Payload struct {
	JobID    string
	Version  int
	Kind     string // json, text, binary, empty or printout
	Redacted []byte
}

// PayloadOf reads the redacted copy of one payload version; version 0 means
// the current one. Errors: NotFound, also outside the scope.
func PayloadOf(ctx context.Context, db dlq.DB, p *rbac.Principal, id int64, version int) (Payload, error) {
	where, args, err := scoped(p, "d", "", pgx.NamedArgs{"id": id, "version": version})
	if err != nil {
		return Payload{}, err
	}
	found, err := collect[Payload](ctx, db, "payload", `
		SELECT d.job_id, v.version, d.payload_kind AS kind, v.redacted
		FROM redrive.dead_jobs d
		JOIN redrive.payloads v ON v.dead_job_id = d.id AND v.version = coalesce(nullif(@version::integer, 0), d.payload_version)
		WHERE d.id = @id
		  AND `+where, args)
	if err != nil {
		return Payload{}, err
	}
	if len(found) == 0 {
		return Payload{}, problem.New(problem.NotFound, "There is no such payload of a job %d that you may see.", id)
	}
	return found[0], nil
}
