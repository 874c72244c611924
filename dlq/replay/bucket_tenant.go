package replay

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// tenants are the buckets of tenants, for a type that caps them.
type tenants struct {
	bucket *bucket
	tokens map[string]float64
	taken  map[string]int // how many are to leave in this round
}

func newTenants(b *bucket) *tenants {
	return &tenants{bucket: b, tokens: map[string]float64{}, taken: map[string]int{}}
}

func (t *tenants) capped() bool { return t.bucket.Limit.PerTenantPerMinute > 0 }

// read refills the buckets of these tenants; one never used is full.
func (t *tenants) read(ctx context.Context, tx pgx.Tx, names []string) error {
	if !t.capped() {
		return nil
	}
	rows, err := tx.Query(ctx, `
		SELECT tenant, tokens, refilled_at
		FROM redrive.tenant_buckets
		WHERE environment = $1 AND job_type = $2 AND tenant = ANY($3)`, t.bucket.Environment, t.bucket.JobType, names)
	if err != nil {
		return fmt.Errorf("replay: tenants' buckets: %w", err)
	}
	perMinute := t.bucket.Limit.PerTenantPerMinute
	for _, name := range names {
		if _, ok := t.tokens[name]; !ok {
			t.tokens[name] = float64(perSecond(perMinute))
		}
	}
	var name string
	var tokens float64
	var refilled time.Time
	_, err = pgx.ForEachRow(rows, []any{&name, &tokens, &refilled}, func() error {
		t.tokens[name] = t.bucket.refilledSmall(&tokens, &refilled, perMinute)
		return nil
	})
	if err != nil {
		return fmt.Errorf("replay: tenants' buckets: %w", err)
	}
	return nil
}

// may is how many more of a tenant may leave in this round.
func (t *tenants) may(name string, n int) int {
	if !t.capped() {
		return n
	}
	return min(n, int(t.tokens[name])-t.taken[name])
}

// take takes a token of the tenant's, when there is one.
func (t *tenants) take(name string) bool {
	if t.may(name, 1) < 1 {
		return false
	}
	t.taken[name]++
	return true
}

// shares spreads n over the first tenants whose caps aren't used up.
func (t *tenants) shares(names []string, n int) []share {
	var free []string
	for _, name := range names {
		if t.may(name, 1) > 0 {
			free = append(free, name)
		}
		if len(free) == min(tenantsAClaim, n) {
			break
		}
	}
	var out []share
	for _, name := range free {
		out = append(out, share{name, t.may(name, (n+len(free)-1)/len(free))})
	}
	return out
}

// give takes back what a replay that didn't leave had taken.
func (t *tenants) give(name string) {
	if t.taken[name]--; t.taken[name] == 0 {
		delete(t.taken, name)
	}
}

// put queues the buckets of tenants whose replays left.
func (t *tenants) put(batch *pgx.Batch) {
	if !t.capped() || len(t.taken) == 0 {
		return
	}
	var names []string
	var tokens []float64
	for name, n := range t.taken {
		names, tokens = append(names, name), append(tokens, t.bucket.rest(t.tokens[name], n, t.bucket.Limit.PerTenantPerMinute, perSecond(t.bucket.Limit.PerTenantPerMinute)))
	}
	batch.Queue(`
		INSERT INTO redrive.tenant_buckets (environment, job_type, tenant, tokens, refilled_at)
		SELECT $1, $2, tenant, tokens, $5
		FROM unnest($3::text[], $4::float8[]) AS t(tenant, tokens)
		ON CONFLICT (environment, job_type, tenant) DO UPDATE
			SET tokens = excluded.tokens, refilled_at = excluded.refilled_at`,
		t.bucket.Environment, t.bucket.JobType, names, tokens, t.bucket.at())
}
