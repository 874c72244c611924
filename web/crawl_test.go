package web

import (
	"context"
	"maps"
	"net/http"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/rbac"
)

// GET never changes anything: the tables have as many rows after every page was
// asked for, by every role, as before.
func TestGetsChangeNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var clients []*client
	for _, role := range rbac.AllRoles() {
		clients = append(clients, b.as(t, role), b.bearer(rbac.DemoToken(role)))
	}
	before := rowCounts(t, b)
	for _, r := range b.server.Routes() {
		if r.writes() || r.Stream {
			continue
		}
		for _, cl := range clients {
			for _, query := range []string{"", "?_method=DELETE&status=discarded&id=1&confirm=yes&reason=because"} {
				cl.get(target(r) + query)
				cl.do(http.MethodHead, target(r)+query, "", "")
			}
		}
	}
	if after := rowCounts(t, b); !maps.Equal(before, after) {
		t.Errorf("rows before: %v\nafter: %v", before, after)
	}
}

func rowCounts(t *testing.T, b *testBundle) map[string]int {
	t.Helper()
	ctx := context.Background()
	rows, err := b.pool.Query(ctx, `
		SELECT quote_ident(table_name)
		FROM information_schema.tables
		WHERE table_schema = 'redrive' AND table_type = 'BASE TABLE'`)
	if err != nil {
		t.Fatal(err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	for _, name := range names {
		var n int
		if err := b.pool.QueryRow(ctx, `SELECT count(*) FROM redrive.`+name).Scan(&n); err != nil {
			t.Fatal(err)
		}
		counts[name] = n
	}
	return counts
}
