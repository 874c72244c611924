package board

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/dlq"
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
