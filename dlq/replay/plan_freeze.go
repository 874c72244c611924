package replay

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/dlq/filter"
)

// planChunk is how many jobs one transaction freezes.
const planChunk = 2000

// planRow is a batch as its planning sees it.
type planRow struct {
	ID          int64
	Environment string
	JobType     string
	State       string
	Filter      string
	BySelection bool
	InScope     bool
	AllowOld    string
	Cutoff      time.Time
	PlanCursor  int64
	PlanLast    int64
	Judging     bool
	TargetKind  string
	Destination string
}

// doPlan freezes the next jobs of a batch, or judges its next members again;
// behind the last one it completes the plan. The batch's row is locked, so that
// two at once take turns.
func (s *Service) doPlan(ctx context.Context, batch int64) (done bool, err error) {
	err = pgx.BeginFunc(ctx, s.Pool, func(tx pgx.Tx) error {
		b, err := readPlan(ctx, tx, batch)
		if errors.Is(err, pgx.ErrNoRows) || (err == nil && b.State != "planning") {
			done = true
			return nil
		}
		if err != nil {
			return err
		}
		ids, err := nextMembers(ctx, tx, b)
		if err != nil {
			return err
		}
		if len(ids) == 0 {
			done = true
			return s.completePlan(ctx, tx, b)
		}
		if err := s.freeze(ctx, tx, b, ids); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `
			UPDATE redrive.batches
			SET plan_cursor = $2, planned = planned + $3
			WHERE id = $1`, b.ID, ids[len(ids)-1], b.added(len(ids)))
		if err != nil {
			return fmt.Errorf("replay: plan goes on: %w", err)
		}
		return nil
	})
	return done, err
}

func readPlan(ctx context.Context, tx pgx.Tx, id int64) (planRow, error) {
	rows, err := tx.Query(ctx, `
		SELECT id, environment, job_type, state, filter, selected IS NOT NULL AS by_selection, in_scope, allow_old, cutoff,
		       plan_cursor, plan_last, judging, target_kind, destination
		FROM redrive.batches
		WHERE id = $1
		FOR UPDATE`, id)
	if err != nil {
		return planRow{}, fmt.Errorf("replay: read plan: %w", err)
	}
	return pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[planRow])
}

// added is how many members a part of n jobs adds: none when they are judged again.
func (b planRow) added(n int) int {
	if b.Judging {
		return 0
	}
	return n
}

