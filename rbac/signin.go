package rbac

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/audit"
	"github.com/redrive-dlq/redrive/dlq/problem"
)

// wrongCredentials is the one answer for an unknown address, a wrong
// passphrase and a disabled person.
const wrongCredentials = "The e-mail address or the passphrase is wrong."

// Attempt is one try to sign in.
type Attempt struct {
	Email      string
	Passphrase string
	IP         string
	UserAgent  string
	RequestID  string
	Old        *Session // the browser's session so far; it ends. May be nil
}

// SignIn checks a passphrase and makes a new session under a new id; the old
// one is gone. Unknown and disabled people cost the same work and get the same
// answer. Errors: Unauthorized; TooMany, with a *Throttled cause where a limit
// says when to try again.
func (s *Service) SignIn(ctx context.Context, a Attempt) (*Session, error) {
	if len(a.Passphrase) > MaxPassphraseBytes || len(a.Email) > 254 {
		return nil, problem.New(problem.Unauthorized, wrongCredentials)
	}
	r, err := s.reserve(ctx, a.Email, a.IP)
	if err != nil {
		return nil, err
	}
	user, ok, err := s.authenticate(ctx, a.Email, a.Passphrase)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, s.refuse(ctx, a, user, r)
	}
	var created *Session
	err = s.inTx(ctx, func(tx pgx.Tx) error {
		if err := s.release(ctx, tx, r); err != nil {
			return err
		}
		created, err = s.openSession(ctx, tx, user.ID, a)
		if err != nil {
			return err
		}
		_, err = audit.Append(ctx, tx, s.person(user, a), audit.Entry{
			Action: "session.sign_in", Object: audit.Object{Kind: "session", ID: created.ID}, At: s.now()})
		return err
	})
	return created, err
}

// authenticate compares the passphrase with the person's. The user's id is 0
// when there is none with the address.
func (s *Service) authenticate(ctx context.Context, email, passphrase string) (User, bool, error) {
	var u User
	var hash string
	clean, err := cleanEmail(email)
	if err == nil {
		err = s.pool.QueryRow(ctx, `
			SELECT id, email, disabled_at, password_hash
			FROM redrive.users
			WHERE lower(email) = $1`, clean).Scan(&u.ID, &u.Email, &u.DisabledAt, &hash)
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return User{}, false, fmt.Errorf("rbac: find user: %w", err)
		}
	}
	ok, err := s.hasher.Verify(ctx, passphrase, hash)
	return u, ok && u.DisabledAt == nil, err
}

// refuse writes the failure down and returns the answer. Entries are bounded by
// the throttle's limits: a guesser can't flood the log. What was typed as an
// unknown address is not kept, since people type passphrases into that field.
func (s *Service) refuse(ctx context.Context, a Attempt, u User, r reservation) error {
	answer := problem.New(problem.Unauthorized, wrongCredentials)
	if r.accountN > accountFailures || r.addressN > addressFailures {
		return answer
	}
	actor := audit.SystemActor()
	actor.IP, actor.RequestID = a.IP, a.RequestID
	object, details := audit.Object{Kind: "user", ID: "unknown"}, map[string]any{"failures": r.accountN}
	if u.ID != 0 {
		object = userObject(u.ID)
		details["email"] = u.Email
	}
	err := s.inTx(ctx, func(tx pgx.Tx) error {
		_, err := audit.Append(ctx, tx, actor, audit.Entry{
			Action: "session.refused", Object: object, Details: details, At: s.now()})
		return err
	})
	if err != nil {
		return err
	}
	return answer
}

// StepUp checks the passphrase of somebody who is signed in and moves their
// session to a new id. Errors as SignIn's.
func (s *Service) StepUp(ctx context.Context, p *Principal, old *Session, passphrase string) (*Session, error) {
	if p == nil || old == nil || p.TokenID != 0 {
		return nil, problem.New(problem.Unauthorized, "Sign in first.")
	}
	a := Attempt{Email: p.Email, Passphrase: passphrase, IP: p.IP, UserAgent: old.UserAgent, RequestID: p.RequestID, Old: old}
	if len(passphrase) > MaxPassphraseBytes {
		return nil, problem.At(problem.Unauthorized, "password", "The passphrase is wrong.")
	}
	r, err := s.reserve(ctx, a.Email, a.IP)
	if err != nil {
		return nil, err
	}
	user, ok, err := s.authenticate(ctx, a.Email, passphrase)
	if err != nil {
		return nil, err
	}
	if !ok || user.ID != p.UserID {
		if err := s.refuse(ctx, a, user, r); !problem.Is(err, problem.Unauthorized) {
			return nil, err
		}
		return nil, problem.At(problem.Unauthorized, "password", "The passphrase is wrong.")
	}
	var renewed *Session
	err = s.inTx(ctx, func(tx pgx.Tx) error {
		if err := s.release(ctx, tx, r); err != nil {
			return err
		}
		renewed, err = s.renewSession(ctx, tx, old)
		if err != nil {
			return err
		}
		_, err = audit.Append(ctx, tx, p.Actor(), audit.Entry{
			Action: "session.step_up", Object: audit.Object{Kind: "session", ID: renewed.ID}, At: s.now()})
		return err
	})
	return renewed, err
}

// SignOut ends the session.
func (s *Service) SignOut(ctx context.Context, p *Principal, old *Session) error {
	return s.inTx(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `DELETE FROM redrive.sessions WHERE token_hash = $1`, old.hash()); err != nil {
			return fmt.Errorf("rbac: end session: %w", err)
		}
		_, err := audit.Append(ctx, tx, p.Actor(), audit.Entry{
			Action: "session.sign_out", Object: audit.Object{Kind: "session", ID: old.ID}, At: s.now()})
		return err
	})
}

func (s *Service) person(u User, a Attempt) audit.Actor {
	p := Principal{UserID: u.ID, Email: u.Email, IP: a.IP, RequestID: a.RequestID}
	return p.Actor()
}
