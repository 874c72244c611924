package river

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// death is one death on its way into the store.
type death struct {
	key   key
	raw   string // the row as to_json gives it: what the trigger writes, too
	inbox int64  // row of redrive.river_inbox it came from; 0 = from river_job
	fault error  // why it can't be read; then it is quarantined
}

// split cuts keys so that no part outgrows chunkBytes, unless one row alone does.
func split(keys []key) [][]key {
	var parts [][]key
	var size int64
	start := 0
	for i, k := range keys {
		if i > start && (size+k.Size > chunkBytes || i-start == chunkRows) {
			parts = append(parts, keys[start:i])
			start, size = i, 0
		}
		size += k.Size
	}
	if start < len(keys) {
		parts = append(parts, keys[start:])
	}
	return parts
}

// bodies fetches whole rows as they are now. One that is no longer dead is left
// out; one that died again since is returned as that death. When a row can't
// even be sent, the others are fetched without it and it comes back with a fault.
func (r *Reader) bodies(ctx context.Context, keys []key) ([]death, error) {
	deaths, err := r.fetch(ctx, keys)
	if err == nil || !isDataFault(err) {
		return deaths, err
	}
	if len(keys) == 1 {
		k := keys[0]
		raw := fmt.Sprintf(`{"id":%d,"attempt":%d}`, k.ID, k.Attempt)
		return []death{{key: k, raw: raw, fault: err}}, nil
	}
	for _, half := range [][]key{keys[:len(keys)/2], keys[len(keys)/2:]} {
		some, err := r.bodies(ctx, half)
		if err != nil {
			return nil, err
		}
		deaths = append(deaths, some...)
	}
	return deaths, nil
}

func (r *Reader) fetch(ctx context.Context, keys []key) ([]death, error) {
	ctx, cancel := r.bounded(ctx)
	defer cancel()
	ids := make([]int64, len(keys))
	for i, k := range keys {
		ids[i] = k.ID
	}
	rows, err := r.from.Query(ctx, `
		SELECT j.id, j.attempt, j.finalized_at, to_json(j)::text
		FROM `+r.table+` j
		WHERE j.id = ANY(@ids)
		  AND j.state IN ('discarded', 'cancelled')
		ORDER BY j.id`, pgx.NamedArgs{"ids": ids})
	if err != nil {
		return nil, fmt.Errorf("river: fetch jobs: %w", err)
	}
	deaths, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (death, error) {
		var d death
		err := row.Scan(&d.key.ID, &d.key.Attempt, &d.key.FinalizedAt, &d.raw)
		return d, err
	})
	if err != nil {
		return nil, fmt.Errorf("river: fetch jobs: %w", err)
	}
	return deaths, nil
}
