package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/redrive-dlq/redrive/cmd/internal/demo/providers"
)

// seedChunk is how many jobs one transaction writes.
const seedChunk = 500

// Seed writes n dead jobs of the last two weeks straight into the rivers, as
// workers would have left them. It is idempotent: a restart writes nothing
// again, a larger n adds what is missing.
func (w *World) Seed(ctx context.Context, n int) error {
	for {
		done, err := w.seedSome(ctx, n)
		if err != nil {
			return err
		}
		if done >= n {
			return nil
		}
	}
}

// seedSome writes the next chunk; its count commits with the rows.
func (w *World) seedSome(ctx context.Context, n int) (done int, err error) {
	err = pgx.BeginFunc(ctx, w.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock(hashtextextended('demo_app.seed', 0))`); err != nil {
			return fmt.Errorf("demo seed: lock: %w", err)
		}
		var anchor time.Time
		if done, anchor, err = w.seeded(ctx, tx); err != nil || done >= n {
			return err
		}
		batch := &pgx.Batch{}
		end := min(n, done+seedChunk)
		for i := done; i < end; i++ {
			j := past(i, anchor)
			w.queueRow(batch, &j)
		}
		if err := tx.SendBatch(ctx, batch).Close(); err != nil {
			return fmt.Errorf("demo seed: write jobs %d to %d: %w", done, end, err)
		}
		for i := done; i < end; i++ {
			if err := w.seedEffect(ctx, tx, past(i, anchor)); err != nil {
				return err
			}
		}
		done = end
		return keep(ctx, tx, "seeded_jobs", strconv.Itoa(end))
	})
	return done, err
}

// seeded reads how far seeding came and the moment that its history ends at.
func (w *World) seeded(ctx context.Context, tx pgx.Tx) (done int, anchor time.Time, err error) {
	var count, at string
	err = tx.QueryRow(ctx, `
		SELECT (SELECT value FROM demo_app.settings WHERE name = 'seeded_jobs'),
		       (SELECT value FROM demo_app.settings WHERE name = 'seed_anchor')
		WHERE EXISTS (SELECT FROM demo_app.settings WHERE name = 'seeded_jobs')`).Scan(&count, &at)
	if errors.Is(err, pgx.ErrNoRows) {
		anchor = w.opts.Now().UTC().Truncate(time.Second)
		return 0, anchor, keep(ctx, tx, "seed_anchor", anchor.Format(time.RFC3339))
	}
	if err != nil {
		return 0, anchor, fmt.Errorf("demo seed: read progress: %w", err)
	}
	if done, err = strconv.Atoi(count); err != nil {
		return 0, anchor, fmt.Errorf("demo seed: progress: %w", err)
	}
	if anchor, err = time.Parse(time.RFC3339, at); err != nil {
		return 0, anchor, fmt.Errorf("demo seed: anchor: %w", err)
	}
	return done, anchor, nil
}

// queueRow adds the row of River, and the ledger's row of the effect.
func (w *World) queueRow(batch *pgx.Batch, j *pastJob) {
	args, _ := json.Marshal(j.args) // argument structs always encode
	times := j.attemptTimes()
	state, maxAttempts := "discarded", j.attempts
	if j.cancelled {
		state, maxAttempts = "cancelled", max(3, j.attempts)
	}
	schema := pgx.Identifier{rivers[j.environment]}.Sanitize()
	batch.Queue(`
		INSERT INTO `+schema+`.river_job
		    (args, attempt, attempted_at, attempted_by, created_at, errors, finalized_at, kind,
		     max_attempts, metadata, priority, queue, scheduled_at, state, tags)
		VALUES
		    (@args::text::jsonb, @attempt, @attempted_at, @attempted_by, @created_at, @errors::text[]::jsonb[], @finalized_at, @kind,
		     @max_attempts, @metadata::text::jsonb, 1, @queue, @attempted_at, @state::text::`+schema+`.river_job_state, '{}')`,
		pgx.NamedArgs{
			"args": string(args), "attempt": j.attempts, "attempted_at": times[len(times)-1],
			"attempted_by": []string{"worker-" + j.environment + "-1"}, "created_at": times[0].Add(-time.Second),
			"errors": j.errors(), "finalized_at": j.died.Add(j.duration(j.attempts - 1)), "kind": j.args.Kind(),
			"max_attempts": maxAttempts, "metadata": string(j.metadata()),
			"queue": w.queue(j.args.Kind(), j.environment), "state": state,
		})
	if j.ledger == "begun" || j.ledger == "failed" {
		var finished *time.Time
		result := ""
		if j.ledger == "failed" {
			finished = &j.died
			b, _ := json.Marshal(map[string]string{"error": j.failure.Code}) // a string always encodes
			result = string(b)
		}
		batch.Queue(`
			INSERT INTO redrive.ledger (environment, scope, key, state, result, begins, begun_at, finished_at)
			VALUES (@environment, @scope, @key, @state, @result, @begins, @begun_at, @finished_at)
			ON CONFLICT (environment, scope, key) DO NOTHING`,
			pgx.NamedArgs{
				"environment": j.environment, "scope": w.scope(j.args.Kind()), "key": j.facts.Key, "state": j.ledger,
				"result": result, "begins": j.attempts, "begun_at": times[len(times)-1], "finished_at": finished,
			})
	}
}

// seedEffect leaves what the job's story needs at the provider: the effect
// that happened all the same, and faults that a replay meets again.
func (w *World) seedEffect(ctx context.Context, tx pgx.Tx, j pastJob) error {
	if j.lasting != nil {
		if err := providers.Plant(ctx, tx, *j.lasting); err != nil {
			return err
		}
	}
	if !j.happened {
		return nil
	}
	e := j.args.effect()
	detail, err := json.Marshal(e.Body)
	if err != nil {
		return fmt.Errorf("demo seed: effect of %s: %w", e.Key, err)
	}
	id, err := providers.Record(ctx, tx, j.environment, e.Provider, e.Resource, e.Key, detail, j.attemptTimes()[0])
	if err != nil || j.ledger != "done" {
		return err
	}
	result, _ := json.Marshal(map[string]string{"id": id}) // a string always encodes
	_, err = tx.Exec(ctx, `SELECT redrive.finish_effect(@environment, @scope, @key, @result::text::json)`, pgx.NamedArgs{
		"environment": j.environment, "scope": w.scope(j.args.Kind()), "key": e.Key, "result": string(result),
	})
	if err != nil {
		return fmt.Errorf("demo seed: ledger of %s: %w", e.Key, err)
	}
	return nil
}

func (w *World) scope(kind string) string {
	if t, ok := w.catalogue.Type(kind); ok {
		return t.Scope()
	}
	return kind
}

// execer is a pool or a transaction.
type execer interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

// keep remembers a value in the demo's settings.
func keep(ctx context.Context, db execer, name, value string) error {
	_, err := db.Exec(ctx, `
		INSERT INTO demo_app.settings (name, value)
		VALUES (@name, @value)
		ON CONFLICT (name) DO UPDATE SET value = excluded.value`,
		pgx.NamedArgs{"name": name, "value": value})
	if err != nil {
		return fmt.Errorf("demo: setting %s: %w", name, err)
	}
	return nil
}
