package replay

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Expire ends released replays whose outcome didn't come within the target's
// deadline: unconfirmed, their effect unknown. It goes by the clock by which they
// left: that of a process may be another. It returns how many.
func (s *Service) Expire(ctx context.Context) (int, error) {
	rows, err := s.Pool.Query(ctx, `
		SELECT id, target_kind = 'http' AND delivered_at IS NULL
		FROM redrive.replays
		WHERE state = 'released' AND deadline_at <= coalesce($1, clock_timestamp())
		ORDER BY deadline_at
		LIMIT 100`, s.shared())
	if err != nil {
		return 0, fmt.Errorf("replay: overdue: %w", err)
	}
	type overdue struct {
		ID    int64
		Never bool // it never left: no connection was made
	}
	due, err := pgx.CollectRows(rows, pgx.RowToStructByPos[overdue])
	if err != nil {
		return 0, fmt.Errorf("replay: overdue: %w", err)
	}
	n := 0
	var failed error
	for _, d := range due {
		e := End{Outcome: Unconfirmed, Code: "deadline", Detail: "no outcome came within the target's deadline", EffectUnknown: true}
		if d.Never {
			e = End{Outcome: Skipped, Code: "not_accepted", onlyUndelivered: true, Detail: "not replayed because the destination took no connection until the deadline"}
		}
		first, err := s.Record(ctx, d.ID, e)
		// One whose lock a worker holds is the next round's; it harms no other.
		failed = errors.Join(failed, err)
		if first {
			n++
		}
	}
	return n, failed
}
