package replay

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// frozen are the columns of items as they are written: what a verdict was made
// from, and the verdict.
type frozen struct {
	ids                   []int64
	generations, versions []int32
	sources, jobIDs       []string
	tenants, entities     []string
	scopes, keys          []string
	orderAt               []time.Time
	fingerprints          []string
	verdicts, details     []string
	behind                []bool // an earlier eligible one of its entity stands in the same part
}

func (z *frozen) add(f facts, v Verdict) {
	z.ids = append(z.ids, f.ID)
	z.generations = append(z.generations, int32(f.Generation)) //nolint:gosec // the column is an integer
	z.versions = append(z.versions, int32(f.PayloadVersion))   //nolint:gosec // the column is an integer
	z.sources, z.jobIDs = append(z.sources, f.Source), append(z.jobIDs, f.JobID)
	z.tenants, z.entities = append(z.tenants, f.Tenant), append(z.entities, f.Entity)
	z.scopes, z.keys = append(z.scopes, f.KeyScope), append(z.keys, f.IdempotencyKey)
	z.orderAt, z.fingerprints = append(z.orderAt, f.OrderAt), append(z.fingerprints, f.Fingerprint)
	z.verdicts, z.details = append(z.verdicts, v.Code), append(z.details, v.Detail)
}

// line marks who stands behind another of their entity, as far as this part
// shows it. The end of the plan looks at all together; it has little to correct.
func (z *frozen) line() {
	z.behind = make([]bool, len(z.ids))
	order := make([]int, len(z.ids))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Or(z.orderAt[a].Compare(z.orderAt[b]), cmp.Compare(a, b)) })
	seen := map[string]bool{}
	for _, i := range order {
		if z.verdicts[i] == Eligible && z.entities[i] != "" {
			z.behind[i] = seen[z.entities[i]]
			seen[z.entities[i]] = true
		}
	}
}

// freeze judges the jobs and writes them down as members with their verdicts;
// it returns how many members were added.
func (s *Service) freeze(ctx context.Context, tx pgx.Tx, b planRow, ids []int64) (int64, error) {
	all, err := factsOf(ctx, tx, ids, "")
	if err != nil {
		return 0, err
	}
	j := judging{Environment: b.Environment, JobType: b.JobType, InScope: b.InScope, AllowOld: b.AllowOld != "", Now: s.now()}
	j.Type, _ = s.Types().Type(b.JobType)
	verdicts, err := s.judgeAll(ctx, tx, j, all)
	if err != nil {
		return 0, err
	}
	z := frozen{ids: []int64{}} // never null: all of a part may be gone
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
	if _, err := tx.Exec(ctx, planAsBefore); err != nil {
		return 0, fmt.Errorf("replay: freeze: %w", err)
	}
	if b.Judging {
		return 0, z.update(ctx, tx, b, ids)
	}
	return z.insert(ctx, tx, b)
}

// frozenRows are the columns as rows.
const frozenRows = `
	unnest(@ids::bigint[], @generations::integer[], @versions::integer[], @sources::text[], @job_ids::text[], @tenants::text[],
	       @entities::text[], @scopes::text[], @keys::text[], @order_at::timestamptz[], @fingerprints::text[], @verdicts::text[],
	       @details::text[], @behind::boolean[])
		v(id, generation, version, source, job_id, tenant, entity, scope, key, order_at, fingerprint, verdict, detail, behind)`

func (z *frozen) args(b planRow) pgx.NamedArgs {
	z.line()
	return pgx.NamedArgs{"batch": b.ID, "environment": b.Environment, "type": b.JobType, "kind": b.TargetKind, "destination": b.Destination,
		"ids": z.ids, "generations": z.generations, "versions": z.versions, "sources": z.sources, "job_ids": z.jobIDs, "tenants": z.tenants,
		"entities": z.entities, "scopes": z.scopes, "keys": z.keys, "order_at": z.orderAt, "fingerprints": z.fingerprints,
		"verdicts": z.verdicts, "details": z.details, "behind": z.behind}
}

func (z *frozen) insert(ctx context.Context, tx pgx.Tx, b planRow) (int64, error) {
	tag, err := tx.Exec(ctx, `
		INSERT INTO redrive.replays
			(batch_id, dead_job_id, generation, payload_version, environment, source, job_id, job_type, tenant, entity,
			 key_scope, idempotency_key, target_kind, destination, state, order_at, fingerprint, verdict, verdict_detail, behind)
		SELECT @batch, v.id, v.generation, v.version, @environment, v.source, v.job_id, @type, v.tenant, v.entity,
		       v.scope, v.key, @kind, @destination, 'planned', v.order_at, v.fingerprint, v.verdict, v.detail,
		       v.behind OR (v.verdict = 'eligible' AND o.earlier IS NOT NULL)
		FROM `+frozenRows+`
		LEFT JOIN LATERAL (
			SELECT true AS earlier
			FROM redrive.replays r
			WHERE r.batch_id = @batch AND r.entity = v.entity AND r.entity <> ''
			LIMIT 1) o ON true`, z.args(b))
	if err != nil {
		return 0, fmt.Errorf("replay: freeze: %w", err)
	}
	return tag.RowsAffected(), nil
}

// update writes the verdicts of members that changed; a job that isn't stored
// any more keeps its place and can't be sent.
func (z *frozen) update(ctx context.Context, tx pgx.Tx, b planRow, ids []int64) error {
	_, err := tx.Exec(ctx, `
		UPDATE redrive.replays r
		SET generation = v.generation, payload_version = v.version, verdict = v.verdict, verdict_detail = v.detail,
		    tenant = v.tenant, entity = v.entity, key_scope = v.scope, idempotency_key = v.key, order_at = v.order_at,
		    fingerprint = v.fingerprint, behind = r.behind AND v.verdict = 'eligible' AND v.entity <> ''
		FROM `+frozenRows+`
		WHERE r.batch_id = @batch AND r.dead_job_id = v.id AND r.state = 'planned'
		  AND (r.generation, r.payload_version, r.verdict, r.verdict_detail, r.tenant, r.entity, r.key_scope, r.idempotency_key, r.order_at, r.fingerprint)
		      IS DISTINCT FROM
		      (v.generation, v.version, v.verdict, v.detail, v.tenant, v.entity, v.scope, v.key, v.order_at, v.fingerprint)`, z.args(b))
	if err != nil {
		return fmt.Errorf("replay: judge again: %w", err)
	}
	_, err = tx.Exec(ctx, `
		UPDATE redrive.replays
		SET verdict = $3, verdict_detail = 'The job isn''t stored any more, so it cannot be sent again.', behind = false
		WHERE batch_id = $1 AND dead_job_id = ANY($2) AND NOT dead_job_id = ANY($4) AND state = 'planned'`, b.ID, ids, JobGone, z.ids)
	if err != nil {
		return fmt.Errorf("replay: members that are gone: %w", err)
	}
	return nil
}
