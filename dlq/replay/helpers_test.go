package replay_test

import (
	"errors"

	"github.com/jackc/pgx/v5/pgconn"
)

// isLockTimeout says that an outcome gave way and is asked for again.
func isLockTimeout(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == "55P03"
}
