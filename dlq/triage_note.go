package dlq

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/rbac"
)

// TriageNote adds a note, in any state of the job. The log names the note; its
// text stands only on the job. Errors: NotFound, Forbidden, Invalid (text).
func TriageNote(ctx context.Context, pool *pgxpool.Pool, p *rbac.Principal, id int64, text string) error {
	text, err := triageText("text", "The note", text, 1, TriageTextMax)
	if err != nil {
		return err
	}
	return triage(ctx, pool, p, id, act{
		name: "note", perm: rbac.Triage,
		change: func(ctx context.Context, tx pgx.Tx, j TriageJob) (map[string]any, error) {
			var note int64
			err := tx.QueryRow(ctx, `
				INSERT INTO redrive.notes (dead_job_id, author, body)
				VALUES ($1, $2, $3)
				RETURNING id`, id, p.Actor().Name, text).Scan(&note)
			if err == nil {
				_, err = tx.Exec(ctx, `UPDATE redrive.dead_jobs SET updated_at = now() WHERE id = $1`, id)
			}
			if err != nil {
				return nil, fmt.Errorf("dlq: note: %w", err)
			}
			return map[string]any{"note": note}, nil
		},
	})
}

// TriageAssign makes somebody the job's owner; an empty address takes the
// owner off. It must be the address of a person who isn't disabled. Errors:
// NotFound, Forbidden, Invalid (assignee), Conflict.
func TriageAssign(ctx context.Context, pool *pgxpool.Pool, p *rbac.Principal, id int64, assignee string) error {
	assignee = strings.TrimSpace(assignee)
	if len(assignee) > TriageShortMax || strings.ContainsRune(assignee, 0) {
		return problem.At(problem.Invalid, "assignee", "This isn't the address of a person here.")
	}
	return triage(ctx, pool, p, id, act{
		name: "assign", perm: rbac.Triage,
		change: func(ctx context.Context, tx pgx.Tx, j TriageJob) (map[string]any, error) {
			if assignee != "" {
				var known bool
				err := tx.QueryRow(ctx, `
					SELECT EXISTS (SELECT FROM redrive.users WHERE lower(email) = lower($1) AND disabled_at IS NULL)`, assignee).Scan(&known)
				if err != nil {
					return nil, fmt.Errorf("dlq: assign: %w", err)
				}
				if !known {
					return nil, problem.At(problem.Invalid, "assignee", "Nobody here has this address. Use that of a person who can sign in.")
				}
			}
			_, err := tx.Exec(ctx, `UPDATE redrive.dead_jobs SET assignee = $2, updated_at = now() WHERE id = $1`, id, assignee)
			if err != nil {
				return nil, fmt.Errorf("dlq: assign: %w", err)
			}
			return map[string]any{"from": j.Assignee, "to": assignee}, nil
		},
	})
}

// TriageFixKinds are the kinds of fixes that a person may declare.
var TriageFixKinds = []string{"worker_version", "ticket", "record"}

// TriageFix is a declared fix: what makes a replay of the unchanged payload
// worth trying.
type TriageFix struct {
	Generation int    // as shown on the form; 0: not checked
	Kind       string // one of TriageFixKinds
	Reference  string // "mailer 2.4.1", "OPS-1234"; required
	Reason     string // required
}

// TriageDeclareFix lifts the block of invalid input and auth until the job dies
// again. Errors: NotFound, Forbidden, Invalid (kind, reference, reason),
// Conflict.
func TriageDeclareFix(ctx context.Context, pool *pgxpool.Pool, p *rbac.Principal, id int64, f TriageFix) error {
	if !slices.Contains(TriageFixKinds, f.Kind) {
		return problem.At(problem.Invalid, "kind", "Say what was fixed: a worker version, a ticket or a corrected record.")
	}
	reference, err := triageText("reference", "The reference", f.Reference, 1, TriageShortMax)
	if err != nil {
		return err
	}
	reason, err := triageReason(f.Reason)
	if err != nil {
		return err
	}
	return triage(ctx, pool, p, id, act{
		name: "declare_fix", perm: rbac.DeclareFix, reason: reason, generation: f.Generation, from: unsettled,
		change: func(ctx context.Context, tx pgx.Tx, j TriageJob) (map[string]any, error) {
			_, err := tx.Exec(ctx, `
				UPDATE redrive.dead_jobs
				SET fix_kind = $2, fix_ref = $3, updated_at = now()
				WHERE id = $1`, id, f.Kind, reference)
			if err != nil {
				return nil, fmt.Errorf("dlq: declare fix: %w", err)
			}
			return map[string]any{"kind": f.Kind, "reference": reference, "generation": j.Generation}, nil
		},
	})
}
