package migrations

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

// State compares a database with this program.
type State struct {
	Current int64   // highest version applied; 0 on an empty database
	Target  int64   // highest version this program knows
	Missing []int64 // versions this program knows and the database lacks

	RiverCurrent int // the same for River's tables in our schema
	RiverTarget  int
}

// Pending reports whether Up has something to do.
func (s State) Pending() bool { return len(s.Missing) > 0 || s.RiverCurrent < s.RiverTarget }

// Ahead reports whether a newer Redrive migrated the database.
func (s State) Ahead() bool { return s.Current > s.Target }

// querier is what reading needs: a pool or one connection.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// Status reads how far the database is. It changes nothing and waits for no
// lock.
func Status(ctx context.Context, pool *pgxpool.Pool) (State, error) { return read(ctx, pool) }

// Pending reports whether the database lacks migrations of this program. It
// returns ErrAhead when a newer program migrated it.
func Pending(ctx context.Context, pool *pgxpool.Pool) (bool, error) {
	s, err := Status(ctx, pool)
	if err != nil {
		return false, err
	}
	if s.Ahead() {
		return false, ErrAhead
	}
	return s.Pending(), nil
}

func read(ctx context.Context, q querier) (State, error) {
	known, err := sources()
	if err != nil {
		return State{}, err
	}
	s := State{Target: known[len(known)-1]}
	applied, err := column[int64](ctx, q, versionTable, "version_id")
	if err != nil {
		return State{}, err
	}
	for _, v := range known {
		if !slices.Contains(applied, v) {
			s.Missing = append(s.Missing, v)
		}
	}
	if len(applied) > 0 {
		s.Current = slices.Max(applied)
	}
	m, err := rivermigrate.New(riverpgxv5.New(nil), &rivermigrate.Config{Schema: Schema})
	if err != nil {
		return State{}, fmt.Errorf("migrate: River: %w", err)
	}
	all := m.AllVersions()
	s.RiverTarget = all[len(all)-1].Version
	river, err := column[int](ctx, q, Schema+".river_migration", "version")
	if err != nil {
		return State{}, err
	}
	if len(river) > 0 {
		s.RiverCurrent = slices.Max(river)
	}
	return s, nil
}

// column reads all values of one column; none when the table doesn't exist.
// Names come from this package only.
func column[T any](ctx context.Context, q querier, table, name string) ([]T, error) {
	var exists bool
	if err := q.QueryRow(ctx, `select to_regclass($1) is not null`, table).Scan(&exists); err != nil {
		return nil, fmt.Errorf("migrate: look for %s: %w", table, err)
	}
	if !exists {
		return nil, nil
	}
	rows, err := q.Query(ctx, `select `+name+` from `+table)
	if err != nil {
		return nil, fmt.Errorf("migrate: read %s: %w", table, err)
	}
	values, err := pgx.CollectRows(rows, pgx.RowTo[T])
	if err != nil {
		return nil, fmt.Errorf("migrate: read %s: %w", table, err)
	}
	return values, nil
}
