package river

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgtype"
)

// Poll takes what the trigger's inbox holds and the untaken deaths of the last
// hour. In the store's own database that is one anti-join; when it finds more
// than a chunk, or River lives elsewhere, the hour is walked in pages. Errors are
// the database's own.
func (r *Reader) Poll(ctx context.Context) error {
	if err := r.drainInbox(ctx); err != nil {
		return err
	}
	if r.src.Same {
		keys, err := r.recent(ctx)
		if err != nil {
			return err
		}
		if err := r.take(ctx, keys); err != nil {
			return err
		}
		if len(keys) < chunkRows {
			return nil
		}
	}
	return r.walkRecent(ctx)
}

func (r *Reader) walkRecent(ctx context.Context) error {
	since, err := r.sinceRecent(ctx)
	if err != nil {
		return err
	}
	for _, state := range deadStates {
		if err := r.walk(ctx, state, &mark{At: since}); err != nil {
			return err
		}
	}
	return nil
}

// sinceRecent is where the last hour begins by the source's clock.
func (r *Reader) sinceRecent(ctx context.Context) (since pgtype.Timestamptz, err error) {
	ctx, cancel := r.bounded(ctx)
	defer cancel()
	err = r.from.QueryRow(ctx, `SELECT now() - interval '`+recentWindow+`'`).Scan(&since)
	if err != nil {
		err = fmt.Errorf("river: read the source's clock: %w", err)
	}
	return since, err
}

// walk takes the untaken deaths of a state after a mark, page by page, and moves
// the mark behind each page that is done.
func (r *Reader) walk(ctx context.Context, state string, after *mark) error {
	for {
		page, missing, err := r.compare(ctx, state, *after)
		if err != nil {
			return err
		}
		if err := r.take(ctx, missing); err != nil {
			return err
		}
		if len(page) < pageRows {
			return nil
		}
		*after = markOf(page)
	}
}

// compare reads one page and says which of it is not taken.
func (r *Reader) compare(ctx context.Context, state string, after mark) (page, missing []key, err error) {
	ctx, cancel := r.bounded(ctx)
	defer cancel()
	page, err = r.page(ctx, state, after)
	if err != nil {
		return nil, nil, err
	}
	missing, err = r.untaken(ctx, page)
	return page, missing, err
}
