package dlq

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/redrive-dlq/redrive/audit"
	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/dlq/redact"
	"github.com/redrive-dlq/redrive/rbac"
)

// Limits of what people type, in characters.
const (
	TriageReasonMin = 3
	TriageTextMax   = 2000
	TriageShortMax  = 200 // references, names
)

// TriageSnoozeMax is how far off a snooze may end: nothing is put aside for good.
const TriageSnoozeMax = 14 * 24 * time.Hour

// TriageJob is what an act needs to know of the job it changes.
type TriageJob struct {
	ID             int64
	Environment    string
	JobType        string
	Status         string
	Generation     int
	PayloadVersion int
	SchemaVersion  int
	PayloadKind    string
	Category       string
	Assignee       string
	FixKind        string
	Effect         string
	EffectID       string
	JobID          string
	IdempotencyKey string
}

const triageColumns = `id, environment, job_type, status, generation, payload_version, schema_version,
	payload_kind, category, assignee, fix_kind, effect, effect_id, job_id, idempotency_key`

// TriageRead reads the job for an act's form. Errors: NotFound, also when the
// job is outside what the principal may read; Forbidden without the right.
func TriageRead(ctx context.Context, db DB, p *rbac.Principal, id int64, perm rbac.Permission) (TriageJob, error) {
	return triageRead(ctx, db, p, id, perm, "")
}

func triageRead(ctx context.Context, db DB, p *rbac.Principal, id int64, perm rbac.Permission, lock string) (TriageJob, error) {
	rows, err := db.Query(ctx, `SELECT `+triageColumns+` FROM redrive.dead_jobs WHERE id = $1 `+lock, id)
	if err != nil {
		return TriageJob{}, fmt.Errorf("dlq: read job: %w", err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[TriageJob])
	if err != nil {
		return TriageJob{}, fmt.Errorf("dlq: read job: %w", err)
	}
	if len(found) == 0 || !p.Can(rbac.Read, found[0].Environment, found[0].JobType) {
		return TriageJob{}, listNotFound(id)
	}
	j := found[0]
	return j, p.Require(j.Environment, j.JobType, perm)
}

// act is one change of one job: who may, what it does, how the log names it.
type act struct {
	name   string // of the audit entry: job.<name>
	perm   rbac.Permission
	reason string
	// generation is the one that was shown; 0: not checked. The job may have
	// died again since.
	generation int
	// from are the statuses from which the act is allowed; nil: any but replaying.
	from []string
	// change checks the state, writes, and returns the entry's details.
	change func(ctx context.Context, tx pgx.Tx, j TriageJob) (map[string]any, error)
}

// triage locks the job, changes it and appends the entry in one transaction.
func triage(ctx context.Context, pool *pgxpool.Pool, p *rbac.Principal, id int64, a act) error {
	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		j, err := triageRead(ctx, tx, p, id, a.perm, "FOR UPDATE")
		if err != nil {
			return err
		}
		if err := a.allowed(j); err != nil {
			return err
		}
		details, err := a.change(ctx, tx, j)
		if err != nil {
			return err
		}
		_, err = audit.Append(ctx, tx, p.Actor(), audit.Entry{
			Action: "job." + a.name, Object: audit.Object{Kind: "job", ID: strconv.FormatInt(j.ID, 10)},
			Environment: j.Environment, JobType: j.JobType, DeadJob: j.ID, Reason: a.reason, Details: details,
		})
		return err
	})
}

// triageVerbs are how an act reads in "It can't be …".
var triageVerbs = map[string]string{
	"assign": "assigned", "resolve": "resolved", "discard": "discarded", "reopen": "reopened", "snooze": "snoozed",
	"declare_fix": "declared fixed", "edit": "edited",
}

// allowed says why the job's state refuses the act. Errors: Conflict.
func (a act) allowed(j TriageJob) error {
	switch {
	case a.name == "note":
		return nil
	case j.Status == "replaying":
		return problem.New(problem.Conflict, "This job is being replayed; wait for its end.")
	case a.generation != 0 && a.generation != j.Generation:
		return problem.New(problem.Conflict, "This job died again since the page was shown. Reload it and look at the new failure first.")
	case a.name == "reopen" && j.Status == "recovered":
		return problem.New(problem.Conflict, "This job has recovered: its work is done, so there is nothing to reopen.")
	case a.name == "reopen" && j.Effect == "done":
		return problem.New(problem.Conflict, "The effect of this job is done, so there is nothing to reopen.")
	case a.from != nil && !slices.Contains(a.from, j.Status):
		if a.name == "reopen" {
			return problem.New(problem.Conflict, "This job is open already.")
		}
		if j.Status == triageVerbs[a.name] {
			return problem.New(problem.Conflict, "This job is %s already.", j.Status)
		}
		return problem.New(problem.Conflict, "This job is %s, so it can't be %s. Reopen it first.", j.Status, triageVerbs[a.name])
	}
	return nil
}

// triageText trims what was typed into a field and checks its length in
// characters; what names it in the message. It returns the redacted text: what
// is written here is shown to everybody. Errors: Invalid at the field.
func triageText(field, what, value string, low, high int) (string, error) {
	value = strings.TrimSpace(value)
	n := utf8.RuneCountInString(value)
	switch {
	case !utf8.ValidString(value) || strings.ContainsRune(value, 0):
		return "", problem.At(problem.Invalid, field, "%s holds characters that can't be stored. Type it again.", what)
	case n < low && low == 1:
		return "", problem.At(problem.Invalid, field, "%s is missing.", what)
	case n < low:
		return "", problem.At(problem.Invalid, field, "%s needs at least %d characters.", what, low)
	case n > high:
		return "", problem.At(problem.Invalid, field, "%s has %d characters; at most %d are kept.", what, n, high)
	}
	return redact.Readable(value), nil
}

func triageReason(value string) (string, error) {
	return triageText("reason", "The reason", value, TriageReasonMin, TriageTextMax)
}
