package replay

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/audit"
	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/rbac"
)

// maxHolds bounds the list of holds: there are never that many.
const maxHolds = 1000

const holdColumns = `id, environment, job_type, destination, reason, placed_by, placed_at`

// ExplainHold adds the reason of a hold later. Errors: NotFound, Forbidden,
// Invalid at reason, Conflict (lifted, or explained already).
func (s *Service) ExplainHold(ctx context.Context, p *rbac.Principal, id int64, reason string) error {
	return s.onHold(ctx, p, id, reason, func(tx pgx.Tx, h Hold, reason string) error {
		if h.Reason != "" {
			return problem.New(problem.Conflict, "This hold has its reason already. Nothing was changed.")
		}
		if _, err := tx.Exec(ctx, `UPDATE redrive.holds SET reason = $2 WHERE id = $1`, id, reason); err != nil {
			return fmt.Errorf("replay: explain hold: %w", err)
		}
		_, err := audit.Append(ctx, tx, p.Actor(), h.entry("hold.explain", reason, s.now()))
		return err
	})
}

// LiftHold ends a hold; it takes a reason. Errors: NotFound, Forbidden, Invalid
// at reason, Conflict (lifted already).
func (s *Service) LiftHold(ctx context.Context, p *rbac.Principal, id int64, reason string) error {
	return s.onHold(ctx, p, id, reason, func(tx pgx.Tx, h Hold, reason string) error {
		_, err := tx.Exec(ctx, `
			UPDATE redrive.holds
			SET lifted_by = $2, lifted_at = $3, lift_reason = $4
			WHERE id = $1`, id, nameOf(p), s.now(), reason)
		if err != nil {
			return fmt.Errorf("replay: lift hold: %w", err)
		}
		_, err = audit.Append(ctx, tx, p.Actor(), h.entry("hold.lift", reason, s.now()))
		return err
	})
}

// onHold runs an act on a hold in force that the principal may place too.
func (s *Service) onHold(ctx context.Context, p *rbac.Principal, id int64, reason string, act func(tx pgx.Tx, h Hold, reason string) error) error {
	return s.change(ctx, func(tx pgx.Tx) error {
		h, lifted, err := readHold(ctx, tx, id)
		if err != nil {
			return err
		}
		if !p.Can(rbac.Read, h.Environment, h.JobType) {
			return noHold(id)
		}
		if err := s.mayHold(p, h); err != nil {
			return err
		}
		if reason, err = reasonOf(reason); err != nil {
			return err
		}
		if lifted {
			return problem.New(problem.Conflict, "This hold was lifted already. Nothing was changed.")
		}
		return act(tx, h, reason)
	})
}

func noHold(id int64) error {
	return problem.New(problem.NotFound, "There is no hold %d that you may see.", id)
}

func readHold(ctx context.Context, tx pgx.Tx, id int64) (h Hold, lifted bool, err error) {
	err = tx.QueryRow(ctx, `
		SELECT `+holdColumns+`, lifted_at IS NOT NULL
		FROM redrive.holds
		WHERE id = $1
		FOR UPDATE`, id).
		Scan(&h.ID, &h.Environment, &h.JobType, &h.Destination, &h.Reason, &h.PlacedBy, &h.PlacedAt, &lifted)
	if errors.Is(err, pgx.ErrNoRows) {
		return h, false, noHold(id)
	}
	if err != nil {
		return h, false, fmt.Errorf("replay: read hold: %w", err)
	}
	return h, lifted, nil
}

// Holds are those in force that the principal may see, the newest first.
func (s *Service) Holds(ctx context.Context, p *rbac.Principal) ([]Hold, error) {
	found, err := readHolds(ctx, s.Pool, `
		WHERE lifted_at IS NULL
		ORDER BY placed_at DESC, id DESC
		LIMIT @limit`, pgx.NamedArgs{"limit": maxHolds})
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(found, func(h Hold) bool { return !p.Can(rbac.Read, h.Environment, h.JobType) }), nil
}

// HeldBy is the hold that keeps replays of a type to a destination back, the
// oldest where there are several; nil when none does.
func HeldBy(ctx context.Context, db querier, environment, jobType, destination string) (*Hold, error) {
	found, err := readHolds(ctx, db, `
		WHERE lifted_at IS NULL AND environment = @environment
		  AND (job_type IN ('', @type) AND destination IN ('', @destination))
		ORDER BY placed_at, id
		LIMIT 1`, pgx.NamedArgs{"environment": environment, "type": jobType, "destination": destination})
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return &found[0], nil
}

func readHolds(ctx context.Context, db querier, where string, args pgx.NamedArgs) ([]Hold, error) {
	rows, err := db.Query(ctx, `
		SELECT `+holdColumns+`
		FROM redrive.holds
		`+where, args)
	if err != nil {
		return nil, fmt.Errorf("replay: holds: %w", err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[Hold])
	if err != nil {
		return nil, fmt.Errorf("replay: holds: %w", err)
	}
	return found, nil
}
