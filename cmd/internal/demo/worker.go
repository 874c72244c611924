package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"

	"github.com/redrive-dlq/redrive/dlq/jobtype"
	"github.com/redrive-dlq/redrive/dlq/ledger"
	"github.com/redrive-dlq/redrive/dlq/retry"
)

// WorkerVersion is the version that the demo's workers report.
const WorkerVersion = "app 4.12.1"

// demoPolicy keeps the shape of a worker's usual policy and shortens its
// waits, so that one can watch a job die.
func demoPolicy() retry.Policy {
	p := retry.Default()
	p.Initial, p.Max, p.Window = 2*time.Second, 15*time.Second, 10*time.Minute
	p.MaxAttempts, p.AttemptTimeout, p.MaxRetryAfter = 3, 2*time.Second, 20*time.Second
	return p
}

// runtime is what the workers of one environment share.
type runtime struct {
	pool        *pgxpool.Pool
	log         *slog.Logger
	client      *client
	catalogue   *jobtype.Catalogue
	environment string
	schema      string // of its River; a constant of this package, safe in SQL
	policy      retry.Policy
	waits       sync.Map // job id → time.Duration, from Work to NextRetry
}

// worker runs one type of job: guard, effect, result, or a bounded retry.
type worker[T task] struct {
	river.WorkerDefaults[T]
	rt *runtime
}

// Timeout leaves room around the provider call for the ledger.
func (w *worker[T]) Timeout(*river.Job[T]) time.Duration {
	return w.rt.policy.AttemptTimeout + 6*time.Second
}

// NextRetry is when River runs a failed job again.
func (w *worker[T]) NextRetry(job *river.Job[T]) time.Time {
	if wait, ok := w.rt.waits.LoadAndDelete(job.ID); ok {
		return time.Now().Add(wait.(time.Duration))
	}
	return time.Now().Add(w.rt.policy.Wait(job.Attempt))
}

// Work runs the effect at most once for its key: the ledger is asked first,
// and told the end.
func (w *worker[T]) Work(ctx context.Context, job *river.Job[T]) error {
	began := time.Now()
	e := job.Args.effect()
	key := w.rt.key(job.Kind, e.Key)
	answer, err := ledger.Begin(ctx, w.rt.pool, key)
	if err != nil {
		return fmt.Errorf("LedgerError: the effect can't be guarded: %w", err)
	}
	if answer == ledger.Done {
		return river.RecordOutput(ctx, alreadyDone)
	}
	if answer == ledger.Unknown && !e.ProviderDedupes {
		return w.rt.failed(ctx, job.JobRow.ID, job.Attempt, job.MaxAttempts, w.firstAt(job), began, &failure{
			Class: "EffectUnknown", Code: "effect_unknown", Uncertain: true,
			Message: "an earlier attempt began the effect and its end isn't known; look it up at " + e.Provider,
		})
	}
	callCtx, cancel := context.WithTimeout(ctx, w.rt.policy.AttemptTimeout)
	id, fail := w.rt.client.do(callCtx, e)
	cancel()
	// The end is written even when River is stopping: it is known now.
	safe, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if fail == nil {
		result, _ := json.Marshal(map[string]string{"id": id}) // a string always encodes
		if err := ledger.Finish(safe, w.rt.pool, key, result); err != nil {
			return fmt.Errorf("LedgerError: the effect %s happened and its end can't be written: %w", id, err)
		}
		return river.RecordOutput(ctx, output{ID: id})
	}
	// An effect that was unknown before stays so: this refusal is about this call.
	if answer == ledger.Unknown {
		fail.Uncertain = true
	}
	if !fail.Uncertain {
		result, _ := json.Marshal(map[string]string{"error": fail.Code})
		if err := ledger.Fail(safe, w.rt.pool, key, result); err != nil {
			return fmt.Errorf("LedgerError: the failure can't be written: %w", err)
		}
	}
	return w.rt.failed(safe, job.JobRow.ID, job.Attempt, job.MaxAttempts, w.firstAt(job), began, fail.of(e))
}

func (w *worker[T]) firstAt(job *river.Job[T]) time.Time {
	if len(job.Errors) > 0 {
		return job.Errors[0].At
	}
	return *job.AttemptedAt
}

func (rt *runtime) key(kind, key string) ledger.Key {
	scope := kind
	if t, ok := rt.catalogue.Type(kind); ok {
		scope = t.Scope()
	}
	return ledger.Key{Environment: rt.environment, Scope: scope, Key: key}
}

// failed writes what the attempt is known to have done, decides, and returns
// the error in the form that makes River do what was decided.
func (rt *runtime) failed(ctx context.Context, id int64, attempt, maxAttempts int, firstAt, began time.Time, fail *failure) error {
	policy := rt.policy
	policy.MaxAttempts = maxAttempts // a replay is given exactly one
	now := time.Now()
	decision := policy.Decide(attempt, firstAt, retry.Failure{Retryable: fail.Retryable, RetryAfter: fail.RetryAfter}, now)
	facts := attemptFacts{
		Attempt: attempt, ErrorClass: fail.Class, DurationMS: now.Sub(began).Milliseconds(),
		WorkerVersion: WorkerVersion, SideEffect: sideEffect(fail),
	}
	var death *deathFacts
	if !decision.Retry {
		death = &deathFacts{
			Attempt: attempt, GaveUp: string(decision.GaveUp), Category: fail.Category,
			Reason: reason{fail.Code, fail.Message}, Effect: sideEffect(fail), WorkerVersion: WorkerVersion,
		}
	}
	if err := rt.note(ctx, id, facts, death); err != nil {
		rt.log.Error("demo worker: attempt not noted", "environment", rt.environment, "job", id, "error", err)
	}
	if decision.Retry {
		rt.waits.Store(id, decision.After)
		return fail
	}
	if attempt < maxAttempts {
		return river.JobCancel(fail)
	}
	return fail // River discards it: its attempts are used up
}

// note adds the attempt, and on death its facts, to the job's metadata.
func (rt *runtime) note(ctx context.Context, id int64, attempt attemptFacts, death *deathFacts) error {
	entry, err := json.Marshal([]attemptFacts{attempt})
	if err != nil {
		return err
	}
	end := []byte("{}")
	if death != nil {
		if end, err = json.Marshal(map[string]any{metaDeath: death}); err != nil {
			return err
		}
	}
	_, err = rt.pool.Exec(ctx, `
		UPDATE `+pgx.Identifier{rt.schema, "river_job"}.Sanitize()+`
		SET metadata = metadata
		    || jsonb_build_object(@attempts::text, coalesce(metadata -> @attempts::text, '[]') || @entry::jsonb)
		    || @death::jsonb
		WHERE id = @id`, pgx.NamedArgs{"attempts": metaAttempts, "entry": string(entry), "death": string(end), "id": id})
	return err
}

func sideEffect(f *failure) string {
	if f.Uncertain {
		return "unknown"
	}
	return "none"
}
