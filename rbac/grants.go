package rbac

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/audit"
	"github.com/redrive-dlq/redrive/dlq/problem"
)

// adminLock serialises changes that could remove the last administrator.
const adminLock int64 = 0x7264_61646d696e // "rd" "admin"

// querier is what reading needs: the pool or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// String is the grant as people read it: "oncall", "oncall in staging",
// "oncall for charge_card in production".
func (g Grant) String() string {
	s := string(g.Role)
	if g.JobType != "" {
		s += " for " + g.JobType
	}
	if g.Environment != "" {
		s += " in " + g.Environment
	}
	return s
}

// AddGrant gives a person a role. Their sessions end, so that no page rendered
// under the old roles acts under the new ones. Errors: Forbidden,
// StepUpMissing, Invalid, NotFound; Conflict when they hold it already.
func (s *Service) AddGrant(ctx context.Context, p *Principal, userID int64, g Grant, reason string) error {
	if err := s.mayAdminister(p); err != nil {
		return err
	}
	if err := checkGrant(g); err != nil {
		return err
	}
	return s.changeUser(ctx, userID, func(tx pgx.Tx, u User) error {
		added, err := s.insertGrant(ctx, tx, p.Actor(), userID, g)
		if err != nil {
			return err
		}
		if !added {
			return problem.New(problem.Conflict, "%s already is %s.", u.Email, g)
		}
		return s.roleChanged(ctx, tx, p, u, "grant.add", g, reason)
	})
}

// RemoveGrant takes a role away; it counts from the person's next request on,
// and their sessions end. Errors as AddGrant's; Conflict for the last
// administrator.
func (s *Service) RemoveGrant(ctx context.Context, p *Principal, userID int64, g Grant, reason string) error {
	if err := s.mayAdminister(p); err != nil {
		return err
	}
	return s.changeUser(ctx, userID, func(tx pgx.Tx, u User) error {
		tag, err := tx.Exec(ctx, `
			DELETE FROM redrive.grants
			WHERE user_id = @user AND role = @role AND environment = @environment AND job_type = @type`,
			pgx.NamedArgs{"user": userID, "role": g.Role, "environment": g.Environment, "type": g.JobType})
		if err != nil {
			return fmt.Errorf("rbac: remove grant: %w", err)
		}
		if tag.RowsAffected() == 0 {
			return problem.New(problem.NotFound, "%s is not %s.", u.Email, g)
		}
		if g.Role == Admin {
			if err := s.keepAnAdmin(ctx, tx); err != nil {
				return err
			}
		}
		return s.roleChanged(ctx, tx, p, u, "grant.remove", g, reason)
	})
}

// DisableUser shuts a person out: sessions end at once, tokens stop working.
// It needs no step-up, because it is what one does in a hurry. Errors:
// Forbidden, NotFound; Conflict when disabled already or the last administrator.
func (s *Service) DisableUser(ctx context.Context, p *Principal, userID int64, reason string) error {
	if err := p.Require("", "", Administer); err != nil {
		return err
	}
	return s.changeUser(ctx, userID, func(tx pgx.Tx, u User) error {
		if u.DisabledAt != nil {
			return problem.New(problem.Conflict, "%s is disabled already.", u.Email)
		}
		if err := s.setDisabled(ctx, tx, userID, true); err != nil {
			return err
		}
		grants, err := grantsOf(ctx, tx, []int64{userID})
		if err != nil {
			return err
		}
		if slices.ContainsFunc(grants[userID], func(g Grant) bool { return g.Role == Admin }) {
			if err := s.keepAnAdmin(ctx, tx); err != nil {
				return err
			}
		}
		ended, err := endAll(ctx, tx, userID)
		if err != nil {
			return err
		}
		return s.userEntry(ctx, tx, p, u, "user.disable", reason, map[string]any{"email": u.Email, "sessions_ended": ended})
	})
}

// EnableUser lets a disabled person in again. Errors as AddGrant's.
func (s *Service) EnableUser(ctx context.Context, p *Principal, userID int64, reason string) error {
	if err := s.mayAdminister(p); err != nil {
		return err
	}
	return s.changeUser(ctx, userID, func(tx pgx.Tx, u User) error {
		if u.DisabledAt == nil {
			return problem.New(problem.Conflict, "%s is not disabled.", u.Email)
		}
		if err := s.setDisabled(ctx, tx, userID, false); err != nil {
			return err
		}
		return s.userEntry(ctx, tx, p, u, "user.enable", reason, map[string]any{"email": u.Email})
	})
}

