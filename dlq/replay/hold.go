package replay

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/audit"
	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/rbac"
)

// Hold is a stop of all replays of an environment, of a type in it, or of a
// destination. The release loop and every delivery read the holds each time.
type Hold struct {
	ID          int64
	Environment string
	JobType     string // empty: not limited to a type
	Destination string // empty: not limited to a destination
	Reason      string
	PlacedBy    string
	PlacedAt    time.Time
}

// PlaceHold holds replays at once, in every process; the reason may follow. A
// hold that is in force already is returned as it is. Errors: Forbidden,
// Invalid at environment, job_type, destination or reason.
func (s *Service) PlaceHold(ctx context.Context, p *rbac.Principal, h Hold) (id int64, err error) {
	if err := s.mayHold(p, h); err != nil {
		return 0, err
	}
	if h.Reason, err = optionalReason(h.Reason); err != nil {
		return 0, err
	}
	if err := s.checkHold(ctx, h); err != nil {
		return 0, err
	}
	err = s.change(ctx, func(tx pgx.Tx) error {
		placed, err := insertHold(ctx, tx, nameOf(p), &h, s.now())
		if err != nil || !placed {
			return err
		}
		_, err = audit.Append(ctx, tx, p.Actor(), h.entry("hold.place", h.Reason, s.now()))
		return err
	})
	if err != nil {
		return 0, err
	}
	return h.ID, nil
}

// mayHold requires the right for all that the hold stops: a whole environment
// or a destination isn't for one whose right is limited to a type.
func (s *Service) mayHold(p *rbac.Principal, h Hold) error {
	if err := p.Require(h.Environment, h.JobType, rbac.HoldReplays); err != nil || h.JobType != "" {
		return err
	}
	everywhere, limits := p.Scopes(rbac.HoldReplays)
	wide := func(g rbac.Grant) bool {
		return g.JobType == "" && (g.Environment == "" || g.Environment == h.Environment)
	}
	if !everywhere && !slices.ContainsFunc(limits, wide) {
		return problem.New(problem.Forbidden, "Your role lets you hold single types of %s, not all of it.", h.Environment)
	}
	return nil
}

// checkHold refuses what nothing could ever be held by.
func (s *Service) checkHold(ctx context.Context, h Hold) error {
	c := s.Types()
	if !slices.Contains(c.Environments, h.Environment) {
		return problem.At(problem.Invalid, "environment", "There is no environment of this name.")
	}
	if h.JobType != "" && h.Destination != "" {
		return problem.At(problem.Invalid, "destination", "Hold a type or a destination, not both.")
	}
	if h.JobType != "" {
		if _, ok := c.Type(h.JobType); !ok {
			return problem.At(problem.Invalid, "job_type", "The catalogue declares no type of this name.")
		}
	}
	if h.Destination == "" {
		return nil
	}
	for _, t := range c.Types() {
		if to, ok := t.Target(h.Environment); ok && to.Destination() == h.Destination {
			return nil
		}
	}
	return s.isDestination(ctx, h)
}

// isDestination finds a destination that only batches of an older catalogue use.
func (s *Service) isDestination(ctx context.Context, h Hold) error {
	var known bool
	err := s.Pool.QueryRow(ctx, `
		SELECT EXISTS (SELECT FROM redrive.destinations WHERE environment = $1 AND name = $2)`, h.Environment, h.Destination).Scan(&known)
	if err != nil {
		return fmt.Errorf("replay: find destination: %w", err)
	}
	if !known {
		return problem.At(problem.Invalid, "destination", "No replay of %s goes to this destination.", h.Environment)
	}
	return nil
}

// insertHold writes the hold, or finds the one in force, and sets its id.
func insertHold(ctx context.Context, tx pgx.Tx, by string, h *Hold, now time.Time) (placed bool, err error) {
	args := pgx.NamedArgs{"environment": h.Environment, "type": h.JobType, "destination": h.Destination, "reason": h.Reason, "by": by, "now": now}
	for range 3 { // one in force may be lifted between the two statements
		err = tx.QueryRow(ctx, `
			INSERT INTO redrive.holds (environment, job_type, destination, reason, placed_by, placed_at)
			VALUES (@environment, @type, @destination, @reason, @by, @now)
			ON CONFLICT (environment, job_type, destination) WHERE lifted_at IS NULL DO NOTHING
			RETURNING id`, args).Scan(&h.ID)
		if err == nil {
			return true, nil
		}
		if errors.Is(err, pgx.ErrNoRows) {
			err = tx.QueryRow(ctx, `
				SELECT id
				FROM redrive.holds
				WHERE environment = @environment AND job_type = @type AND destination = @destination AND lifted_at IS NULL`, args).Scan(&h.ID)
		}
		if err == nil || !errors.Is(err, pgx.ErrNoRows) {
			break
		}
	}
	if err != nil {
		return false, fmt.Errorf("replay: place hold: %w", err)
	}
	return false, nil
}

// entry is what the audit log says of an act on the hold.
func (h Hold) entry(action, reason string, at time.Time) audit.Entry {
	e := audit.Entry{Action: action, Object: audit.Object{Kind: "hold", ID: strconv.FormatInt(h.ID, 10)}, Environment: h.Environment,
		JobType: h.JobType, Reason: reason, At: at}
	if h.Destination != "" {
		e.Details = map[string]any{"destination": h.Destination}
	}
	return e
}
