package replay

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/audit"
	"github.com/redrive-dlq/redrive/dlq/filter"
	"github.com/redrive-dlq/redrive/dlq/jobtype"
	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/rbac"
)

const (
	// MaxSelected is how many rows may be selected by id; more take a filter.
	MaxSelected = 10_000
	// MaxBatches is how many batches one selection may make.
	MaxBatches = 50
)

// Selection is what a person chose to replay: what a filter matches, or ids.
// An empty selection is an error, never everything.
type Selection struct {
	Filter filter.Filter
	IDs    []int64 // of dead jobs; at most MaxSelected
}

// Plan persists one batch for each environment and type that the selection
// touches and begins to freeze them; it returns their ids, at least one. A type
// that the person may see and not plan becomes a batch too, in which everything
// is out of scope. Errors: Invalid (an empty selection, one that matches
// nothing or too many types, the reason), Forbidden for one who may plan
// nothing of it.
func (s *Service) Plan(ctx context.Context, p *rbac.Principal, sel Selection, reason string) ([]int64, error) {
	reason, err := reasonOf(reason)
	if err != nil {
		return nil, err
	}
	if err := p.Require("", "", rbac.PlanBatch); err != nil {
		return nil, err
	}
	now := s.now()
	parts, err := s.split(ctx, p, &sel, now)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(parts, func(m members) bool { return p.Can(rbac.PlanBatch, m.Environment, m.JobType) }) {
		return nil, problem.New(problem.Forbidden, "Your role doesn't allow planning replays of what you selected.")
	}
	var ids []int64
	err = pgx.BeginFunc(ctx, s.Pool, func(tx pgx.Tx) error {
		ids = nil
		for _, m := range parts {
			id, err := s.writePlan(ctx, tx, p, sel, m, reason, 0, now)
			if err != nil {
				return err
			}
			ids = append(ids, id)
		}
		return nil
	})
	return ids, err
}

// members are the part of a selection that becomes one batch.
type members struct {
	Environment string
	JobType     string
	IDs         []int64 // empty with a filter
}

// writePlan persists a batch before anything of it is frozen.
func (s *Service) writePlan(ctx context.Context, tx pgx.Tx, p *rbac.Principal, sel Selection, m members, reason string, parent int64, now time.Time) (id int64, err error) {
	var target jobtype.Target
	if t, ok := s.Types().Type(m.JobType); ok {
		target, _ = t.Target(m.Environment)
	}
	raw, err := encodeTarget(target)
	if err != nil {
		return 0, fmt.Errorf("replay: encode target: %w", err)
	}
	text := sel.Filter.String()
	if len(m.IDs) > 0 {
		text = ""
	}
	err = tx.QueryRow(ctx, `
		INSERT INTO redrive.batches
			(environment, job_type, kind, state, filter, selected, in_scope, cutoff, reason, created_by, created_by_id, created_at,
			 parent_batch, plan_last, target_kind, target, destination)
		SELECT @environment, @type, 'batch', 'planning', @filter, @selected, @in_scope, @now, @reason, @by, @by_id, @now,
		       nullif(@parent::bigint, 0), (SELECT coalesce(max(id), 0) FROM redrive.dead_jobs), @kind, @target, @destination
		RETURNING id`,
		pgx.NamedArgs{"environment": m.Environment, "type": m.JobType, "filter": text, "selected": m.IDs,
			"in_scope": p.Can(rbac.PlanBatch, m.Environment, m.JobType), "now": now, "reason": reason, "by": nameOf(p), "by_id": p.UserID,
			"parent": parent, "kind": kindOf(target), "target": raw, "destination": target.Destination()}).Scan(&id)
	if err != nil {
		return 0, fmt.Errorf("replay: write plan: %w", err)
	}
	details := map[string]any{"cutoff": now.UTC().Format(time.RFC3339Nano)}
	if len(m.IDs) > 0 {
		details["selected"] = len(m.IDs)
	} else {
		sum := sha256.Sum256([]byte(text))
		details["filter_sha256"] = hex.EncodeToString(sum[:])
	}
	if parent != 0 {
		details["failed_of_batch"] = parent
	}
	_, err = audit.Append(ctx, tx, p.Actor(), audit.Entry{Action: "batch.plan", Object: audit.Object{Kind: "batch", ID: strconv.FormatInt(id, 10)},
		Environment: m.Environment, JobType: m.JobType, Batch: id, Reason: reason, Details: details, At: now})
	if err != nil {
		return 0, err
	}
	return id, s.enqueue(ctx, tx, WorkPlan, id)
}

// PlanFailed plans the jobs of a batch's failed replays anew, in a batch that
// names the one before. Errors: NotFound, Forbidden, Invalid (the reason),
// Conflict when nothing of it failed.
func (s *Service) PlanFailed(ctx context.Context, p *rbac.Principal, batch int64, reason string) ([]int64, error) {
	b, err := s.seen(ctx, p, batch)
	if err != nil {
		return nil, err
	}
	if err := p.Require(b.Environment, b.JobType, rbac.PlanBatch); err != nil {
		return nil, err
	}
	if reason, err = reasonOf(reason); err != nil {
		return nil, err
	}
	m := members{Environment: b.Environment, JobType: b.JobType}
	err = s.Pool.QueryRow(ctx, `
		SELECT coalesce(array_agg(dead_job_id ORDER BY dead_job_id), '{}')
		FROM redrive.replays
		WHERE batch_id = $1 AND outcome = 'failed'`, batch).Scan(&m.IDs)
	if err != nil {
		return nil, fmt.Errorf("replay: failed replays: %w", err)
	}
	if len(m.IDs) == 0 {
		return nil, problem.New(problem.Conflict, "No replay of batch %d failed, so there is nothing to plan again.", batch)
	}
	var id int64
	err = pgx.BeginFunc(ctx, s.Pool, func(tx pgx.Tx) error {
		id, err = s.writePlan(ctx, tx, p, Selection{}, m, reason, batch, s.now())
		return err
	})
	if err != nil {
		return nil, err
	}
	return []int64{id}, nil
}
