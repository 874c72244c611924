package river

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/redrive-dlq/redrive/dlq"
	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/dlq/source"
)

// take fetches the deaths of the keys and stores them, in parts.
func (r *Reader) take(ctx context.Context, keys []key) error {
	for _, part := range split(keys) {
		deaths, err := r.bodies(ctx, part)
		if err != nil {
			return err
		}
		if err := r.keep(ctx, deaths); err != nil {
			return err
		}
	}
	return nil
}

// keep stores deaths in one transaction. When one of them can't be stored, each
// gets a transaction of its own, so that a bad one harms only itself: it is
// quarantined and counts as taken.
func (r *Reader) keep(ctx context.Context, deaths []death) error {
	if len(deaths) == 0 {
		return nil
	}
	err := r.commit(ctx, deaths)
	if err == nil || !isDataFault(err) {
		return err
	}
	if len(deaths) == 1 {
		if deaths[0].fault != nil {
			return err // quarantining it is what failed
		}
		deaths[0].fault = err
		return r.commit(ctx, deaths)
	}
	for i := range deaths {
		if err := r.keep(ctx, deaths[i:i+1]); err != nil {
			return err
		}
	}
	return nil
}

// commit is one transaction: mark as taken, capture what is new, quarantine what
// can't be read, empty the inbox. The mark comes first: another process that
// takes the same deaths waits there and then finds nothing left to do.
func (r *Reader) commit(ctx context.Context, deaths []death) error {
	ctx, cancel := r.bounded(ctx)
	defer cancel()
	return inTx(ctx, r.store, func(tx pgx.Tx) error {
		slices.SortStableFunc(deaths, func(a, b death) int { return compareKeys(a.key, b.key) })
		after, err := r.lastAttempts(ctx, tx, deaths)
		if err != nil {
			return err
		}
		fresh, err := r.mark(ctx, tx, deaths)
		if err != nil {
			return err
		}
		if err := r.capture(ctx, tx, fresh, after); err != nil {
			return err
		}
		return r.emptyInbox(ctx, tx, deaths)
	})
}

// capture takes deaths that are new; each that is refused is quarantined.
func (r *Reader) capture(ctx context.Context, tx pgx.Tx, fresh []death, after map[int64]int) error {
	var docs []*dlq.Document
	var from []death // docs[i] tells from[i]
	for _, d := range fresh {
		doc, err := r.read(d, after)
		if err == nil {
			if err := r.ownIdentity(ctx, tx, doc); err != nil {
				return err
			}
			docs, from = append(docs, doc), append(from, d)
		} else if err := r.quarantine(ctx, tx, d, err); err != nil {
			return err
		}
	}
	if len(docs) == 0 {
		return nil
	}
	answers, err := r.cfg.Capturer.Capture(ctx, tx, docs)
	if err != nil {
		return fmt.Errorf("river: capture: %w", err)
	}
	captured := 0
	for i, a := range answers {
		if a.Outcome != dlq.CaptureRefused {
			captured++
		} else if err := r.quarantine(ctx, tx, from[i], a.Err); err != nil {
			return err
		}
	}
	return source.AddCaptured(ctx, tx, r.id, captured)
}

// ownIdentity gives a death in a row that a replay made or retried to the job
// that was replayed, which may have come through another door.
func (r *Reader) ownIdentity(ctx context.Context, tx pgx.Tx, doc *dlq.Document) error {
	var ref sourceRef
	if json.Unmarshal(doc.SourceRef, &ref) != nil {
		return nil
	}
	replayID, err := strconv.ParseInt(ref.Replay, 10, 64)
	if err != nil {
		return nil // no replay's
	}
	err = tx.QueryRow(ctx, `
		SELECT r.source
		FROM redrive.replays r
		JOIN redrive.batches b ON b.id = r.batch_id
		WHERE r.id = $1 AND r.environment = $2 AND r.job_id = $3 AND r.job_type = $4
		  AND r.target_kind = 'river' AND b.target ->> 'client' = $5`,
		replayID, doc.Environment, doc.JobID, doc.JobType, r.src.Client).Scan(&doc.Source)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return fmt.Errorf("river: look for the replay of a row: %w", err)
	}
	return nil
}

