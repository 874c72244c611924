package providers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// ddl creates what the providers remember. It is kept in the demo's database,
// so that "exactly once" can still be checked after a restart.
const ddl = `
CREATE SCHEMA IF NOT EXISTS demo_app;
CREATE TABLE IF NOT EXISTS demo_app.effects (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    environment text NOT NULL,
    provider    text NOT NULL,
    resource    text NOT NULL,
    key         text NOT NULL,
    effect_id   text NOT NULL,
    dedupes     boolean NOT NULL,
    requests    integer NOT NULL DEFAULT 1,
    detail      jsonb NOT NULL,
    created_at  timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX IF NOT EXISTS effects_by_key ON demo_app.effects (provider, resource, key);
CREATE UNIQUE INDEX IF NOT EXISTS effects_once ON demo_app.effects (environment, provider, resource, key)
    WHERE dedupes AND key <> '';
CREATE SEQUENCE IF NOT EXISTS demo_app.effect_ids;
CREATE TABLE IF NOT EXISTS demo_app.faults (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    environment text NOT NULL,
    provider    text NOT NULL,
    key         text NOT NULL,
    mode        text NOT NULL CHECK (mode IN ('answer', 'hang', 'hang_after')),
    status      integer NOT NULL DEFAULT 0,
    retry_after text NOT NULL DEFAULT '',
    code        text NOT NULL DEFAULT '',
    message     text NOT NULL DEFAULT '',
    remaining   integer NOT NULL
);
CREATE INDEX IF NOT EXISTS faults_by_key ON demo_app.faults (environment, provider, key) WHERE remaining > 0;
CREATE TABLE IF NOT EXISTS demo_app.settings (
    name  text PRIMARY KEY,
    value text NOT NULL
);`

// Effect is one thing that happened at a provider. Two rows of one key mean
// that it happened twice.
type Effect struct {
	Environment string          `json:"environment" db:"environment"`
	Provider    string          `json:"provider" db:"provider"`
	Resource    string          `json:"resource" db:"resource"`
	Key         string          `json:"key" db:"key"`
	ID          string          `json:"id" db:"effect_id"`
	Requests    int             `json:"requests" db:"requests"` // how often it was asked for
	Detail      json.RawMessage `json:"detail" db:"detail"`
	CreatedAt   time.Time       `json:"created_at" db:"created_at"`
}

// The ways a planted fault shows itself.
const (
	Answer    = "answer"     // an error status; nothing happened
	Hang      = "hang"       // no answer; nothing happened
	HangAfter = "hang_after" // the effect happens, then no answer
)

// Fault makes the next requests of one key fail.
type Fault struct {
	Environment string `json:"environment"`
	Provider    string `json:"provider"`
	Key         string `json:"key"`
	Mode        string `json:"mode"`
	Status      int    `json:"status"`      // for Answer
	RetryAfter  string `json:"retry_after"` // sent as it stands
	Code        string `json:"code"`
	Message     string `json:"message"`
	Remaining   int    `json:"remaining"` // requests that will fail
}

