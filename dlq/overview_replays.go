package dlq

// queueReplays finds how replays ended: the counts along the index of each
// destination's outcomes, the last ones along that of each type's.
func (r *overviewReader) queueReplays() {
	r.one(`
		SELECT count(*) FILTER (WHERE d.outcome IN ('succeeded', 'already_done')), count(*)
		FROM redrive.destinations t
		CROSS JOIN LATERAL (
		      SELECT environment, job_type, outcome
		      FROM redrive.replays
		      WHERE environment = t.environment AND destination = t.name
		        AND outcome IN ('succeeded', 'already_done', 'failed', 'unconfirmed')
		        AND outcome_at > @now::timestamptz - interval '24 hours'
		      ORDER BY outcome_at DESC
		      LIMIT @cap) d
		WHERE `+r.where, &r.o.Succeeded, &r.o.Ended)
	queueRows(r.batch, &r.o.Replays, `
		SELECT r.id, r.dead_job_id, r.environment, r.job_type, r.job_id, r.state,
		       coalesce(nullif(b.confirmed_by, ''), b.created_by) AS by, r.at
		FROM (SELECT e.*
		      FROM redrive.release_buckets d
		      CROSS JOIN LATERAL (
		            SELECT id, batch_id, dead_job_id, environment, job_type, job_id, outcome AS state, outcome_at AS at
		            FROM redrive.replays
		            WHERE environment = d.environment AND job_type = d.job_type AND outcome_at IS NOT NULL
		            ORDER BY outcome_at DESC, id DESC
		            LIMIT @last) e
		      WHERE `+r.where+`
		      ORDER BY e.at DESC, e.id DESC
		      LIMIT @last) r
		JOIN redrive.batches b ON b.id = r.batch_id
		ORDER BY r.at DESC, r.id DESC
		LIMIT @last`, r.args)
}

// queueUnderWay finds what left and what waits: how many from the tallies of
// the batches that have not ended, a few of what left, and a few single replays
// that wait; batches stand in a list of their own.
func (r *overviewReader) queueUnderWay() {
	r.one(`
		SELECT coalesce(sum(t.n) FILTER (WHERE t.tally = 'released'), 0)::bigint,
		       coalesce(sum(t.n) FILTER (WHERE t.tally <> 'released' AND d.state <> 'cancelling'), 0)::bigint
		FROM redrive.batches d
		CROSS JOIN LATERAL (
		      SELECT tally, n
		      FROM redrive.batch_tallies
		      WHERE batch_id = d.id AND tally IN ('plan.eligible', 'pending', 'ready', 'released')) t
		WHERE d.state IN ('scheduled', 'running', 'paused', 'cancelling') AND `+r.where, &r.o.InFlight, &r.o.Waiting)
	waiting := func(state string) string {
		return `
		             (SELECT id, batch_id, dead_job_id, environment, job_type, job_id, state, due_at AS at
		              FROM redrive.replays
		              WHERE batch_id = q.id AND state = '` + state + `' AND due_at IS NOT NULL
		              ORDER BY id
		              LIMIT @way)`
	}
	queueRows(r.batch, &r.o.UnderWay, `
		SELECT r.id, r.dead_job_id, r.environment, r.job_type, r.job_id, r.state,
		       coalesce(nullif(b.confirmed_by, ''), b.created_by) AS by, r.at
		FROM ((SELECT d.id, d.batch_id, d.dead_job_id, d.environment, d.job_type, d.job_id, d.state, d.released_at AS at
		       FROM redrive.replays d
		       WHERE d.state = 'released' AND d.released_at IS NOT NULL AND `+r.where+`
		       ORDER BY d.released_at DESC, d.id DESC
		       LIMIT @way)
		      UNION ALL
		      (SELECT w.*
		       FROM (SELECT d.id
		             FROM redrive.batches d
		             WHERE d.kind = 'single' AND d.state IN ('scheduled', 'running', 'paused') AND `+r.where+`
		             ORDER BY d.due_at NULLS FIRST, d.id
		             LIMIT @batches) q
		       CROSS JOIN LATERAL (`+waiting("ready")+`
		             UNION ALL`+waiting("pending")+`) w)) r
		JOIN redrive.batches b ON b.id = r.batch_id
		ORDER BY r.state <> 'released', CASE WHEN r.state = 'released' THEN r.at END DESC, r.at, r.id
		LIMIT @way`, r.args)
}
