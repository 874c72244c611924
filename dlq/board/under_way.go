package board

import (
	"context"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/dlq"
	"github.com/redrive-dlq/redrive/rbac"
)

// maxUnderWay bounds lists of batches that have not ended.
const maxUnderWay = 50

// Way is how many ordered batches of a type are on their way to a destination.
type Way struct {
	Environment string
	JobType     string
	Destination string
	N           int
}

// WaysUnder counts the batches that are scheduled or running, by where they go.
func WaysUnder(ctx context.Context, db dlq.DB, p *rbac.Principal) ([]Way, error) {
	where, args, err := scoped(p, "b", "", nil)
	if err != nil {
		return nil, err
	}
	return collect[Way](ctx, db, "batches under way", `
		SELECT b.environment, b.job_type, b.destination, count(*) AS n
		FROM redrive.batches b
		WHERE `+where+`
		  AND b.state IN ('scheduled', 'running')
		GROUP BY b.environment, b.job_type, b.destination`, args)
}

// Unfinished reads batches in one of the states that aren't an end, singles
// left out, newest first; at most 50.
func Unfinished(ctx context.Context, db dlq.DB, p *rbac.Principal, environment string, states ...string) ([]Batch, error) {
	where, args, err := scoped(p, "b", environment, pgx.NamedArgs{"states": states, "limit": maxUnderWay})
	if err != nil {
		return nil, err
	}
	return collect[Batch](ctx, db, "batches under way", batchSQL+where+`
		  AND b.state IN ('planning', 'waiting', 'scheduled', 'running', 'paused', 'cancelling')
		  AND b.state = ANY(@states) AND b.kind = 'batch'
		ORDER BY b.id DESC
		LIMIT @limit`, args)
}

// BatchQuery asks for a page of batches.
type BatchQuery struct {
	Environment string   // empty: all
	States      []string // nil: all
	Cursor      string   // empty: the first page
}

// BatchesIn reads one page of the batches in some states, newest first. Errors:
// Invalid (cursor), Forbidden.
func BatchesIn(ctx context.Context, db dlq.DB, p *rbac.Principal, q BatchQuery) (BatchPage, error) {
	where, args, err := scoped(p, "b", q.Environment, pgx.NamedArgs{"states": q.States, "limit": pageSize + 1})
	if err != nil {
		return BatchPage{}, err
	}
	place, err := readPlace(q.Cursor, batchCursor, q.Environment+"\x00"+strings.Join(q.States, "\x00"))
	if err != nil {
		return BatchPage{}, err
	}
	more, order := place.condition("b.created_at", "b.id", args)
	if len(q.States) > 0 {
		where += "\n  AND b.state = ANY(@states)"
	}
	found, err := collect[Batch](ctx, db, "batches", batchSQL+where+`
		  AND `+more+`
		ORDER BY b.created_at `+order+`, b.id `+order+`
		LIMIT @limit`, args)
	if err != nil {
		return BatchPage{}, err
	}
	var page BatchPage
	page.Rows, page.Next, page.Prev = turn(place, found, func(b Batch) (time.Time, int64) { return b.CreatedAt, b.ID })
	return page, nil
}
