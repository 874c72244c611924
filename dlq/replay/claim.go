package replay

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	tenantsAClaim = 10  // tenants that one claim of a batch serves
	tenantsALook  = 100 // tenants that it looks at, for those whose cap isn't used up
)

// claimed is a replay that a round holds, to let it leave.
type claimed struct {
	Item
	Tenant  string
	State   string
	OrderAt time.Time

	run   *run
	facts facts
}

const claimColumns = `r.id, r.batch_id, r.dead_job_id, r.generation, r.payload_version, r.environment, r.source, r.job_id,
		       r.job_type, r.entity, r.key_scope, r.idempotency_key, r.target_kind, r.tenant, r.state, r.order_at, r.proof`

func readClaimed(rows pgx.Rows, err error, runs map[int64]*run) ([]*claimed, error) {
	if err != nil {
		return nil, fmt.Errorf("replay: claim: %w", err)
	}
	out, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (*claimed, error) {
		c := &claimed{}
		err := row.Scan(&c.ReplayID, &c.BatchID, &c.DeadJobID, &c.Generation, &c.PayloadVersion, &c.Environment, &c.Source, &c.JobID,
			&c.JobType, &c.Entity, &c.Key.Scope, &c.Key.Key, &c.TargetKind, &c.Tenant, &c.State, &c.OrderAt, &c.Proof)
		c.Key.Environment, c.run = c.Environment, runs[c.BatchID]
		c.Target = c.run.target
		return c, err
	})
	if err != nil {
		return nil, fmt.Errorf("replay: claim: %w", err)
	}
	return out, nil
}

// claimSingles holds due replays of batches of one, those that were put off
// last. It looks at all of the round's: those whose tenant's cap is used up stand
// in nobody's way.
func (s *Service) claimSingles(ctx context.Context, tx pgx.Tx, t *tenants, singles map[int64]*run, n int) ([]*claimed, error) {
	if len(singles) == 0 || n == 0 {
		return nil, nil
	}
	ids := make([]int64, 0, len(singles))
	for id := range singles {
		ids = append(ids, id)
	}
	rows, err := tx.Query(ctx, `
		SELECT `+claimColumns+`
		FROM redrive.replays r
		WHERE r.batch_id = ANY($1) AND (r.state = 'ready' OR (r.state = 'pending' AND NOT r.behind)) AND r.due_at <= $2
		ORDER BY r.due_at, r.id
		FOR UPDATE OF r SKIP LOCKED`, ids, s.now())
	found, err := readClaimed(rows, err, singles)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(found))
	for i, c := range found {
		names[i] = c.Tenant
	}
	if err := t.read(ctx, tx, names); err != nil {
		return nil, err
	}
	kept := 0
	return slices.DeleteFunc(found, func(c *claimed) bool {
		if kept == n || !t.take(c.Tenant) {
			return true
		}
		kept++
		return false
	}), nil
}

// share is how many replays a tenant gets of a claim.
type share struct {
	Tenant string
	N      int
}

// claimRun holds up to n due replays of a batch's open wave, tenant after
// tenant from where the last claim ended. What waits of others, or is paused,
// is never looked at.
func (s *Service) claimRun(ctx context.Context, tx pgx.Tx, t *tenants, u *run, n int) ([]*claimed, error) {
	look := tenantsALook
	if !t.capped() {
		look = min(tenantsAClaim, n)
	}
	names, err := u.tenants(ctx, tx, look)
	if err != nil || len(names) == 0 {
		return nil, err
	}
	if err := t.read(ctx, tx, names); err != nil {
		return nil, err
	}
	shares := t.shares(names, n)
	if len(shares) == 0 {
		u.served = ">" + names[len(names)-1]
		return nil, nil
	}
	u.served = ">" + shares[len(shares)-1].Tenant
	return s.claimShares(ctx, tx, t, u, shares, n)
}

func (s *Service) claimShares(ctx context.Context, tx pgx.Tx, t *tenants, u *run, shares []share, n int) ([]*claimed, error) {
	names, counts := make([]string, len(shares)), make([]int, len(shares))
	for i, sh := range shares {
		names[i], counts[i] = sh.Tenant, sh.N
	}
	lane := func(which string) string {
		return `
			SELECT *
			FROM redrive.replays
			WHERE batch_id = $1 AND wave = $2 AND tenant = t.tenant AND ` + which + ` AND due_at <= $5
			ORDER BY id
			LIMIT t.n
			FOR UPDATE SKIP LOCKED`
	}
	rows, err := tx.Query(ctx, `
		WITH t AS (SELECT * FROM unnest($3::text[], $4::int[]) AS t(tenant, n))
		SELECT `+claimColumns+`
		FROM t
		CROSS JOIN LATERAL (`+lane(`state = 'ready'`)+`) r
		UNION ALL
		SELECT `+claimColumns+`
		FROM t
		CROSS JOIN LATERAL (`+lane(`state = 'pending' AND NOT behind`)+`) r`, u.BatchID, u.Wave, names, counts, s.now())
	found, err := readClaimed(rows, err, map[int64]*run{u.BatchID: u})
	if err != nil {
		return nil, err
	}
	return t.trim(found, shares, n), nil
}

// trim keeps each tenant within its share, and all within n; those that are
// ready come first. What is left out is free again when the round ends.
func (t *tenants) trim(found []*claimed, shares []share, n int) []*claimed {
	left := map[string]int{}
	for _, sh := range shares {
		left[sh.Tenant] = sh.N
	}
	kept := found[:0]
	for _, c := range found {
		if len(kept) < n && left[c.Tenant] > 0 {
			left[c.Tenant]--
			t.taken[c.Tenant]++
			kept = append(kept, c)
		}
	}
	return kept
}
