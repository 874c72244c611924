package bench

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// table is one that a capture fills; its rows are copied by plain inserts.
type table struct {
	name    string
	parent  string // the column that holds the new id of the row above
	columns []string
	rows    [][]any
}

// plainInsert times the plainest way to write what a capture writes: the rows
// of 100 captured jobs under new job ids, finished, one multi-row INSERT a
// table.
func (b *bench) plainInsert(ctx context.Context) (time.Duration, error) {
	rows, err := b.pool.Query(ctx, `SELECT id FROM redrive.dead_jobs ORDER BY id DESC LIMIT $1`, perRequest)
	if err != nil {
		return 0, err
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return 0, err
	}
	jobs, err := b.read(ctx, "dead_jobs", "id", ids, "id")
	if err != nil {
		return 0, err
	}
	b.rename(jobs)
	var children []*table
	for _, name := range []string{"payloads", "documents", "deaths", "attempts"} {
		child, err := b.read(ctx, name, "dead_job_id", ids, "id")
		if err != nil {
			return 0, err
		}
		children = append(children, child)
	}
	return timed(func() error {
		return pgx.BeginFunc(ctx, b.pool, func(tx pgx.Tx) error {
			made, err := jobs.insert(ctx, tx, true)
			if err != nil {
				return err
			}
			for _, child := range children {
				child.adopt(made)
				if _, err := child.insert(ctx, tx, false); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// read takes the finished rows of a table, in the order of ids, without the
// generated column.
func (b *bench) read(ctx context.Context, name, key string, ids []int64, generated string) (*table, error) {
	rows, err := b.pool.Query(ctx, `
		SELECT column_name
		FROM information_schema.columns
		WHERE table_schema = 'redrive' AND table_name = $1 AND (column_name <> $2 OR is_identity = 'NO')
		ORDER BY ordinal_position`, name, generated)
	if err != nil {
		return nil, err
	}
	t := &table{name: name, parent: key}
	if t.columns, err = pgx.CollectRows(rows, pgx.RowTo[string]); err != nil {
		return nil, err
	}
	rows, err = b.pool.Query(ctx, fmt.Sprintf(`
		SELECT %s
		FROM redrive.%s
		JOIN unnest($1::bigint[]) WITH ORDINALITY AS u(wanted, place) ON %s = wanted
		ORDER BY place`, strings.Join(t.columns, ", "), name, key), ids)
	if err != nil {
		return nil, err
	}
	t.rows, err = pgx.CollectRows(rows, func(r pgx.CollectableRow) ([]any, error) { return r.Values() })
	return t, err
}

// rename gives each job an identity and key of its own.
func (b *bench) rename(jobs *table) {
	for _, row := range jobs.rows {
		for i, column := range jobs.columns {
			switch column {
			case "job_id", "idempotency_key", "entity":
				row[i] = fmt.Sprintf("plain-%d", b.next)
			}
		}
		b.next++
	}
}

// adopt hangs the rows below the new jobs; each job has one row in each table here.
func (t *table) adopt(ids []int64) {
	for i, row := range t.rows {
		for k, column := range t.columns {
			if column == t.parent {
				row[k] = ids[i]
			}
		}
	}
}

// insert writes all rows by one statement.
func (t *table) insert(ctx context.Context, tx pgx.Tx, returning bool) ([]int64, error) {
	var sql strings.Builder
	fmt.Fprintf(&sql, "INSERT INTO redrive.%s (%s) VALUES ", t.name, strings.Join(t.columns, ", "))
	args := make([]any, 0, len(t.rows)*len(t.columns))
	for i, row := range t.rows {
		if i > 0 {
			sql.WriteString(", ")
		}
		sql.WriteByte('(')
		for k, value := range row {
			if k > 0 {
				sql.WriteString(", ")
			}
			args = append(args, value)
			fmt.Fprintf(&sql, "$%d", len(args))
		}
		sql.WriteByte(')')
	}
	if !returning {
		_, err := tx.Exec(ctx, sql.String(), args...)
		return nil, err
	}
	rows, err := tx.Query(ctx, sql.String()+" RETURNING id", args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[int64])
}
