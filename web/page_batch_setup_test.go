package web

import (
	"strings"
	"testing"
)

// ran stores a confirmed batch of welcome mails in a state, with so many
// replays where the map says (a state, an outcome or plan.VERDICT), as the
// release loop leaves them. It was confirmed by nobody of the demo.
func (b *testBundle) ran(t *testing.T, state string, where map[string]int) string {
	t.Helper()
	total, eligible := 0, 0
	for tally, n := range where {
		total += n
		if !strings.HasPrefix(tally, "plan.") || tally == "plan.eligible" {
			eligible += n
		}
	}
	id := query[string](t, b, `
		INSERT INTO redrive.batches (environment, job_type, kind, state, filter, cutoff, reason, plan_hash, plan_revision, planned_at, planned, eligible,
		                             created_by, created_by_id, created_at, target_kind, destination, review_hash, reviewed_by, reviewed_at, rate_per_minute, canary,
		                             confirmed_by, confirmed_by_id, confirmed_at, due_at, started_at, activated_at, finished_at, pause_kind, pause_why, paused_by, paused_at)
		SELECT 'production', 'send_welcome_email', 'batch', $1, 'type:send_welcome_email status:open', $2, 'the provider is <b>back</b>', 'planhash1', 1, $2, $3, $4,
		       'planner@elsewhere.test', 9001, $2, 'http', 'http://127.0.0.1:9010/jobs', 'reviewhash1', 'caller@elsewhere.test', $2, 120, 10,
		       'caller@elsewhere.test', 9002, $2, $2::timestamptz + CASE WHEN $1 = 'scheduled' THEN interval '5 minutes' ELSE interval '0' END,
		       CASE WHEN $1 <> 'scheduled' THEN $2::timestamptz END, $2, CASE WHEN $1 IN ('done', 'cancelled') THEN $2::timestamptz END,
		       CASE WHEN $1 = 'paused' THEN 'failures' ELSE '' END, CASE WHEN $1 = 'paused' THEN '6 of 20 failed (limit 20 %)' ELSE '' END, '', CASE WHEN $1 = 'paused' THEN $2::timestamptz END
		RETURNING id::text`, state, b.now(), total, eligible)
	for tally, n := range where {
		b.items(t, id, tally, n)
	}
	exec(t, b, `
		INSERT INTO redrive.runs (batch_id, environment, job_type, due_at, live, wave, rate_per_minute)
		SELECT id, environment, job_type, due_at, state <> 'paused', 1, rate_per_minute
		FROM redrive.batches
		WHERE id = $1::bigint AND state IN ('scheduled', 'running', 'paused', 'cancelling')`, id)
	return id
}

// items adds replays to a batch, of jobs that were purged since.
func (b *testBundle) items(t *testing.T, batch, tally string, n int) {
	t.Helper()
	exec(t, b, `
		INSERT INTO redrive.replays (batch_id, dead_job_id, generation, payload_version, environment, source, job_id, job_type, key_scope, target_kind, destination,
		                             verdict, state, outcome, outcome_code, outcome_detail, due_at, released_at, outcome_at)
		SELECT $1::bigint, 1000000 + (SELECT count(*) FROM redrive.replays) + i, 1, 1, 'production', 'app-production', 'wel_' || $2 || '_' || i, 'send_welcome_email', 'welcome', 'http',
		       'http://127.0.0.1:9010/jobs', CASE WHEN $2 LIKE 'plan.%' THEN substr($2, 6) ELSE 'eligible' END,
		       CASE WHEN $2 LIKE 'plan.%' THEN 'planned' WHEN $2 IN ('pending', 'ready', 'released') THEN $2 ELSE 'ended' END,
		       CASE WHEN $2 NOT LIKE 'plan.%' AND $2 NOT IN ('pending', 'ready', 'released') THEN $2 END,
		       CASE $2 WHEN 'skipped' THEN 'predecessor_failed' WHEN 'failed' THEN 'http_502' ELSE '' END,
		       CASE $2 WHEN 'failed' THEN '502 from the provider, password=`+canary+`' ELSE '' END, $4,
		       CASE WHEN $2 IN ('released', 'succeeded', 'already_done', 'failed', 'unconfirmed') THEN $4::timestamptz END,
		       CASE WHEN $2 NOT LIKE 'plan.%' AND $2 NOT IN ('pending', 'ready', 'released') THEN $4::timestamptz END
		FROM generate_series(1, $3::integer) i`, batch, tally, n, b.now())
}
