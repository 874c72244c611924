package audit

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/dlq/cursor"
	"github.com/redrive-dlq/redrive/dlq/problem"
)

// Limits of a page of the log.
const (
	ListDefaultLimit = 50
	ListMaxLimit     = 500
)

// listCursor marks the cursors of the audit log, newest entry first.
const listCursor = 'a'

// Querier is what reading needs: a pool or a transaction.
type Querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// Scope says whose entries may be read. This package knows nothing of roles:
// the caller derives it from the reader's right to read the log. The zero
// Scope reads nothing.
type Scope struct {
	Everywhere bool
	Limits     []Limit
	// Actor, when not empty, adds the entries of this actor: their own.
	Actor string
}

// Limit is an environment, a job type or both; empty means any.
type Limit struct{ Environment, JobType string }

// Query asks for one page of the log. What is empty doesn't limit.
type Query struct {
	Actor       string // exactly, or a part of the name in any case when it holds no @
	Action      string // exactly, or a family: "job."
	ObjectKind  string
	ObjectID    string
	Environment string
	DeadJob     int64
	About       []int64  // entries of any of these dead jobs …
	Keys        []string // … or on any of these keys (scope:key); both empty: not asked
	Batch       int64
	From, To    time.Time // from inclusive, to exclusive
	Cursor      string
	Limit       int // 0: ListDefaultLimit; at most ListMaxLimit
}

// Record is an entry as it was written.
type Record struct {
	ID          int64
	At          time.Time
	Actor       Actor
	Action      string
	Object      Object
	Environment string
	JobType     string
	DeadJob     int64 // 0: none
	Batch       int64 // 0: none
	Reason      string
	Details     map[string]any // ids, hashes and codes; numbers are json.Number
}

// Page is one page, newest entry first. Next and Prev are cursors of the pages
// beside it; empty: there is none.
type Page struct {
	Records    []Record
	Next, Prev string
}

// List reads one page of what the scope allows. Errors: Invalid (limit, cursor).
func List(ctx context.Context, db Querier, s Scope, q Query) (Page, error) {
	switch {
	case q.Limit < 0 || q.Limit > ListMaxLimit:
		return Page{}, problem.At(problem.Invalid, "limit", "The limit must be between 1 and %d.", ListMaxLimit)
	case q.Limit == 0:
		q.Limit = ListDefaultLimit
	}
	w := &where{args: pgx.NamedArgs{"limit": q.Limit + 1}}
	s.add(w)
	q.add(w)
	var at cursor.Cursor
	order := "at DESC, id DESC"
	if q.Cursor != "" {
		var err error
		if at, err = cursor.Parse(q.Cursor, listCursor, q.hash()); err != nil {
			return Page{}, err
		}
		w.args["at"], w.args["id"] = at.At, at.ID
		if at.Direction == cursor.Prev {
			w.and("(at, id) > (@at, @id)")
			order = "at ASC, id ASC"
		} else {
			w.and("(at, id) < (@at, @id)")
		}
	}
	found, err := read(ctx, db, `
		SELECT id, at, body
		FROM redrive.audit_entries
		WHERE `+w.String()+`
		ORDER BY `+order+`
		LIMIT @limit`, w.args)
	if err != nil {
		return Page{}, err
	}
	return q.page(found, at), nil
}

// OfJob reads a dead job's own entries, oldest first, at most limit of them:
// the latest ones. Whoever may read the job may read them; the caller checks.
func OfJob(ctx context.Context, db Querier, deadJob int64, limit int) ([]Record, error) {
	found, err := read(ctx, db, `
		SELECT id, at, body
		FROM redrive.audit_entries
		WHERE dead_job_id = @job
		ORDER BY id DESC
		LIMIT @limit`, pgx.NamedArgs{"job": deadJob, "limit": limit})
	slices.Reverse(found)
	return found, err
}

func (q Query) page(found []Record, at cursor.Cursor) Page {
	more := len(found) > q.Limit
	if more {
		found = found[:q.Limit]
	}
	backwards := at.Direction == cursor.Prev
	if backwards {
		slices.Reverse(found)
	}
	page := Page{Records: found}
	if len(found) == 0 {
		return page
	}
	place := func(r Record, d cursor.Direction) string {
		return cursor.Cursor{List: listCursor, Direction: d, At: r.At, ID: r.ID, Hash: q.hash()}.String()
	}
	if more || backwards {
		page.Next = place(found[len(found)-1], cursor.Next)
	}
	if at.Direction != 0 && (more || !backwards) {
		page.Prev = place(found[0], cursor.Prev)
	}
	return page
}

func read(ctx context.Context, db Querier, sql string, args pgx.NamedArgs) ([]Record, error) {
	rows, err := db.Query(ctx, sql, args)
	if err != nil {
		return nil, fmt.Errorf("audit: read: %w", err)
	}
	found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (r Record, err error) {
		var body string
		if err = row.Scan(&r.ID, &r.At, &body); err == nil {
			err = r.decode(body)
		}
		return r, err
	})
	if err != nil {
		return nil, fmt.Errorf("audit: read: %w", err)
	}
	return found, nil
}

// decode reads the entry from its body, which is what gets sealed.
func (r *Record) decode(text string) error {
	var b struct {
		Action string
		Actor  struct {
			Kind      Kind
			ID        string
			Name      string
			Roles     []string
			IP        string
			RequestID string `json:"request_id"`
		}
		Object      Object
		Environment string
		JobType     string `json:"job_type"`
		DeadJob     int64  `json:"dead_job"`
		Batch       int64
		Reason      string
		Details     map[string]any
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&b); err != nil {
		return fmt.Errorf("entry %d: %w", r.ID, err)
	}
	r.At = r.At.UTC()
	r.Actor = Actor{Kind: b.Actor.Kind, ID: b.Actor.ID, Name: b.Actor.Name, Roles: b.Actor.Roles, IP: b.Actor.IP, RequestID: b.Actor.RequestID}
	r.Action, r.Object, r.Environment, r.JobType = b.Action, b.Object, b.Environment, b.JobType
	r.DeadJob, r.Batch, r.Reason, r.Details = b.DeadJob, b.Batch, b.Reason, b.Details
	return nil
}

// ParseObject reads what people type for an object: "job 17", "job:17", or
// only an id.
func ParseObject(text string) (kind, id string) {
	text = strings.TrimSpace(text)
	if before, after, found := strings.Cut(text, " "); found {
		return before, strings.TrimSpace(after)
	}
	if before, after, found := strings.Cut(text, ":"); found && slices.Contains(objectKinds, before) {
		return before, after
	}
	return "", strings.TrimPrefix(text, "#")
}

var objectKinds = []string{"job", "batch", "replay", "hold", "destination", "key", "user", "session", "token", "source"}

func number(n int64) string { return strconv.FormatInt(n, 10) }
