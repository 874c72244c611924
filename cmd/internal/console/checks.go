package console

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
)

// checkConnections is how many checks of an environment ask at once.
const checkConnections = 4

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

// checkDatabases opens the databases of declared checks. Each session is
// read-only by default, whatever its role may do.
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
		pool, err := pgxpool.NewWithConfig(ctx, config)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		c.close = append(c.close, pool.Close)
		pools[environment] = pool
	}
	return func(environment string) *pgxpool.Pool { return pools[environment] }, nil
}
