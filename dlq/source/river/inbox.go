package river

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// drainInbox takes what the triggers wrote. Without them the inbox is empty and
// this costs one look at it.
func (r *Reader) drainInbox(ctx context.Context) error {
	if !r.src.Same {
		return nil
	}
	for after := int64(0); ; {
		entries, err := r.inboxPage(ctx, after)
		if err != nil {
			return err
		}
		for _, part := range split(entries) {
			deaths, err := r.inboxBodies(ctx, part)
			if err != nil {
				return err
			}
			if err := r.keep(ctx, deaths); err != nil {
				return err
			}
		}
		if len(entries) < chunkRows {
			return nil
		}
		after = entries[len(entries)-1].ID
	}
}

// inboxPage returns ids and sizes of entries: a key whose ID is the entry's.
func (r *Reader) inboxPage(ctx context.Context, after int64) ([]key, error) {
	ctx, cancel := r.bounded(ctx)
	defer cancel()
	args := r.named()
	args["after"], args["limit"] = after, chunkRows
	rows, err := r.store.Query(ctx, `
		SELECT i.id, 0, NULL::timestamptz, pg_column_size(i.job)::bigint
		FROM redrive.river_inbox i
		WHERE i.environment = @environment
		  AND i.source = @source
		  AND i.id > @after
		ORDER BY i.id
		LIMIT @limit`, args)
	return collectKeys(rows, err, "read the inbox")
}

// inboxBodies reads entries. Nothing is locked: two processes that read the same
// ones meet at river_deaths, where the second finds them taken.
func (r *Reader) inboxBodies(ctx context.Context, entries []key) ([]death, error) {
	ctx, cancel := r.bounded(ctx)
	defer cancel()
	ids := make([]int64, len(entries))
	for i, e := range entries {
		ids[i] = e.ID
	}
	rows, err := r.store.Query(ctx, `
		SELECT i.id, i.job
		FROM redrive.river_inbox i
		WHERE i.id = ANY(@ids)
		ORDER BY i.id`, pgx.NamedArgs{"ids": ids})
	if err != nil {
		return nil, fmt.Errorf("river: read the inbox: %w", err)
	}
	deaths, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (death, error) {
		var d death
		err := row.Scan(&d.inbox, &d.raw)
		d.identify()
		return d, err
	})
	if err != nil {
		return nil, fmt.Errorf("river: read the inbox: %w", err)
	}
	return deaths, nil
}

// identify reads the key out of the row's text. An entry that can't even be
// identified gets a key of its own, which no row of River has.
func (d *death) identify() {
	j, err := parseRow(d.raw)
	if err == nil {
		d.key.ID, d.key.Attempt = j.ID, int32(j.Attempt)
		d.key.FinalizedAt, err = j.finalized()
	}
	if err != nil {
		d.fault = err
		d.key = key{ID: -d.inbox, FinalizedAt: pgtype.Timestamptz{Valid: true, InfinityModifier: pgtype.Infinity}}
	}
}

// emptyInbox removes the entries that the deaths came from.
func (r *Reader) emptyInbox(ctx context.Context, tx pgx.Tx, deaths []death) error {
	var ids []int64
	for _, d := range deaths {
		if d.inbox != 0 {
			ids = append(ids, d.inbox)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	_, err := tx.Exec(ctx, `
		DELETE FROM redrive.river_inbox
		WHERE id = ANY(@ids)`, pgx.NamedArgs{"ids": ids})
	if err != nil {
		return fmt.Errorf("river: empty the inbox: %w", err)
	}
	return nil
}
