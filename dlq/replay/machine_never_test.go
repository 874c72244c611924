package replay_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"
)

// never lists what no store may ever hold, by the promise it would break.
var never = map[string]string{
	"an active replay of a job that isn't replaying": `
		SELECT r.id FROM redrive.replays r JOIN redrive.dead_jobs d ON d.id = r.dead_job_id
		WHERE r.state IN ('pending', 'ready', 'released') AND d.status <> 'replaying' AND d.generation = r.generation`,
	"two active replays of a job": `
		SELECT min(id) FROM redrive.replays WHERE state IN ('ready', 'released') GROUP BY dead_job_id HAVING count(*) > 1`,
	"two active replays of a key": `
		SELECT min(id) FROM redrive.replays WHERE state IN ('ready', 'released') AND idempotency_key <> ''
		GROUP BY environment, key_scope, idempotency_key HAVING count(*) > 1`,
	"two replays of an entity out": `
		SELECT min(id) FROM redrive.replays WHERE state = 'released' AND entity <> '' GROUP BY environment, entity HAVING count(*) > 1`,
	"an entity's replays of one batch out of order": `
		SELECT a.id FROM redrive.replays a JOIN redrive.replays b ON b.batch_id = a.batch_id AND b.entity = a.entity AND b.released_at > a.released_at
		WHERE a.entity <> '' AND (b.order_at, b.id) < (a.order_at, a.id)`,
	"a replay that left without its batch's order in the log": `
		SELECT r.id FROM redrive.replays r JOIN redrive.batches b ON b.id = r.batch_id
		WHERE r.released_at IS NOT NULL AND NOT EXISTS (
			SELECT FROM redrive.audit_entries a WHERE a.id = b.order_entry AND a.batch_id = b.id)`,
	"a replay that left before its batch was confirmed, or with an approval missing": `
		SELECT r.id FROM redrive.replays r JOIN redrive.batches b ON b.id = r.batch_id
		WHERE r.released_at IS NOT NULL AND (b.confirmed_at IS NULL OR (b.needs_approval <> '' AND (b.approved_at IS NULL OR b.approved_by_id = b.confirmed_by_id)))`,
	"a replay that left although its verdict was no": `
		SELECT id FROM redrive.replays WHERE state <> 'planned' AND verdict <> 'eligible'`,
	"a replay sent to another environment": `
		SELECT r.id FROM redrive.replays r JOIN redrive.batches b ON b.id = r.batch_id
		WHERE b.environment <> r.environment OR b.target ->> 'url' NOT LIKE '%/' || r.environment`,
	"a stop without an entry": `
		SELECT b.id FROM redrive.batches b
		WHERE b.state = 'paused' AND b.pause_kind = 'failures' AND NOT EXISTS (
			SELECT FROM redrive.audit_entries a WHERE a.batch_id = b.id AND a.action = 'batch.stop')`,
	"tallies that differ from the rows": `
		SELECT coalesce(r.batch_id, t.batch_id)
		FROM (SELECT batch_id, redrive.tally_of(state, outcome, verdict) AS tally, count(*) AS n FROM redrive.replays GROUP BY 1, 2) r
		FULL JOIN redrive.batch_tallies t USING (batch_id, tally)
		WHERE r.n IS DISTINCT FROM t.n`,
	"totals that don't add up to what was planned": `
		SELECT b.id FROM redrive.batches b
		WHERE b.planned <> (SELECT coalesce(sum(n), 0) FROM redrive.batch_tallies t WHERE t.batch_id = b.id)`,
	"a destination above its concurrency": `
		SELECT min(id) FROM redrive.replays WHERE state = 'released' GROUP BY environment, destination HAVING count(*) > 4`,
	"more than burst and rate allow": `
		SELECT a.id
		FROM redrive.replays a
		JOIN redrive.replays b ON (b.environment, b.job_type) = (a.environment, a.job_type) AND b.released_at >= a.released_at
		JOIN redrive.replays c ON (c.environment, c.job_type) = (a.environment, a.job_type) AND c.released_at BETWEEN a.released_at AND b.released_at
		GROUP BY a.id, b.id, a.job_type, a.released_at, b.released_at
		HAVING count(*) > CASE a.job_type WHEN 'sync_contact' THEN 2 + 2 * extract(epoch FROM b.released_at - a.released_at)
		                                  ELSE 3 + extract(epoch FROM b.released_at - a.released_at) END + 0.001`,
}

func (m *machine) invariants(t *rapid.T) {
	for what, sql := range never {
		if ids := m.ids(t, `SELECT id FROM (`+sql+`) bad(id)`); len(ids) > 0 {
			t.Fatalf("%s: %v", what, ids)
		}
	}
	for key, n := range m.effects {
		if n > 1 {
			t.Fatalf("the effect of %s happened %d times", key, n)
		}
	}
	m.hashes(t)
}

// hashes recomputes the plan's hash of each batch that has one.
func (m *machine) hashes(t *rapid.T) {
	rows, err := m.pool.Query(context.Background(), `SELECT id, plan_hash FROM redrive.batches WHERE kind = 'batch' AND plan_hash <> '' AND state <> 'planning'`)
	if err != nil {
		t.Fatal(err)
	}
	type plan struct {
		ID   int64
		Hash string
	}
	plans, err := pgx.CollectRows(rows, pgx.RowToStructByPos[plan])
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range plans {
		rows, err := m.pool.Query(context.Background(), `
			SELECT dead_job_id, generation, payload_version, verdict FROM redrive.replays WHERE batch_id = $1 ORDER BY dead_job_id`, p.ID)
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.New()
		fmt.Fprint(sum, "redrive plan v1\n")
		type item struct {
			Job                 int64
			Generation, Version int
			Verdict             string
		}
		items, err := pgx.CollectRows(rows, pgx.RowToStructByPos[item])
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range items {
			fmt.Fprintf(sum, "%d %d %d %s\n", i.Job, i.Generation, i.Version, i.Verdict)
		}
		if got := hex.EncodeToString(sum.Sum(nil)); got != p.Hash {
			t.Fatalf("batch %d: its items don't make its plan's hash any more", p.ID)
		}
	}
}
