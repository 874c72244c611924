package dlq

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/redrive-dlq/redrive/dlq/group"
)

const (
	// foldLock is the advisory lock of the one process that folds.
	foldLock int64 = 7321
	// foldChunk is how many deltas one transaction takes.
	foldChunk = 20_000
)

// FoldCounters moves the deltas that have been committed into their bases:
// counters, type_counters, death_counters, batch_counters and groups. It
// returns how many it folded; 0 at once when another process is at it. Readers
// see the same sums before and after (views counts, deaths_per_hour and
// batch_tallies); groups are brought up to date by it. Rows are upserted in key
// order under an advisory lock, so that folding never waits for a capture.
func FoldCounters(ctx context.Context, pool *pgxpool.Pool) (int, error) {
	total := 0
	for {
		n, err := foldOnce(ctx, pool)
		total += n
		if err != nil {
			return total, fmt.Errorf("dlq: fold counters: %w", err)
		}
		if n < foldChunk {
			return total, nil
		}
	}
}

// FoldLoop folds every so often until the context ends. Any number of
// processes may run it.
func FoldLoop(ctx context.Context, pool *pgxpool.Pool, every time.Duration, log *slog.Logger) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		if _, err := FoldCounters(ctx, pool); err != nil && ctx.Err() == nil {
			log.WarnContext(ctx, "counters were not folded; the next pass tries again", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func foldOnce(ctx context.Context, pool *pgxpool.Pool) (n int, err error) {
	err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		var mine bool
		if err := tx.QueryRow(ctx, `SELECT pg_try_advisory_xact_lock($1)`, foldLock).Scan(&mine); err != nil || !mine {
			return err
		}
		counts, err := foldCounts(ctx, tx)
		if err != nil {
			return err
		}
		deaths, err := foldDeaths(ctx, tx)
		if err != nil {
			return err
		}
		batches, err := foldBatches(ctx, tx)
		n = max(counts, deaths, batches)
		return err
	})
	return n, err
}

// foldCounts folds what dead_jobs are by state.
func foldCounts(ctx context.Context, tx pgx.Tx) (taken int, err error) {
	var zeros int
	err = tx.QueryRow(ctx, `
		WITH taken AS (
			DELETE FROM redrive.counter_deltas
			WHERE id IN (SELECT id FROM redrive.counter_deltas ORDER BY id LIMIT $1)
			RETURNING environment, job_type, category, status, fingerprint, n),
		sums AS (
			SELECT environment, job_type, category, status, fingerprint, sum(n) AS n
			FROM taken
			GROUP BY environment, job_type, category, status, fingerprint
			HAVING sum(n) <> 0),
		folded AS (
			INSERT INTO redrive.counters AS c (environment, job_type, category, status, fingerprint, n)
			SELECT environment, job_type, category, status, fingerprint, n
			FROM sums
			ORDER BY environment, job_type, category, status, fingerprint
			ON CONFLICT (environment, job_type, category, status, fingerprint) DO UPDATE SET n = c.n + excluded.n
			RETURNING c.n),
		by_type AS (
			INSERT INTO redrive.type_counters AS c (environment, job_type, category, status, n)
			SELECT environment, job_type, category, status, sum(n)
			FROM sums
			GROUP BY environment, job_type, category, status
			ORDER BY environment, job_type, category, status
			ON CONFLICT (environment, job_type, category, status) DO UPDATE SET n = c.n + excluded.n)
		SELECT (SELECT count(*) FROM taken), (SELECT count(*) FROM folded WHERE n = 0)`, foldChunk).Scan(&taken, &zeros)
	if err != nil || zeros == 0 {
		return taken, err
	}
	_, err = tx.Exec(ctx, `DELETE FROM redrive.counters WHERE n = 0`)
	return taken, err
}

// foldBatches folds how many replays of each batch stand where. Where none
// stands any more there is nothing to keep.
func foldBatches(ctx context.Context, tx pgx.Tx) (taken int, err error) {
	var zeros []int64
	err = tx.QueryRow(ctx, `
		WITH taken AS (
			DELETE FROM redrive.batch_deltas
			WHERE id IN (SELECT id FROM redrive.batch_deltas ORDER BY id LIMIT $1)
			RETURNING batch_id, tally, n),
		folded AS (
			INSERT INTO redrive.batch_counters AS c (batch_id, tally, n)
			SELECT batch_id, tally, sum(n)
			FROM taken
			GROUP BY batch_id, tally
			HAVING sum(n) <> 0
			ORDER BY batch_id, tally
			ON CONFLICT (batch_id, tally) DO UPDATE SET n = c.n + excluded.n
			RETURNING c.batch_id, c.n)
		SELECT (SELECT count(*) FROM taken), (SELECT array_agg(DISTINCT batch_id) FROM folded WHERE n = 0)`, foldChunk).Scan(&taken, &zeros)
	if err != nil || len(zeros) == 0 {
		return taken, err
	}
	_, err = tx.Exec(ctx, `DELETE FROM redrive.batch_counters WHERE batch_id = ANY($1) AND n = 0`, zeros)
	return taken, err
}

// foldDeaths folds deaths by hour, and the groups with them: a group's row
// tells of deaths, not of the jobs' present state.
func foldDeaths(ctx context.Context, tx pgx.Tx) (taken int, err error) {
	err = tx.QueryRow(ctx, `
		WITH taken AS (
			DELETE FROM redrive.death_deltas
			WHERE id IN (SELECT id FROM redrive.death_deltas ORDER BY id LIMIT $1)
			RETURNING environment, hour, job_type, category, fingerprint, n, first_at, last_at, sample_death),
		hours AS (
			INSERT INTO redrive.death_counters AS c (environment, hour, job_type, category, n)
			SELECT environment, hour, job_type, category, sum(n)
			FROM taken
			GROUP BY environment, hour, job_type, category
			ORDER BY environment, hour, job_type, category
			ON CONFLICT (environment, hour, job_type, category) DO UPDATE SET n = c.n + excluded.n),
		seen AS (
			SELECT fingerprint, min(first_at) AS first_seen, max(last_at) AS last_seen, sum(n) AS deaths, max(sample_death) AS sample_death,
			       (array_agg(job_type ORDER BY last_at DESC, sample_death DESC))[1] AS job_type,
			       (array_agg(category ORDER BY last_at DESC, sample_death DESC))[1] AS category
			FROM taken
			GROUP BY fingerprint),
		grouped AS (
			INSERT INTO redrive.groups AS g (
				fingerprint, job_type, category, error_class, template, fold_version, first_seen, last_seen, deaths, sample_death)
			SELECT s.fingerprint, s.job_type, s.category, coalesce(d.error_class, ''), coalesce(d.template, ''), $2,
			       s.first_seen, s.last_seen, s.deaths, s.sample_death
			FROM seen s
			LEFT JOIN redrive.deaths d ON d.id = s.sample_death
			ORDER BY s.fingerprint
			ON CONFLICT (fingerprint) DO UPDATE
			SET first_seen = least(g.first_seen, excluded.first_seen),
			    last_seen = greatest(g.last_seen, excluded.last_seen),
			    category = CASE WHEN excluded.last_seen >= g.last_seen THEN excluded.category ELSE g.category END,
			    deaths = g.deaths + excluded.deaths,
			    sample_death = greatest(g.sample_death, excluded.sample_death))
		SELECT count(*) FROM taken`, foldChunk, group.FoldVersion).Scan(&taken)
	return taken, err
}