// Migrate creates the providers' tables; it may run any number of times.
func Migrate(ctx context.Context, pool *pgxpool.Pool) error {
	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		// CREATE … IF NOT EXISTS still collides when two processes start at once.
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock(hashtextextended('demo_app', 0))`); err != nil {
			return fmt.Errorf("demo providers: lock: %w", err)
		}
		if _, err := tx.Exec(ctx, ddl+outageDDL); err != nil {
			return fmt.Errorf("demo providers: create tables: %w", err)
		}
		return nil
	})
}

// Querier is a pool, a connection or a transaction.
type Querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// Plant makes the next requests of a key fail.
func Plant(ctx context.Context, q Querier, f Fault) error {
	var id int64
	err := q.QueryRow(ctx, `
		INSERT INTO demo_app.faults (environment, provider, key, mode, status, retry_after, code, message, remaining)
		VALUES (@environment, @provider, @key, @mode, @status, @retry_after, @code, @message, @remaining)
		RETURNING id`, pgx.NamedArgs{
		"environment": f.Environment, "provider": f.Provider, "key": f.Key, "mode": f.Mode,
		"status": f.Status, "retry_after": f.RetryAfter, "code": f.Code, "message": f.Message,
		"remaining": f.Remaining,
	}).Scan(&id)
	if err != nil {
		return fmt.Errorf("demo providers: plant fault: %w", err)
	}
	return nil
}

// takeFault uses one planted fault up; nil means that none is left.
func takeFault(ctx context.Context, q Querier, environment, provider, key string) (*Fault, error) {
	f := Fault{Environment: environment, Provider: provider, Key: key}
	err := q.QueryRow(ctx, `
		UPDATE demo_app.faults
		SET remaining = remaining - 1
		WHERE id = (
		    SELECT id
		    FROM demo_app.faults
		    WHERE environment = @environment AND provider = @provider AND key = @key AND remaining > 0
		    ORDER BY id
		    LIMIT 1
		    FOR UPDATE)
		RETURNING mode, status, retry_after, code, message, remaining`, pgx.NamedArgs{
		"environment": environment, "provider": provider, "key": key,
	}).Scan(&f.Mode, &f.Status, &f.RetryAfter, &f.Code, &f.Message, &f.Remaining)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("demo providers: take fault: %w", err)
	}
	return &f, nil
}

// Record writes an effect and returns its id: a new one, or for a provider
// that deduplicates the earlier one of the same key.
func Record(ctx context.Context, q Querier, environment, provider, resource, key string, detail []byte, at time.Time) (string, error) {
	k, ok := find(provider, resource)
	if !ok {
		return "", fmt.Errorf("demo providers: no %s/%s", provider, resource)
	}
	var id string
	err := q.QueryRow(ctx, `
		INSERT INTO demo_app.effects AS e (environment, provider, resource, key, effect_id, dedupes, detail, created_at)
		VALUES (@environment, @provider, @resource, @key,
		        @prefix::text || lpad(nextval('demo_app.effect_ids')::text, 8, '0'), @dedupes, @detail, @at)
		ON CONFLICT (environment, provider, resource, key) WHERE dedupes AND key <> ''
		DO UPDATE SET requests = e.requests + 1
		RETURNING effect_id`, pgx.NamedArgs{
		"environment": environment, "provider": provider, "resource": resource, "key": key,
		"prefix": k.prefix, "dedupes": k.dedupes, "detail": detail, "at": at,
	}).Scan(&id)
	if err != nil {
		return "", fmt.Errorf("demo providers: record effect: %w", err)
	}
	return id, nil
}

// Effects lists what happened, oldest first; an empty argument matches all.
func Effects(ctx context.Context, q Querier, environment, provider, resource, key string) ([]Effect, error) {
	rows, err := q.Query(ctx, `
		SELECT environment, provider, resource, key, effect_id, requests, detail, created_at
		FROM demo_app.effects
		WHERE (@environment = '' OR environment = @environment)
		  AND (@provider = '' OR provider = @provider)
		  AND (@resource = '' OR resource = @resource)
		  AND (@key = '' OR key = @key)
		ORDER BY id
		LIMIT 1000`, pgx.NamedArgs{
		"environment": environment, "provider": provider, "resource": resource, "key": key,
	})
	if err != nil {
		return nil, fmt.Errorf("demo providers: list effects: %w", err)
	}
	effects, err := pgx.CollectRows(rows, pgx.RowToStructByName[Effect])
	if err != nil {
		return nil, fmt.Errorf("demo providers: list effects: %w", err)
	}
	return effects, nil
}

func find(provider, resource string) (kind, bool) {
	for _, k := range kinds {
		if k.provider == provider && k.resource == resource {
			return k, true
		}
	}
	return kind{}, false
}
