package replay

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/audit"
	"github.com/redrive-dlq/redrive/rbac"
)

// Exported writes down that a person takes the plan and report of a batch away,
// before its first row leaves. The format is csv or json. Errors: NotFound.
func (s *Service) Exported(ctx context.Context, p *rbac.Principal, batch int64, format string) error {
	b, err := s.seen(ctx, p, batch)
	if err != nil {
		return err
	}
	return pgx.BeginFunc(ctx, s.Pool, func(tx pgx.Tx) error {
		details := map[string]any{"format": format, "state": b.State, "plan_hash": b.PlanHash}
		_, err := audit.Append(ctx, tx, p.Actor(), b.entry("batch.export", "", details, s.now()))
		return err
	})
}
