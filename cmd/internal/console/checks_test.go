package console

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/dlq/jobtype"
	"github.com/redrive-dlq/redrive/migrations/testdb"
)

// TestChecksTakeNoSuperuser: a check's sign-in is refused at the start when it is
// a superuser's, taken when it may only read, and waited for when its database
// is away.
func TestChecksTakeNoSuperuser(t *testing.T) {
	address := testdb.Empty(t) // the tests' server signs everybody in as a superuser
	c := &Console{cfg: Config{Catalogue: &jobtype.Catalogue{Environments: []string{"production"}}, Log: slog.New(slog.DiscardHandler)}}
	t.Cleanup(c.Close)
	name := checkVariable("production")
	t.Setenv(name, address)
	if _, err := c.checkDatabases(t.Context()); !errors.Is(err, errSuperuser) {
		t.Errorf("a superuser: %v", err)
	}

	conn, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }() // only its role is used
	if _, err := conn.Exec(t.Context(), `DROP ROLE IF EXISTS checks_test; CREATE ROLE checks_test LOGIN PASSWORD 'only for tests'`); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.Background() // the test's has ended
		if conn, err := pgx.Connect(ctx, address); err == nil {
			_, _ = conn.Exec(ctx, `DROP ROLE checks_test`) // the server is thrown away
			_ = conn.Close(ctx)
		}
	})
	reader, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	reader.User = url.UserPassword("checks_test", "only for tests")
	t.Setenv(name, reader.String())
	find, err := c.checkDatabases(t.Context())
	if err != nil {
		t.Fatalf("a reader: %v", err)
	}
	if _, err := find("production").Exec(t.Context(), `CREATE TABLE t ()`); err == nil {
		t.Error("the sessions of checks can write")
	}

	t.Setenv(name, "postgres://nobody@127.0.0.1:1/nothing")
	if _, err := c.checkDatabases(t.Context()); err != nil {
		t.Errorf("a database that is away: %v", err)
	}
}
