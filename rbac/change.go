package rbac

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/audit"
	"github.com/redrive-dlq/redrive/dlq/problem"
)

// ChangePassphrase gives the principal a new passphrase. The old one is asked
// for, under the sign-in's throttle; all other sessions of theirs end and the
// current one moves to a new id, which is returned. Errors: Unauthorized with
// the field for a wrong old one, Invalid for a new one that is refused, TooMany.
func (s *Service) ChangePassphrase(ctx context.Context, p *Principal, old *Session, current, next string) (*Session, error) {
	if p == nil || old == nil {
		return nil, problem.New(problem.Unauthorized, "Sign in first.")
	}
	if err := CheckPassphrase(next, p.Email); err != nil {
		return nil, err
	}
	// Proves the current one and renews the session.
	renewed, err := s.StepUp(ctx, p, old, current)
	if err != nil {
		return nil, err
	}
	hash, err := s.hasher.Hash(ctx, next)
	if err != nil {
		return renewed, err
	}
	return renewed, s.inTx(ctx, func(tx pgx.Tx) error {
		return s.setHash(ctx, tx, p, User{ID: p.UserID, Email: p.Email}, hash, renewed.hash())
	})
}

// ResetPassphrase gives somebody a new passphrase, when they forgot theirs; all
// their sessions end. It needs the right to administer and a fresh step-up.
func (s *Service) ResetPassphrase(ctx context.Context, p *Principal, userID int64, next string) error {
	if err := s.mayAdminister(p); err != nil {
		return err
	}
	hash, err := s.hasher.Hash(ctx, next)
	if err != nil {
		return err
	}
	return s.changeUser(ctx, userID, func(tx pgx.Tx, u User) error {
		if err := CheckPassphrase(next, u.Email); err != nil {
			return err
		}
		return s.setHash(ctx, tx, p, u, hash, nil)
	})
}

// setHash stores the hash and ends the person's sessions, but for the one kept.
func (s *Service) setHash(ctx context.Context, tx pgx.Tx, p *Principal, u User, hash string, keep []byte) error {
	_, err := tx.Exec(ctx, `UPDATE redrive.users SET password_hash = $2 WHERE id = $1`, u.ID, hash)
	if err != nil {
		return fmt.Errorf("rbac: set passphrase: %w", err)
	}
	tag, err := tx.Exec(ctx, `DELETE FROM redrive.sessions WHERE user_id = $1 AND token_hash IS DISTINCT FROM $2`, u.ID, keep)
	if err != nil {
		return fmt.Errorf("rbac: end sessions: %w", err)
	}
	_, err = audit.Append(ctx, tx, p.Actor(), audit.Entry{Action: "user.passphrase", Object: userObject(u.ID), At: s.now(),
		Details: map[string]any{"email": u.Email, "sessions_ended": tag.RowsAffected()}})
	return err
}

// UserByID returns one person with their roles, or NotFound. It needs the right
// to administer.
func (s *Service) UserByID(ctx context.Context, p *Principal, id int64) (User, error) {
	if err := p.Require("", "", Administer); err != nil {
		return User{}, err
	}
	u := User{ID: id}
	err := s.pool.QueryRow(ctx, `
		SELECT email, name, created_at, disabled_at
		FROM redrive.users
		WHERE id = $1`, id).Scan(&u.Email, &u.Name, &u.CreatedAt, &u.DisabledAt)
	if err != nil {
		return User{}, notFound(err, "There is no such person.")
	}
	grants, err := grantsOf(ctx, s.pool, []int64{id})
	u.Grants = grants[id]
	return u, err
}

// TokenByID returns a token's name, owner and state, or NotFound. It needs the right to administer.
func (s *Service) TokenByID(ctx context.Context, p *Principal, id int64) (Token, error) {
	if err := p.Require("", "", Administer); err != nil {
		return Token{}, err
	}
	t := Token{ID: id}
	err := s.pool.QueryRow(ctx, `
		SELECT t.name, t.owner_id, u.email, t.revoked_at
		FROM redrive.tokens t
		JOIN redrive.users u ON u.id = t.owner_id
		WHERE t.id = $1`, id).Scan(&t.Name, &t.OwnerID, &t.OwnerEmail, &t.RevokedAt)
	if err != nil {
		return Token{}, notFound(err, "There is no such token.")
	}
	return t, nil
}
