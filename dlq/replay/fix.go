package replay

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/audit"
	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/dlq/redact"
	"github.com/redrive-dlq/redrive/rbac"
)

// FixKinds are the kinds of fixes that can be declared.
var FixKinds = []string{"worker_version", "ticket", "record"}

// FixOrder declares for a group or a batch what was fixed.
type FixOrder struct {
	Environment string // of a group; a batch has its own
	Fingerprint string // either a group …
	Batch       int64  // … or a batch
	Kind        string // one of FixKinds
	Ref         string // the version, the ticket's number, the record; required
	Reason      string // required
}

// DeclareFix lifts invalid input and auth of what it covers, for the jobs that
// died before it; a batch is judged again. Errors: NotFound, Forbidden, Invalid
// at kind, ref or reason, Conflict for a batch that is confirmed already.
func (s *Service) DeclareFix(ctx context.Context, p *rbac.Principal, o FixOrder) error {
	if err := o.check(); err != nil {
		return err
	}
	if o.Batch != 0 {
		return s.again(ctx, p, o.Batch, rbac.DeclareFix, func(tx pgx.Tx, b batchRow) error {
			o.Environment = b.Environment
			return s.writeFix(ctx, tx, p, o, b.JobType)
		})
	}
	var jobType string
	err := s.Pool.QueryRow(ctx, `SELECT job_type FROM redrive.groups WHERE fingerprint = $1`, o.Fingerprint).Scan(&jobType)
	if errors.Is(err, pgx.ErrNoRows) || (err == nil && !p.Can(rbac.Read, o.Environment, jobType)) {
		return problem.New(problem.NotFound, "There is no group %s that you may see.", o.Fingerprint)
	}
	if err != nil {
		return fmt.Errorf("replay: find group: %w", err)
	}
	if err := p.Require(o.Environment, jobType, rbac.DeclareFix); err != nil {
		return err
	}
	return s.change(ctx, func(tx pgx.Tx) error { return s.writeFix(ctx, tx, p, o, jobType) })
}

func (o *FixOrder) check() (err error) {
	o.Ref = strings.TrimSpace(o.Ref)
	switch {
	case (o.Fingerprint == "") == (o.Batch == 0):
		return problem.New(problem.Invalid, "Declare a fix for a group or for a batch.")
	case o.Fingerprint != "" && o.Environment == "":
		return problem.At(problem.Invalid, "environment", "Say in which environment it was fixed.")
	case !slices.Contains(FixKinds, o.Kind):
		return problem.At(problem.Invalid, "kind", "Say what was fixed: a worker version, a ticket or a corrected record.")
	case o.Ref == "" || len(o.Ref) > 255 || strings.ContainsRune(o.Ref, 0):
		return problem.At(problem.Invalid, "ref", "Name the version, ticket or record in 1 to 255 characters.")
	}
	o.Ref = redact.Readable(o.Ref)
	o.Reason, err = reasonOf(o.Reason)
	return err
}

func (s *Service) writeFix(ctx context.Context, tx pgx.Tx, p *rbac.Principal, o FixOrder, jobType string) error {
	var id int64
	err := tx.QueryRow(ctx, `
		INSERT INTO redrive.fixes (environment, job_type, fingerprint, batch_id, kind, ref, reason, declared_by, declared_at)
		VALUES ($1, $2, $3, nullif($4::bigint, 0), $5, $6, $7, $8, $9)
		RETURNING id`, o.Environment, jobType, o.Fingerprint, o.Batch, o.Kind, o.Ref, o.Reason, nameOf(p), s.now()).Scan(&id)
	if err != nil {
		return fmt.Errorf("replay: declare fix: %w", err)
	}
	object := audit.Object{Kind: "group", ID: o.Fingerprint}
	if o.Batch != 0 {
		object = audit.Object{Kind: "batch", ID: strconv.FormatInt(o.Batch, 10)}
	}
	_, err = audit.Append(ctx, tx, p.Actor(), audit.Entry{Action: "fix.declare", Object: object, Environment: o.Environment, JobType: jobType,
		Batch: o.Batch, Reason: o.Reason, Details: map[string]any{"fix": id, "kind": o.Kind, "ref": o.Ref}, At: s.now()})
	return err
}
