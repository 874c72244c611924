package dlq

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/redrive-dlq/redrive/dlq/cursor"
	"github.com/redrive-dlq/redrive/dlq/filter"
	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/rbac"
)

// Limits of a list page.
const (
	ListDefaultLimit = 50
	ListMaxLimit     = 200
	// ListCountCap is where counting matching rows stops; what the counters
	// know is always exact.
	ListCountCap = 10_000
)

// listCursor marks the cursors of the job list, newest death first.
const listCursor = 'j'

// DB is what reading needs: a pool or a transaction.
type DB interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// ListQuery asks for one page.
type ListQuery struct {
	Filter    filter.Filter
	Cursor    string    // empty: the first page
	Limit     int       // 0: ListDefaultLimit; at most ListMaxLimit
	Now       time.Time // what ages are relative to; zero: time.Now
	SkipTotal bool      // the caller doesn't show it
}

// ListRow is a dead job in a list: never anything of its payload. All texts
// are redacted.
type ListRow struct {
	ID              int64
	Environment     string
	Source          string
	JobID           string
	Generation      int
	JobType         string
	Tenant          string
	Entity          string
	IdempotencyKey  string
	Status          string
	Effect          string
	Category        string
	ErrorClass      string
	ErrorMessage    string // one line, at most 500 characters
	StatusCode      int    // 0: none
	Fingerprint     string
	AttemptCount    int
	MaxAttempts     int // 0: not told
	DiedAt          time.Time
	DiedAtNote      string // why DiedAt isn't the worker's word; empty: it is
	CapturedAt      time.Time
	PayloadSize     int64
	SnoozedUntil    *time.Time
	Assignee        string
	LastReplayState string // of its latest replay: a state, or how it ended; empty: none
}

// ListTotal is how many jobs match.
type ListTotal struct {
	N    int64
	More bool // counting stopped at N: there are more
}

// ListPage is one page, newest death first.
type ListPage struct {
	Rows       []ListRow
	Next, Prev string // cursors of the pages beside it; empty: there is none
	Total      ListTotal
}

// listColumns are those of ListRow; the replay's comes beside them.
const listColumns = `id, environment, source, job_id, generation, job_type, tenant, entity, idempotency_key, status, effect,
       category, error_class, error_message, status_code, fingerprint, attempt_count, max_attempts, died_at, died_at_note,
       captured_at, payload_size, snoozed_until, assignee`

// List reads one page of the dead jobs that the principal may read and the
// filter selects. Errors: Invalid (limit, cursor), Forbidden for one who may
// read nothing.
func List(ctx context.Context, db DB, p *rbac.Principal, q ListQuery) (ListPage, error) {
	at, err := q.prepare()
	if err != nil {
		return ListPage{}, err
	}
	scope, scopeArgs, err := ListScope(p, rbac.Read, "d")
	if err != nil {
		return ListPage{}, err
	}
	sql, args := listSQL(q, p, at, scope, scopeArgs)
	rows, err := db.Query(ctx, sql, args)
	if err != nil {
		return ListPage{}, fmt.Errorf("dlq: list: %w", err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[ListRow])
	if err != nil {
		return ListPage{}, fmt.Errorf("dlq: list: %w", err)
	}
	page := q.page(found, at)
	if !q.SkipTotal {
		if page.Total, err = listTotal(ctx, db, q, scope, scopeArgs); err != nil {
			return ListPage{}, err
		}
	}
	return page, nil
}

// prepare checks the query, fills its defaults and reads its cursor.
func (q *ListQuery) prepare() (*cursor.Cursor, error) {
	switch {
	case q.Limit < 0 || q.Limit > ListMaxLimit:
		return nil, problem.At(problem.Invalid, "limit", "The limit must be between 1 and %d.", ListMaxLimit)
	case q.Limit == 0:
		q.Limit = ListDefaultLimit
	}
	if q.Now.IsZero() {
		q.Now = time.Now()
	}
	if q.Cursor == "" {
		return nil, nil
	}
	at, err := cursor.Parse(q.Cursor, listCursor, q.Filter.Hash())
	if err != nil {
		return nil, err
	}
	return &at, nil
}

// page cuts the row that was read too many, which tells whether there is more.
func (q *ListQuery) page(found []ListRow, at *cursor.Cursor) ListPage {
	more := len(found) > q.Limit
	if more {
		found = found[:q.Limit]
	}
	backwards := at != nil && at.Direction == cursor.Prev
	if backwards {
		slices.Reverse(found)
	}
	page := ListPage{Rows: found}
	if len(found) == 0 {
		return page
	}
	place := func(r ListRow, d cursor.Direction) string {
		return cursor.Cursor{List: listCursor, Direction: d, At: r.DiedAt, ID: r.ID, Hash: q.Filter.Hash()}.String()
	}
	if more || backwards {
		page.Next = place(found[len(found)-1], cursor.Next)
	}
	if at != nil && (more || !backwards) {
		page.Prev = place(found[0], cursor.Prev)
	}
	return page
}
