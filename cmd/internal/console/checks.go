package console

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// checkConnections is how many checks of an environment ask at once.
const checkConnections = 4

// checkWait is how long the start waits for such a database.
const checkWait = 3 * time.Second

// checkVariable names the environment variable with the address of the
// database that an environment's checks ask.
func checkVariable(environment string) string {
	return "REDRIVE_CHECK_DATABASE_URL_" + strings.ToUpper(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, environment))
}

// errSuperuser: a read-only transaction holds a superuser back from tables, but
// not from files and programs.
var errSuperuser = errors.New("it signs in as a superuser; give it a role that may only read")

// checkDatabases opens the databases of declared checks. Each session is
// read-only by default, whatever its role may do; a superuser's is refused, at
// the start where the database answers then.
func (c *Console) checkDatabases(ctx context.Context) (func(string) *pgxpool.Pool, error) {
	if c.cfg.CheckDB != nil {
		return c.cfg.CheckDB, nil
	}
	pools := map[string]*pgxpool.Pool{}
	for _, environment := range c.cfg.Catalogue.Environments {
		name := checkVariable(environment)
		url := os.Getenv(name)
		if url == "" {
			continue
		}
		config, err := pgxpool.ParseConfig(url)
		if err != nil {
			return nil, fmt.Errorf("%s is no database address", name)
		}
		config.MaxConns = checkConnections
		config.ConnConfig.RuntimeParams["default_transaction_read_only"] = "on"
		config.AfterConnect = noSuperuser
		pool, err := pgxpool.NewWithConfig(ctx, config)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		c.close = append(c.close, pool.Close)
		if err := c.tryChecks(ctx, pool); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		pools[environment] = pool
	}
	return func(environment string) *pgxpool.Pool { return pools[environment] }, nil
}

// tryChecks signs in once. A database that is away now may be there later.
func (c *Console) tryChecks(ctx context.Context, pool *pgxpool.Pool) error {
	ctx, cancel := context.WithTimeout(ctx, checkWait)
	defer cancel()
	err := pool.Ping(ctx)
	if err != nil && !errors.Is(err, errSuperuser) {
		c.cfg.Log.WarnContext(ctx, "the database of declared checks doesn't answer; plans that need it wait", "error", err)
		return nil
	}
	return err
}

func noSuperuser(ctx context.Context, conn *pgx.Conn) error {
	var super bool
	err := conn.QueryRow(ctx, `SELECT rolsuper FROM pg_roles WHERE rolname = session_user`).Scan(&super)
	if err == nil && super {
		return errSuperuser
	}
	return err
}
