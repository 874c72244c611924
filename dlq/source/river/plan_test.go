package river

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// A poll and a step of a pass go through River's index on (state, finalized_at):
// an application has far more completed jobs than dead ones.
func TestReadingNeverScansTheTable(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(b.from, `
		INSERT INTO `+b.table+` (kind, args, state, finalized_at, attempt)
		SELECT 'k', '{}', (CASE WHEN i % 20 = 0 THEN 'discarded' ELSE 'completed' END)::"App_River".river_job_state,
		       now() - i * interval '1 minute', 1
		FROM generate_series(1, 30000) i`)
	b.exec(b.from, `ANALYZE `+b.table)
	b.complete()
	args := b.named()
	args["limit"], args["at"], args["id"] = pageRows, first().At, int64(0)
	for name, sql := range map[string]string{"recent": b.recentSQL(), "page": b.pageSQL(deadStates[0])} {
		plan := explain(b, `EXPLAIN (FORMAT JSON) `+sql, args)
		if strings.Contains(plan, `"Seq Scan"`) || !strings.Contains(plan, "river_job_state_and_finalized_at_index") {
			t.Errorf("%s: %s", name, plan)
		}
	}
}

func explain(b *bundle, sql string, args pgx.NamedArgs) string {
	b.t.Helper()
	return string(one[json.RawMessage](b, b.from, sql, args))
}
