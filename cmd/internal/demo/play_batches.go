package demo

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/dlq/filter"
	"github.com/redrive-dlq/redrive/dlq/replay"
)

// pastBatch is one batch that the demo's people order.
type pastBatch struct {
	why string
	// filter selects as the search box does; with jobs, that query's ids are
	// the rows that were selected.
	filter string
	jobs   string
	fix    replay.FixOrder // declared before the review; without a kind: none
}

// pastBatches are those that every demo has, in their order.
var pastBatches = []pastBatch{
	{
		why:    "the search cluster has its second node again; SEARCH-118",
		filter: "type:update_search_index env:production status:open class:ServiceUnavailable",
	},
	{
		// Most succeed; two meet a conflict that nobody had really solved.
		why: "the image service is scaled out; the sizes are clamped since 4.12.1",
		jobs: `
			SELECT id
			FROM (SELECT id, category, row_number() OVER (PARTITION BY category ORDER BY id) AS n
			      FROM redrive.dead_jobs
			      WHERE job_type = 'resize_image' AND environment = 'production' AND status = 'open') d
			WHERE category = 'transient' OR (category = 'invalid_input' AND n <= (
				SELECT count(*) / 10
				FROM redrive.dead_jobs
				WHERE job_type = 'resize_image' AND environment = 'production' AND status = 'open' AND category = 'transient'))
			ORDER BY id`,
		fix: replay.FixOrder{Kind: "worker_version", Ref: "app 4.12.1", Reason: "sizes above the limit are clamped now"},
	},
	{
		// The contacts still aren't there: it stops by itself.
		why:    "sales says that the contacts were imported again",
		filter: "type:sync_contact env:production status:open class:RecordNotFound",
	},
	{
		why:    "the payment provider confirmed that the refunds never reached it",
		filter: "type:refund_payment env:production status:open",
	},
}

func (b pastBatch) selection(ctx context.Context, w *World) (replay.Selection, error) {
	if b.jobs == "" {
		f, err := filter.Parse(b.filter)
		if err != nil {
			return replay.Selection{}, fmt.Errorf("demo play: %w", err)
		}
		return replay.Selection{Filter: f}, nil
	}
	rows, err := w.pool.Query(ctx, b.jobs)
	if err != nil {
		return replay.Selection{}, fmt.Errorf("demo play: select jobs: %w", err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return replay.Selection{}, fmt.Errorf("demo play: select jobs: %w", err)
	}
	return replay.Selection{IDs: ids}, nil
}
