package replay

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/audit"
	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/rbac"
)

// Pause stops releases of a batch within a second: of what was released, only
// what its target holds already goes on. A reason may be given; stopping is
// always easy. Errors: NotFound, Forbidden, Invalid at reason, Conflict (not
// scheduled or running).
func (s *Service) Pause(ctx context.Context, p *rbac.Principal, batch int64, reason string) error {
	return s.steerAs(ctx, p, batch, reason, optionalReason, func(tx pgx.Tx, b batchRow, reason string) error {
		if b.State != "scheduled" && b.State != "running" {
			return problem.New(problem.Conflict, "Batch %d %s, so it can't be paused. Nothing was changed.", b.ID, b.stateWords())
		}
		_, err := tx.Exec(ctx, `
			UPDATE redrive.batches
			SET state = 'paused', pause_kind = 'person', pause_why = $2, paused_by = $3, paused_at = $4
			WHERE id = $1`, b.ID, reason, nameOf(p), s.now())
		if err != nil {
			return fmt.Errorf("replay: pause: %w", err)
		}
		if err := setLive(ctx, tx, b.ID, false); err != nil {
			return err
		}
		_, err = audit.Append(ctx, tx, p.Actor(), b.entry("batch.pause", reason, nil, s.now()))
		return err
	})
}

// Resume lets a paused batch go on; holds and breakers still count. After a
// stop by itself it takes a reason and begins with a new canary. Errors:
// NotFound, Forbidden, Invalid at reason, Conflict (not paused, a type that
// can't be replayed any more).
func (s *Service) Resume(ctx context.Context, p *rbac.Principal, batch int64, reason string) error {
	return s.steerAs(ctx, p, batch, reason, optionalReason, func(tx pgx.Tx, b batchRow, reason string) error {
		if b.State != "paused" {
			return problem.New(problem.Conflict, "Batch %d %s, so there is nothing to resume. Nothing was changed.", b.ID, b.stateWords())
		}
		if _, err := s.stillAgreed(b); err != nil {
			return err
		}
		if why := s.orderedWhy(b); why != "" {
			return b.forbidden(why)
		}
		if err := b.mayTakeOver(p); err != nil {
			return err
		}
		details := map[string]any{"was": b.PauseKind}
		if b.PauseKind == "failures" {
			if reason == "" {
				return problem.At(problem.Invalid, "reason", "This batch stopped by itself. Say in 3 to 2,000 characters why it may go on.")
			}
			chosen, err := newCanary(ctx, tx, b.ID, s.canaryOf(b.JobType, b.Canary), s.now())
			if err != nil {
				return err
			}
			details["canary"] = chosen
		}
		if err := s.goOn(ctx, tx, b); err != nil {
			return err
		}
		_, err := audit.Append(ctx, tx, p.Actor(), b.entry("batch.resume", reason, details, s.now()))
		return err
	})
}

// goOn puts a paused batch back where it was.
func (s *Service) goOn(ctx context.Context, tx pgx.Tx, b batchRow) error {
	state := "running"
	if b.DueAt != nil && b.DueAt.After(s.now()) {
		state = "scheduled"
	}
	_, err := tx.Exec(ctx, `
		UPDATE redrive.batches
		SET state = $2, pause_kind = '', pause_why = '', paused_by = '', paused_at = NULL,
		    started_at = CASE WHEN $2 = 'running' THEN coalesce(started_at, $3::timestamptz) ELSE started_at END
		WHERE id = $1`, b.ID, state, s.now())
	if err != nil {
		return fmt.Errorf("replay: resume: %w", err)
	}
	if state == "running" && b.StartedAt == nil && b.Kind == "batch" { // its time came while it was paused
		if err := s.writeStart(ctx, tx, b, "its time came while it was paused"); err != nil {
			return err
		}
	}
	return setLive(ctx, tx, b.ID, true)
}

// SetRate changes the rate of a batch under way, downwards only. Errors:
// NotFound, Forbidden, Invalid at per_minute, Conflict (not under way).
func (s *Service) SetRate(ctx context.Context, p *rbac.Principal, batch int64, perMinute int) error {
	return s.steerAs(ctx, p, batch, "", optionalReason, func(tx pgx.Tx, b batchRow, _ string) error {
		if !slices.Contains([]string{"scheduled", "running", "paused"}, b.State) {
			return problem.New(problem.Conflict, "Batch %d %s, so its rate can't be changed. Nothing was changed.", b.ID, b.stateWords())
		}
		now := s.rateOf(b)
		if perMinute < 1 || perMinute >= now {
			return problem.At(problem.Invalid, "per_minute", "Choose a rate of at least 1 and below the %s a minute of now: a confirmed batch only gets slower.", commas(now))
		}
		_, err := tx.Exec(ctx, `
			WITH r AS (UPDATE redrive.runs SET rate_per_minute = $2 WHERE batch_id = $1)
			UPDATE redrive.batches SET rate_per_minute = $2 WHERE id = $1`, b.ID, perMinute)
		if err != nil {
			return fmt.Errorf("replay: set rate: %w", err)
		}
		_, err = audit.Append(ctx, tx, p.Actor(), b.entry("batch.rate", "", map[string]any{"from": now, "to": perMinute}, s.now()))
		return err
	})
}

// rateOf is the rate that holds for the batch now, in replays a minute.
func (s *Service) rateOf(b batchRow) int {
	t, ok := s.Types().Type(b.JobType)
	switch {
	case !ok:
		return b.RatePerMinute
	case b.RatePerMinute == 0:
		return t.Limit().PerMinute
	}
	return min(b.RatePerMinute, t.Limit().PerMinute)
}

// steerAs is steer for one who may run the batch, with the reason checked.
func (s *Service) steerAs(ctx context.Context, p *rbac.Principal, batch int64, reason string, check func(string) (string, error),
	act func(tx pgx.Tx, b batchRow, reason string) error) error {
	seen, err := s.seen(ctx, p, batch)
	if err != nil {
		return err
	}
	if err := s.mayRun(p, seen); err != nil {
		return err
	}
	if reason, err = check(reason); err != nil {
		return err
	}
	return s.steer(ctx, seen, func(tx pgx.Tx, b batchRow) error { return act(tx, b, reason) })
}
