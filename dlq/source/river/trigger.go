package river

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/redrive-dlq/redrive/dlq/problem"
)

// The triggers on river_job: one for deaths, one for dead rows that are deleted.
const (
	diedTrigger    = "redrive_died"
	deletedTrigger = "redrive_deleted"
)

// lockWait bounds how long the application's jobs wait behind us while we wait
// for its table.
const lockWait = "2s"

// InstallTrigger makes River's table tell each death in the transaction that
// makes it, and each dead row that is deleted before it was taken. Then no death
// is missed even when its row goes at once. It is for a River in the store's own
// database, and may be repeated.
//
// The cost is the application's: one row inserted for each death. TRUNCATE of
// river_job isn't seen. The caller's role must own the table or hold TRIGGER on
// it, and EXECUTE on redrive.river_death.
//
// Errors: problem.Invalid without such a table or the right to it,
// problem.Conflict when the table is busy.
func InstallTrigger(ctx context.Context, tx pgx.Tx, schema, environment, source string) error {
	return alter(ctx, tx, schema, `
		SELECT format('CREATE OR REPLACE TRIGGER %I AFTER UPDATE OF state ON %s FOR EACH ROW
		           WHEN (NEW.finalized_at IS NOT NULL AND NEW.state IN (''discarded'', ''cancelled'')
		                 AND (OLD.state, OLD.finalized_at) IS DISTINCT FROM (NEW.state, NEW.finalized_at))
		           EXECUTE FUNCTION redrive.river_death(%L, %L)',
		           @died::text, @table::text, @environment::text, @source::text)
		UNION ALL
		SELECT format('CREATE OR REPLACE TRIGGER %I AFTER DELETE ON %s FOR EACH ROW
		           WHEN (OLD.finalized_at IS NOT NULL AND OLD.state IN (''discarded'', ''cancelled''))
		           EXECUTE FUNCTION redrive.river_death(%L, %L)',
		           @deleted::text, @table::text, @environment::text, @source::text)`,
		pgx.NamedArgs{"environment": environment, "source": source})
}

// RemoveTrigger undoes InstallTrigger; what is in the inbox is still taken.
// Errors as there.
func RemoveTrigger(ctx context.Context, tx pgx.Tx, schema string) error {
	return alter(ctx, tx, schema, `
		SELECT format('DROP TRIGGER IF EXISTS %I ON %s', t.name, @table::text)
		FROM unnest(ARRAY[@died, @deleted]::text[]) AS t (name)`, pgx.NamedArgs{})
}

// alter runs the statements that PostgreSQL itself writes, with its own quoting.
func alter(ctx context.Context, tx pgx.Tx, schema, statements string, args pgx.NamedArgs) error {
	args["table"], args["died"], args["deleted"] = jobTable(schema), diedTrigger, deletedTrigger
	if _, err := tx.Exec(ctx, `SELECT set_config('lock_timeout', @wait, true)`, pgx.NamedArgs{"wait": lockWait}); err != nil {
		return fmt.Errorf("river: trigger: %w", err)
	}
	rows, err := tx.Query(ctx, statements, args)
	if err != nil {
		return fmt.Errorf("river: trigger: %w", err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("river: trigger: %w", err)
	}
	for _, sql := range list {
		if _, err := tx.Exec(ctx, sql); err != nil {
			return triggerProblem(err, schema)
		}
	}
	return nil
}

func triggerProblem(err error, schema string) error {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return fmt.Errorf("river: trigger: %w", err)
	}
	switch pg.Code {
	case "42P01", "3F000":
		return problem.Wrap(err, problem.Invalid, "There is no table river_job in the schema %q: check the name, and that River's migrations ran there.", schema)
	case "42501":
		return problem.Wrap(err, problem.Invalid, "This database role may not put a trigger on river_job in %q: it must own the table or hold TRIGGER on it.", schema)
	case "55P03":
		return problem.Wrap(err, problem.Conflict, "The table river_job in %q is busy. Nothing was changed; try again.", schema)
	default:
		return fmt.Errorf("river: trigger: %w", err)
	}
}
