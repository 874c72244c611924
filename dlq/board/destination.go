package board

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/dlq"
	"github.com/redrive-dlq/redrive/rbac"
)

// Destination is the endpoint behind targets with its breaker.
type Destination struct {
	Breaker      string     // closed, open or half_open; empty: nothing went there yet
	FailingSince *time.Time // of the failures that opened it
	RetryAt      *time.Time // when the next few may try
	Why          string     // of the failures, redacted
}

// DestinationOf reads one destination; the caller has seen a batch that goes there.
func DestinationOf(ctx context.Context, db dlq.DB, environment, name string) (Destination, error) {
	found, err := collect[Destination](ctx, db, "destination", `
		SELECT breaker, failing_since, retry_at, why
		FROM redrive.destinations
		WHERE environment = @environment AND name = @name`, pgx.NamedArgs{"environment": environment, "name": name})
	if err != nil || len(found) == 0 {
		return Destination{}, err
	}
	return found[0], nil
}

// OutAt counts the replays that are out at a destination, up to most.
func OutAt(ctx context.Context, db dlq.DB, environment, name string, most int) (int, error) {
	type total struct{ N int }
	found, err := collect[total](ctx, db, "replays out", `
		SELECT count(*) AS n
		FROM (SELECT
		      FROM redrive.replays
		      WHERE environment = @environment AND destination = @name AND state = 'released'
		      LIMIT @most) r`, pgx.NamedArgs{"environment": environment, "name": name, "most": most})
	if err != nil {
		return 0, err
	}
	return found[0].N, nil
}

// Failing is a destination that its breaker keeps replays from.
type Failing struct {
	Environment string
	Name        string
	Destination
}

// FailingDestinations reads the destinations in scope whose breaker isn't
// closed, those that fail longest first.
func FailingDestinations(ctx context.Context, db dlq.DB, p *rbac.Principal, environment string) ([]Failing, error) {
	if err := p.Require("", "", rbac.Read); err != nil {
		return nil, err
	}
	return collect[Failing](ctx, db, "failing destinations", `
		SELECT environment, name, breaker, failing_since, retry_at, why
		FROM redrive.destinations
		WHERE breaker <> 'closed'
		  AND (@only::text[] IS NULL OR environment = ANY(@only))
		  AND (@environment = '' OR environment = @environment)
		ORDER BY failing_since NULLS LAST, environment, name
		LIMIT @limit`, pgx.NamedArgs{"only": environments(p), "environment": environment, "limit": pageSize})
}
