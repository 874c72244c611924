package dlq

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/rbac"
)

// unsettled are the statuses of a job that nobody has decided about for good.
var unsettled = []string{"open", "snoozed"}

// reopenable are the statuses that a person may undo.
var reopenable = []string{"snoozed", "resolved", "discarded"}

// TriageSettling is a decision about a job with its reason.
type TriageSettling struct {
	Generation int       // as shown on the form; 0: not checked
	Reason     string    // required, 3 to 2,000 characters
	Reference  string    // resolve: where it was settled; may be empty
	Until      time.Time // snooze: when it opens again
}

// TriageResolve closes the job as settled elsewhere. Errors: NotFound,
// Forbidden, Invalid (reason, reference), Conflict.
func TriageResolve(ctx context.Context, pool *pgxpool.Pool, p *rbac.Principal, id int64, s TriageSettling) error {
	reference, err := triageText("reference", "The reference", s.Reference, 0, TriageShortMax)
	if err != nil {
		return err
	}
	return settle(ctx, pool, p, id, s, "resolve", unsettled, "resolved", reference)
}

// TriageDiscard closes the job as one that will not be fixed. Its data stays
// until its retention is over. Errors as TriageResolve's.
func TriageDiscard(ctx context.Context, pool *pgxpool.Pool, p *rbac.Principal, id int64, s TriageSettling) error {
	return settle(ctx, pool, p, id, s, "discard", unsettled, "discarded", "")
}

// TriageReopen opens a job that was snoozed, resolved or discarded. A job that
// has recovered, or whose effect is done, stays closed. Errors as TriageResolve's.
func TriageReopen(ctx context.Context, pool *pgxpool.Pool, p *rbac.Principal, id int64, s TriageSettling) error {
	return settle(ctx, pool, p, id, s, "reopen", reopenable, "open", "")
}

// TriageSnooze puts the job aside until a time at most TriageSnoozeMax after
// now, or moves that time. Errors as TriageResolve's, and Invalid (until).
func TriageSnooze(ctx context.Context, pool *pgxpool.Pool, p *rbac.Principal, id int64, s TriageSettling, now time.Time) error {
	switch {
	case s.Until.IsZero():
		return problem.At(problem.Invalid, "until", "Say until when the job is put aside.")
	case !s.Until.After(now):
		return problem.At(problem.Invalid, "until", "This time is over. Choose one that is still to come.")
	case s.Until.After(now.Add(TriageSnoozeMax)):
		return problem.At(problem.Invalid, "until", "A job can be put aside for at most 14 days. Choose an earlier time.")
	}
	return settle(ctx, pool, p, id, s, "snooze", unsettled, "snoozed", "")
}

func settle(ctx context.Context, pool *pgxpool.Pool, p *rbac.Principal, id int64, s TriageSettling, name string, from []string, status, reference string) error {
	reason, err := triageReason(s.Reason)
	if err != nil {
		return err
	}
	return triage(ctx, pool, p, id, act{
		name: name, perm: rbac.Triage, reason: reason, generation: s.Generation, from: from,
		change: func(ctx context.Context, tx pgx.Tx, j TriageJob) (map[string]any, error) {
			details := map[string]any{"from": j.Status, "generation": j.Generation}
			args := pgx.NamedArgs{"id": id, "status": status, "reason": reason, "reference": reference, "by": p.Actor().Name, "until": nil}
			if reference != "" {
				details["reference"] = reference
			}
			if status == "snoozed" {
				args["until"] = s.Until
				details["until"] = s.Until.UTC().Format(time.RFC3339)
			}
			_, err := tx.Exec(ctx, `
				UPDATE redrive.dead_jobs
				SET status = @status, snoozed_until = @until, updated_at = now(),
				    settled_reason = CASE WHEN @status = 'open' THEN '' ELSE @reason END,
				    settled_ref = @reference,
				    settled_by = CASE WHEN @status = 'open' THEN '' ELSE @by END,
				    settled_at = CASE WHEN @status = 'open' THEN NULL ELSE now() END
				WHERE id = @id`, args)
			if err != nil {
				return nil, fmt.Errorf("dlq: %s: %w", name, err)
			}
			return details, nil
		},
	})
}

// TriageWake opens the snoozed jobs whose time has come and returns how many.
// Any number of processes may call it; it changes at most 1,000 at a time.
func TriageWake(ctx context.Context, db DB, now time.Time) (int64, error) {
	tag, err := db.Exec(ctx, `
		UPDATE redrive.dead_jobs
		SET status = 'open', snoozed_until = NULL, settled_reason = '', settled_by = '', settled_at = NULL, updated_at = now()
		WHERE id IN (SELECT id
		             FROM redrive.dead_jobs
		             WHERE status = 'snoozed' AND snoozed_until <= $1
		             ORDER BY id
		             LIMIT 1000
		             FOR UPDATE SKIP LOCKED)`, now)
	if err != nil {
		return 0, fmt.Errorf("dlq: wake snoozed jobs: %w", err)
	}
	return tag.RowsAffected(), nil
}