// read maps a death to its document; after says which attempts were told before.
func (r *Reader) read(d death, after map[int64]int) (*dlq.Document, error) {
	if d.fault != nil {
		return nil, d.fault
	}
	j, err := parseRow(d.raw)
	if err != nil {
		return nil, err
	}
	doc := r.document(j, d.key.FinalizedAt, after[j.ID])
	after[j.ID] = j.Attempt
	return doc, nil
}

// lastAttempts is the highest attempt of each row's earlier deaths, 0 for none.
func (r *Reader) lastAttempts(ctx context.Context, tx pgx.Tx, deaths []death) (map[int64]int, error) {
	args := r.named()
	addKeys(args, keysOf(deaths))
	rows, err := tx.Query(ctx, `
		SELECT k.id,
		       coalesce((
		           SELECT max(d.attempt)
		           FROM redrive.river_deaths d
		           WHERE d.environment = @environment
		             AND d.source = @source
		             AND d.river_id = k.id), 0)
		FROM unnest(@ids::bigint[]) AS k (id)`, args)
	if err != nil {
		return nil, fmt.Errorf("river: read earlier deaths: %w", err)
	}
	after := map[int64]int{}
	var id int64
	var attempt int
	_, err = pgx.ForEachRow(rows, []any{&id, &attempt}, func() error {
		after[id] = attempt
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("river: read earlier deaths: %w", err)
	}
	return after, nil
}

// mark writes the deaths into river_deaths and returns those that are new there.
func (r *Reader) mark(ctx context.Context, tx pgx.Tx, deaths []death) ([]death, error) {
	args := r.named()
	addKeys(args, keysOf(deaths))
	rows, err := tx.Query(ctx, `
		INSERT INTO redrive.river_deaths (environment, source, river_id, attempt, finalized_at)
		SELECT DISTINCT @environment::text, @source::text, k.id, k.attempt, k.finalized_at
		FROM unnest(@ids::bigint[], @attempts::integer[], @finals::timestamptz[])
		     AS k (id, attempt, finalized_at)
		ORDER BY k.id, k.attempt, k.finalized_at
		ON CONFLICT DO NOTHING
		RETURNING river_id, attempt, finalized_at, 0::bigint`, args)
	marked, err := collectKeys(rows, err, "mark deaths")
	if err != nil {
		return nil, err
	}
	isNew := make(map[string]bool, len(marked))
	for _, k := range marked {
		isNew[k.String()] = true
	}
	var fresh []death
	for _, d := range deaths {
		if name := d.key.String(); isNew[name] {
			fresh = append(fresh, d)
			delete(isNew, name) // told twice in one chunk
		}
	}
	return fresh, nil
}

func keysOf(deaths []death) []key {
	keys := make([]key, len(deaths))
	for i, d := range deaths {
		keys[i] = d.key
	}
	return keys
}

// isDataFault reports whether err is about the content of a row, so that trying
// again can't help: our own refusals, and PostgreSQL's data, constraint and
// limit errors.
func isDataFault(err error) bool {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return strings.HasPrefix(pg.Code, "22") || strings.HasPrefix(pg.Code, "23") || strings.HasPrefix(pg.Code, "54")
	}
	switch problem.CodeOf(err) {
	case problem.Invalid, problem.Malformed, problem.TooLarge, problem.Unsupported:
		return true
	default:
		return false
	}
}

// inTx commits what fn did, or rolls it back even when ctx is over.
func inTx(ctx context.Context, db interface {
	Begin(context.Context) (pgx.Tx, error)
}, fn func(pgx.Tx) error) error {
	tx, err := db.Begin(ctx)
	if err != nil {
		return fmt.Errorf("river: begin: %w", err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	if err := fn(tx); err != nil {
		return err
	}
	if err := tx.Commit(ctx); err != nil {
		return fmt.Errorf("river: commit: %w", err)
	}
	return nil
}
