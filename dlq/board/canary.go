package board

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/dlq"
)

// Canary is how the replays of a batch that leave first stand: those of its
// latest canary, when it stopped by itself and began with a new one.
type Canary struct {
	Size, Succeeded, Failed, Other, Awaited int // other: skipped or cancelled
}

// CanaryOf counts the canary of a batch that BatchOf returned: a canary has a
// rank in the plan and there are at most a thousand ranks, so an index bounds it.
func CanaryOf(ctx context.Context, db dlq.DB, batch int64) (Canary, error) {
	found, err := collect[Canary](ctx, db, "canary", `
		SELECT count(*) AS size,
		       count(*) FILTER (WHERE r.outcome IN ('succeeded', 'already_done')) AS succeeded,
		       count(*) FILTER (WHERE r.outcome IN ('failed', 'unconfirmed')) AS failed,
		       count(*) FILTER (WHERE r.outcome IN ('skipped', 'cancelled')) AS other,
		       count(*) FILTER (WHERE r.outcome IS NULL) AS awaited
		FROM redrive.replays r
		LEFT JOIN redrive.runs u ON u.batch_id = r.batch_id
		WHERE r.batch_id = @batch AND r.canary_rank IS NOT NULL AND r.wave = 0
		  AND (r.outcome IS NULL OR r.outcome_at >= coalesce(u.watch_from, '-infinity'))`, pgx.NamedArgs{"batch": batch})
	if err != nil {
		return Canary{}, err
	}
	return found[0], nil
}
