package dlq

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/redrive-dlq/redrive/dlq/problem"
)

const (
	// inboxSource is the source of documents from the SQL door that name none.
	inboxSource = "sql"
	inboxEvery  = 250 * time.Millisecond
	inboxChunk  = 100
	// inboxBytes bounds how much text one chunk holds in memory.
	inboxBytes = 32 << 20
	// inboxLongestWait is the backoff's ceiling while the database is away.
	inboxLongestWait = 15 * time.Second
)

// Inbox takes the documents that workers left by redrive.capture_dead_job.
// Any number of processes may run one on the same database.
type Inbox struct {
	Pool     *pgxpool.Pool
	Capturer *Capturer
	Every    time.Duration // between polls; 0 means 250 ms
	Log      *slog.Logger  // nil means slog.Default
}

// inboxRow is one document as it was left.
type inboxRow struct {
	ID          int64
	Document    string
	Environment string // the caller's redrive.environment setting
	ReceivedAt  time.Time
}

// Run drains the inbox until the context ends. While the database is away it
// tries again, more and more slowly.
func (in *Inbox) Run(ctx context.Context) error {
	every := in.Every
	if every <= 0 {
		every = inboxEvery
	}
	log := in.Log
	if log == nil {
		log = slog.Default()
	}
	wait := every
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
		if _, err := in.Drain(ctx); err != nil && ctx.Err() == nil {
			wait = min(2*wait, inboxLongestWait)
			log.WarnContext(ctx, "the inbox was not drained; its documents stay where they are", "error", err, "again_in", wait)
		} else {
			wait = every
		}
		timer.Reset(wait)
	}
}

// Drain takes all documents that are there now, a chunk per transaction, and
// returns how many it took. A chunk that fails is taken row by row, so that
// one bad document harms only itself: it is quarantined.
func (in *Inbox) Drain(ctx context.Context) (int, error) {
	total := 0
	for ctx.Err() == nil {
		ids, err := in.peek(ctx)
		if err != nil || len(ids) == 0 {
			return total, err
		}
		n, err := in.take(ctx, ids, nil)
		if err != nil {
			if !dataFault(err) {
				return total, err
			}
			if n, err = in.takeEach(ctx, ids); err != nil {
				return total + n, err
			}
		}
		total += n
		if n == 0 {
			return total, nil // another process is at these
		}
	}
	return total, ctx.Err()
}

// peek picks the oldest documents that together fit a chunk, at least one,
// without reading them.
func (in *Inbox) peek(ctx context.Context) ([]int64, error) {
	rows, err := in.Pool.Query(ctx, `
		SELECT id
		FROM (
			SELECT id, sum(octet_length(document)) OVER (ORDER BY id) AS bytes, row_number() OVER (ORDER BY id) AS n
			FROM (SELECT id, document FROM redrive.inbox ORDER BY id FOR UPDATE SKIP LOCKED LIMIT $1) oldest) sized
		WHERE n = 1 OR bytes <= $2
		ORDER BY id`, inboxChunk, inboxBytes)
	if err != nil {
		return nil, fmt.Errorf("dlq: inbox: look: %w", err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return nil, fmt.Errorf("dlq: inbox: look: %w", err)
	}
	return ids, nil
}

// takeEach takes rows one by one after their chunk failed; a row that fails
// alone is quarantined with what the failure was.
func (in *Inbox) takeEach(ctx context.Context, ids []int64) (int, error) {
	total := 0
	for _, id := range ids {
		n, err := in.take(ctx, []int64{id}, nil)
		if err != nil && dataFault(err) {
			n, err = in.take(ctx, []int64{id}, err)
		}
		if err != nil {
			return total, err
		}
		total += n
	}
	return total, nil
}

// take captures, quarantines and deletes rows in one transaction. Rows that
// another process holds are left to it. With a fault the rows are quarantined
// for it, unread.
func (in *Inbox) take(ctx context.Context, ids []int64, fault error) (taken int, err error) {
	err = pgx.BeginFunc(ctx, in.Pool, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `
			DELETE FROM redrive.inbox
			WHERE id IN (SELECT id FROM redrive.inbox WHERE id = ANY($1) ORDER BY id FOR UPDATE SKIP LOCKED)
			RETURNING id, document, environment, received_at`, ids)
		if err != nil {
			return err
		}
		found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[inboxRow])
		if err != nil {
			return err
		}
		taken = len(found)
		return in.capture(ctx, tx, found, fault)
	})
	if err != nil {
		return 0, fmt.Errorf("dlq: inbox: %w", err)
	}
	return taken, nil
}

func (in *Inbox) capture(ctx context.Context, tx pgx.Tx, rows []inboxRow, fault error) error {
	var docs []*Document
	var from []inboxRow
	for _, r := range sortedByID(rows) {
		doc, err := (*Document)(nil), fault
		if err == nil {
			doc, err = ParseDocument([]byte(r.Document), Defaults{Environment: r.Environment, Source: inboxSource})
		}
		if err != nil {
			if err := in.quarantine(ctx, tx, r, err); err != nil {
				return err
			}
			continue
		}
		docs, from = append(docs, doc), append(from, r)
	}
	if len(docs) == 0 {
		return nil
	}
	answers, err := in.Capturer.Capture(ctx, tx, docs)
	if err != nil {
		return err
	}
	for i, a := range answers {
		if a.Err != nil {
			if err := in.quarantine(ctx, tx, from[i], a.Err); err != nil {
				return err
			}
		}
	}
	return nil
}

func (in *Inbox) quarantine(ctx context.Context, tx pgx.Tx, r inboxRow, cause error) error {
	return in.Capturer.Quarantine(ctx, tx, QuarantineEntry{
		Door: "sql", Environment: r.Environment, Source: inboxSource, Err: cause, Raw: []byte(r.Document), ReceivedAt: r.ReceivedAt,
	})
}

// dataFault reports whether a failure is about the data in hand, so that
// trying the same rows again together would fail the same way.
func dataFault(err error) bool {
	var own *problem.Error
	if errors.As(err, &own) {
		return true
	}
	var pg *pgconn.PgError
	if !errors.As(err, &pg) || len(pg.Code) != 5 {
		return false
	}
	switch pg.Code[:2] {
	case "21", "22", "23", "54": // cardinality, data, constraint, program limit; not 42: a missing right is no fault of the document
		return true
	}
	return false
}

// sortedByID restores the order in which the documents came in.
func sortedByID(rows []inboxRow) []inboxRow {
	slices.SortFunc(rows, func(a, b inboxRow) int { return cmp.Compare(a.ID, b.ID) })
	return rows
}
