package river

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// pruneRows is how many rows of River one step of pruning asks about.
const pruneRows = 2000

// prune forgets the marks of deaths whose row River deleted more than a day ago;
// else river_deaths would keep one for each death forever. Should such a death
// be told again, as after a restored backup, capture knows it: it changes nothing.
func (r *Reader) prune(ctx context.Context) error {
	for after := int64(0); ; {
		ids, err := r.prunePage(ctx, after)
		if err != nil {
			return err
		}
		if len(ids) < pruneRows {
			return nil
		}
		after = ids[len(ids)-1]
	}
}

func (r *Reader) prunePage(ctx context.Context, after int64) ([]int64, error) {
	ctx, cancel := r.bounded(ctx)
	defer cancel()
	args := r.named()
	args["after"], args["limit"] = after, pruneRows
	rows, err := r.store.Query(ctx, `
		SELECT d.river_id
		FROM redrive.river_deaths d
		WHERE d.environment = @environment
		  AND d.source = @source
		  AND d.river_id > @after
		GROUP BY d.river_id
		ORDER BY d.river_id
		LIMIT @limit`, args)
	if err != nil {
		return nil, fmt.Errorf("river: read marks: %w", err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	rows, err = r.from.Query(ctx, `
		SELECT j.id
		FROM `+r.table+` j
		WHERE j.id = ANY(@ids)`, pgx.NamedArgs{"ids": ids})
	if err != nil {
		return nil, fmt.Errorf("river: look for rows: %w", err)
	}
	there, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return nil, fmt.Errorf("river: look for rows: %w", err)
	}
	args["ids"], args["there"] = ids, there
	_, err = r.store.Exec(ctx, `
		DELETE FROM redrive.river_deaths d
		WHERE d.environment = @environment
		  AND d.source = @source
		  AND d.river_id = ANY(@ids)
		  AND d.river_id <> ALL(@there)
		  AND d.finalized_at < now() - interval '1 day'`, args)
	if err != nil {
		return nil, fmt.Errorf("river: forget marks: %w", err)
	}
	return ids, nil
}