// changeUser locks the administrators' lock and the person's row, then runs f.
func (s *Service) changeUser(ctx context.Context, userID int64, f func(tx pgx.Tx, u User) error) error {
	return s.inTx(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1)`, adminLock); err != nil {
			return fmt.Errorf("rbac: lock: %w", err)
		}
		u := User{ID: userID}
		err := tx.QueryRow(ctx, `
			SELECT email, disabled_at
			FROM redrive.users
			WHERE id = $1
			FOR UPDATE`, userID).Scan(&u.Email, &u.DisabledAt)
		if err != nil {
			return notFound(err, "There is no such person.")
		}
		return f(tx, u)
	})
}

func (s *Service) setDisabled(ctx context.Context, tx pgx.Tx, userID int64, disabled bool) error {
	var at *time.Time
	if disabled {
		now := s.now()
		at = &now
	}
	if _, err := tx.Exec(ctx, `UPDATE redrive.users SET disabled_at = $2 WHERE id = $1`, userID, at); err != nil {
		return fmt.Errorf("rbac: set disabled: %w", err)
	}
	return nil
}

func (s *Service) insertGrant(ctx context.Context, tx pgx.Tx, actor audit.Actor, userID int64, g Grant) (bool, error) {
	tag, err := tx.Exec(ctx, `
		INSERT INTO redrive.grants (user_id, role, environment, job_type, granted_by, granted_at)
		VALUES (@user, @role, @environment, @type, @by, @now)
		ON CONFLICT DO NOTHING`,
		pgx.NamedArgs{"user": userID, "role": g.Role, "environment": g.Environment, "type": g.JobType,
			"by": actor.Name, "now": s.now()})
	if err != nil {
		return false, fmt.Errorf("rbac: insert grant: %w", err)
	}
	return tag.RowsAffected() == 1, nil
}

func (s *Service) roleChanged(ctx context.Context, tx pgx.Tx, p *Principal, u User, action string, g Grant, reason string) error {
	ended, err := endAll(ctx, tx, u.ID)
	if err != nil {
		return err
	}
	return s.userEntry(ctx, tx, p, u, action, reason, map[string]any{"email": u.Email, "grant": g.String(), "sessions_ended": ended})
}

func (s *Service) userEntry(ctx context.Context, tx pgx.Tx, p *Principal, u User, action, reason string, details map[string]any) error {
	_, err := audit.Append(ctx, tx, p.Actor(), audit.Entry{
		Action: action, Object: userObject(u.ID), Reason: reason, Details: details, At: s.now()})
	return err
}

// keepAnAdmin refuses a state in which nobody could administer any more.
func (s *Service) keepAnAdmin(ctx context.Context, tx pgx.Tx) error {
	var left bool
	err := tx.QueryRow(ctx, `
		SELECT EXISTS (
			SELECT FROM redrive.grants g
			JOIN redrive.users u ON u.id = g.user_id
			WHERE g.role = 'admin' AND g.environment = '' AND g.job_type = '' AND u.disabled_at IS NULL)`).Scan(&left)
	if err != nil {
		return fmt.Errorf("rbac: count administrators: %w", err)
	}
	if !left {
		return problem.New(problem.Conflict, "This is the last administrator. Make another one first.")
	}
	return nil
}

func grantsOf(ctx context.Context, q querier, users []int64) (map[int64][]Grant, error) {
	rows, err := q.Query(ctx, `
		SELECT user_id, role, environment, job_type
		FROM redrive.grants
		WHERE user_id = ANY ($1)
		ORDER BY user_id, role, environment, job_type`, users)
	if err != nil {
		return nil, fmt.Errorf("rbac: grants: %w", err)
	}
	out := map[int64][]Grant{}
	var id int64
	var g Grant
	_, err = pgx.ForEachRow(rows, []any{&id, &g.Role, &g.Environment, &g.JobType}, func() error {
		out[id] = append(out[id], g)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("rbac: grants: %w", err)
	}
	return out, nil
}
