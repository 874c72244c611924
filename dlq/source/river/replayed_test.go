package river

import "testing"

// TestDeathOfAReplayIsItsJobs: a job from another door died in the row that a
// replay made for it. It is one job, not two.
func TestDeathOfAReplayIsItsJobs(t *testing.T) {
	t.Parallel()
	b := setup(t)
	job := one[int64](b, b.store, `
		INSERT INTO redrive.dead_jobs (environment, source, job_id, job_type, key_scope, fingerprint, died_at, last_death_at)
		VALUES ('production', 'api', 'mail-7', 'send_welcome_email', 's', 'f', now() - interval '1 hour', now() - interval '1 hour')
		RETURNING id`)
	replay := one[string](b, b.store, `
		WITH b AS (
			INSERT INTO redrive.batches (environment, job_type, kind, state, cutoff, created_by, target)
			VALUES ('production', 'send_welcome_email', 'single', 'running', now(), 'x', '{"client": "app-prod"}')
			RETURNING id)
		INSERT INTO redrive.replays (batch_id, dead_job_id, generation, payload_version, environment, source, job_id, job_type, key_scope, target_kind, state)
		SELECT id, $1, 1, 1, 'production', 'api', 'mail-7', 'send_welcome_email', 's', 'river', 'released'
		FROM b
		RETURNING id::text`, job)
	b.dead(map[string]string{"attempt": "1", "max_attempts": "1",
		"metadata": `'{"redrive:job_id": "mail-7", "redrive:replay": "` + replay + `"}'`})
	// A marker that names no replay of this job changes nothing.
	b.dead(map[string]string{"metadata": `'{"redrive:job_id": "mail-8", "redrive:replay": "` + replay + `"}'`})
	b.poll()
	got := one[string](b, b.store, `SELECT string_agg(concat_ws('/', source, job_id, generation), ' ' ORDER BY id) FROM redrive.dead_jobs`)
	if want := "api/mail-7/2 app/mail-8/1"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