// nextMembers are the next jobs in the order of their ids: of the filter or the
// selection, or of the members that stand already.
func nextMembers(ctx context.Context, tx pgx.Tx, b planRow) ([]int64, error) {
	args := pgx.NamedArgs{"batch": b.ID, "environment": b.Environment, "type": b.JobType, "after": b.PlanCursor, "last": b.PlanLast, "chunk": planChunk}
	sql := `
		SELECT dead_job_id
		FROM redrive.replays
		WHERE batch_id = @batch AND dead_job_id > @after
		ORDER BY dead_job_id
		LIMIT @chunk`
	switch {
	case b.Judging:
	case b.BySelection:
		sql = `
		SELECT d.id
		FROM (SELECT unnest(selected) AS id FROM redrive.batches WHERE id = @batch) w
		JOIN redrive.dead_jobs d ON d.id = w.id
		WHERE w.id > @after
		ORDER BY w.id
		LIMIT @chunk`
	default:
		f, err := filter.Parse(b.Filter)
		if err != nil {
			return nil, fmt.Errorf("replay: the filter of batch %d: %w", b.ID, err)
		}
		where, more := f.Where("d", b.Cutoff)
		maps.Copy(args, more)
		sql = `
		SELECT d.id
		FROM redrive.dead_jobs d
		WHERE d.environment = @environment AND d.job_type = @type AND d.id > @after AND d.id <= @last
		  AND ` + where + `
		ORDER BY d.id
		LIMIT @chunk`
	}
	rows, err := tx.Query(ctx, sql, args)
	if err != nil {
		return nil, fmt.Errorf("replay: next members: %w", err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return nil, fmt.Errorf("replay: next members: %w", err)
	}
	return ids, nil
}

// frozen are the columns of items as they are written.
type frozen struct {
	ids               []int64
	generations       []int32
	versions          []int32
	verdicts, details []string
}

func (z *frozen) add(f facts, v Verdict) {
	z.ids = append(z.ids, f.ID)
	z.generations = append(z.generations, int32(f.Generation)) //nolint:gosec // the column is an integer
	z.versions = append(z.versions, int32(f.PayloadVersion))   //nolint:gosec // the column is an integer
	z.verdicts = append(z.verdicts, v.Code)
	z.details = append(z.details, v.Detail)
}

// freeze judges the jobs and writes them down as members with their verdicts.
func (s *Service) freeze(ctx context.Context, tx pgx.Tx, b planRow, ids []int64) error {
	all, err := factsOf(ctx, tx, ids, "")
	if err != nil {
		return err
	}
	j := judging{Environment: b.Environment, JobType: b.JobType, InScope: b.InScope, AllowOld: b.AllowOld != "", Now: s.now()}
	j.Type, _ = s.Types().Type(b.JobType)
	verdicts, err := s.judgeAll(ctx, tx, j, all)
	if err != nil {
		return err
	}
	var z frozen
	for i, f := range all {
		v := verdicts[i]
		if v.OK() && v.target.Destination() != b.Destination {
			v = Verdict{Code: NotReplayable, Detail: "Since the plan began the catalogue sends this type elsewhere. Plan these jobs again."}
		}
		if v.OK() {
			v.Detail = ""
		}
		z.add(f, v)
	}
	if b.Judging {
		return z.update(ctx, tx, b, ids)
	}
	return z.insert(ctx, tx, b)
}

func (z *frozen) insert(ctx context.Context, tx pgx.Tx, b planRow) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO redrive.replays
			(batch_id, dead_job_id, generation, payload_version, environment, source, job_id, job_type, tenant, entity,
			 key_scope, idempotency_key, target_kind, destination, state, order_at, fingerprint, verdict, verdict_detail)
		SELECT $1, d.id, v.generation, v.version, d.environment, d.source, d.job_id, d.job_type, d.tenant, d.entity,
		       d.key_scope, d.idempotency_key, $2, $3, 'planned', coalesce(d.enqueued_at, d.first_failed_at, d.died_at), d.fingerprint,
		       v.verdict, v.detail
		FROM unnest($4::bigint[], $5::integer[], $6::integer[], $7::text[], $8::text[]) v(id, generation, version, verdict, detail)
		JOIN redrive.dead_jobs d ON d.id = v.id`,
		b.ID, b.TargetKind, b.Destination, z.ids, z.generations, z.versions, z.verdicts, z.details)
	if err != nil {
		return fmt.Errorf("replay: freeze: %w", err)
	}
	return nil
}

// update writes the new verdicts of members; a job that isn't stored any more
// keeps its place and can't be sent.
func (z *frozen) update(ctx context.Context, tx pgx.Tx, b planRow, ids []int64) error {
	_, err := tx.Exec(ctx, `
		UPDATE redrive.replays r
		SET generation = v.generation, payload_version = v.version, verdict = v.verdict, verdict_detail = v.detail,
		    tenant = d.tenant, entity = d.entity, key_scope = d.key_scope, idempotency_key = d.idempotency_key,
		    order_at = coalesce(d.enqueued_at, d.first_failed_at, d.died_at), fingerprint = d.fingerprint, behind = false, canary_rank = NULL
		FROM unnest($2::bigint[], $3::integer[], $4::integer[], $5::text[], $6::text[]) v(id, generation, version, verdict, detail)
		JOIN redrive.dead_jobs d ON d.id = v.id
		WHERE r.batch_id = $1 AND r.dead_job_id = v.id AND r.state = 'planned'`,
		b.ID, z.ids, z.generations, z.versions, z.verdicts, z.details)
	if err != nil {
		return fmt.Errorf("replay: judge again: %w", err)
	}
	_, err = tx.Exec(ctx, `
		UPDATE redrive.replays
		SET verdict = $3, verdict_detail = 'The job isn''t stored any more, so it cannot be sent again.', behind = false, canary_rank = NULL
		WHERE batch_id = $1 AND dead_job_id = ANY($2) AND NOT dead_job_id = ANY($4) AND state = 'planned'`, b.ID, ids, JobGone, z.ids)
	if err != nil {
		return fmt.Errorf("replay: members that are gone: %w", err)
	}
	return nil
}
