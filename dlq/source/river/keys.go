package river

import (
	"cmp"
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// key is what a death is known by in River. FinalizedAt may be infinite: River
// doesn't forbid it, so it must not stop a poll.
type key struct {
	ID          int64
	Attempt     int32
	FinalizedAt pgtype.Timestamptz
	Size        int64 // bytes of the row as stored; bounds what is fetched at once
}

// String is equal for the same death, whatever zone its time was read in.
func (k key) String() string {
	return fmt.Sprintf("%d/%d/%s", k.ID, k.Attempt, timeText(k.FinalizedAt))
}

// compareKeys orders deaths of one row by when they happened there.
func compareKeys(a, b key) int {
	return cmp.Or(
		cmp.Compare(a.ID, b.ID),
		cmp.Compare(a.Attempt, b.Attempt),
		a.FinalizedAt.Time.Compare(b.FinalizedAt.Time),
	)
}

// scanKey reads a row of (id, attempt, finalized_at, size).
func scanKey(row pgx.CollectableRow) (key, error) {
	var k key
	err := row.Scan(&k.ID, &k.Attempt, &k.FinalizedAt, &k.Size)
	return k, err
}

// sizeOf costs no detoasting: it reads lengths only.
const sizeOf = `pg_column_size(j.args) + pg_column_size(j.metadata) + coalesce(pg_column_size(j.errors), 0)`

// notTaken is the anti-join, for a row k with (id, attempt, finalized_at). It is
// written as a scalar subquery so that the planner can't turn it into a join: on
// a table that it has no statistics of, that join was quadratic (2 s for 3,600
// rows), and with them it read all marks for each poll. This way it is one probe
// of the primary key for each row.
const notTaken = `(
		    SELECT true
		    FROM redrive.river_deaths d
		    WHERE d.environment = @environment
		      AND d.source = @source
		      AND d.river_id = k.id
		      AND d.attempt = k.attempt
		      AND d.finalized_at = k.finalized_at
		    LIMIT 1) IS NULL`

// recentSQL is the poll of a River in the store's own database. The clock is the
// database's, never ours.
// The dead rows are read before the limit can tempt the planner into a scan.
func (r *Reader) recentSQL() string {
	return `
		WITH k AS MATERIALIZED (
		    SELECT j.id, j.attempt, j.finalized_at, ` + sizeOf + ` AS size
		    FROM ` + r.table + ` j
		    WHERE j.state IN ('discarded', 'cancelled')
		      AND j.finalized_at > now() - interval '` + recentWindow + `')
		SELECT k.id, k.attempt, k.finalized_at, k.size
		FROM k
		WHERE ` + notTaken + `
		LIMIT @limit`
}

// recent returns up to chunkRows deaths of the last hour that are not taken;
// those dated in the future are among them.
func (r *Reader) recent(ctx context.Context) ([]key, error) {
	ctx, cancel := r.bounded(ctx)
	defer cancel()
	args := r.named()
	args["limit"] = chunkRows
	rows, err := r.from.Query(ctx, r.recentSQL(), args)
	return collectKeys(rows, err, "read recent deaths")
}

// deadStates are River's words for dead.
var deadStates = [...]string{"discarded", "cancelled"}

// mark is a place in the order (finalized_at, id) within a state.
type mark struct {
	At pgtype.Timestamptz
	ID int64
}

// first is before all rows.
func first() mark {
	return mark{At: pgtype.Timestamptz{Valid: true, InfinityModifier: pgtype.NegativeInfinity}}
}

func markOf(page []key) mark {
	last := page[len(page)-1]
	return mark{At: last.FinalizedAt, ID: last.ID}
}

// pageSQL walks River's own index on (state, finalized_at), so that completed
// jobs, of which there may be millions, are never touched.
func (r *Reader) pageSQL(state string) string {
	return `
		SELECT j.id, j.attempt, j.finalized_at, ` + sizeOf + `
		FROM ` + r.table + ` j
		WHERE j.state = '` + state + `'
		  AND j.finalized_at >= @at
		  AND (j.finalized_at, j.id) > (@at, @id)
		ORDER BY j.finalized_at, j.id
		LIMIT @limit`
}

// page returns up to pageRows deaths of a state after a mark, taken or not. Rows
// that commit behind the mark are the next pass's.
func (r *Reader) page(ctx context.Context, state string, after mark) ([]key, error) {
	rows, err := r.from.Query(ctx, r.pageSQL(state), pgx.NamedArgs{"at": after.At, "id": after.ID, "limit": pageRows})
	return collectKeys(rows, err, "read a page of deaths")
}

// untaken returns those of the keys that are not in the store, in order of id.
func (r *Reader) untaken(ctx context.Context, keys []key) ([]key, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	args := r.named()
	addKeys(args, keys)
	rows, err := r.store.Query(ctx, `
		SELECT k.id, k.attempt, k.finalized_at, k.size
		FROM unnest(@ids::bigint[], @attempts::integer[], @finals::timestamptz[], @sizes::bigint[])
		     AS k (id, attempt, finalized_at, size)
		WHERE `+notTaken+`
		ORDER BY k.id, k.attempt`, args)
	return collectKeys(rows, err, "compare deaths")
}

// addKeys puts keys into arguments as arrays for unnest.
func addKeys(args pgx.NamedArgs, keys []key) {
	ids, attempts := make([]int64, len(keys)), make([]int32, len(keys))
	finals, sizes := make([]pgtype.Timestamptz, len(keys)), make([]int64, len(keys))
	for i, k := range keys {
		ids[i], attempts[i], finals[i], sizes[i] = k.ID, k.Attempt, k.FinalizedAt, k.Size
	}
	args["ids"], args["attempts"], args["finals"], args["sizes"] = ids, attempts, finals, sizes
}

func collectKeys(rows pgx.Rows, err error, what string) ([]key, error) {
	if err != nil {
		return nil, fmt.Errorf("river: %s: %w", what, err)
	}
	keys, err := pgx.CollectRows(rows, scanKey)
	if err != nil {
		return nil, fmt.Errorf("river: %s: %w", what, err)
	}
	return keys, nil
}
