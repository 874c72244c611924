package rbac

import (
	"context"
	"errors"
	"fmt"
	"net/mail"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/redrive-dlq/redrive/audit"
	"github.com/redrive-dlq/redrive/dlq/problem"
)

// User is a person as lists show them.
type User struct {
	ID         int64
	Email      string
	Name       string
	Grants     []Grant
	CreatedAt  time.Time
	DisabledAt *time.Time
	LastSeenAt *time.Time // newest request of any of their sessions that still exist
	Sessions   int        // that still live
}

// NewUser is what an administrator enters for a new person.
type NewUser struct {
	Email      string
	Name       string
	Passphrase string
	Grants     []Grant
}

// CreateUser adds a person with their roles and returns the id. It needs the
// right to administer and a fresh step-up. Errors: Forbidden, StepUpMissing,
// Invalid with the field at fault, Conflict for an address already taken.
func (s *Service) CreateUser(ctx context.Context, p *Principal, n NewUser) (int64, error) {
	if err := s.mayAdminister(p); err != nil {
		return 0, err
	}
	email, err := cleanEmail(n.Email)
	if err != nil {
		return 0, err
	}
	n.Email = email
	if err := checkNewUser(n); err != nil {
		return 0, err
	}
	hash, err := s.hasher.Hash(ctx, n.Passphrase)
	if err != nil {
		return 0, err
	}
	var id int64
	err = s.inTx(ctx, func(tx pgx.Tx) error {
		id, err = s.insertUser(ctx, tx, p.Actor(), n, hash)
		return err
	})
	return id, err
}

func checkNewUser(n NewUser) error {
	if err := CheckPassphrase(n.Passphrase, n.Email); err != nil {
		return err
	}
	if len(n.Name) > 200 || strings.ContainsRune(n.Name, 0) {
		return problem.At(problem.Invalid, "name", "The name is too long or holds characters that can't be stored.")
	}
	if len(n.Grants) == 0 {
		return problem.At(problem.Invalid, "role", "Choose at least one role.")
	}
	for _, g := range n.Grants {
		if err := checkGrant(g); err != nil {
			return err
		}
	}
	return nil
}

func checkGrant(g Grant) error {
	if !g.Role.Valid() {
		return problem.At(problem.Invalid, "role", "There is no such role. The roles are viewer, operator, oncall, approver, auditor and admin.")
	}
	if len(g.Environment) > 255 || len(g.JobType) > 255 || strings.ContainsRune(g.Environment+g.JobType, 0) {
		return problem.At(problem.Invalid, "environment", "The environment or job type is too long or holds characters that can't be stored.")
	}
	return nil
}

// insertUser writes the person, the grants and the audit entry.
func (s *Service) insertUser(ctx context.Context, tx pgx.Tx, actor audit.Actor, n NewUser, hash string) (int64, error) {
	var id int64
	err := tx.QueryRow(ctx, `
		INSERT INTO redrive.users (email, name, password_hash, created_at)
		VALUES (@email, @name, @hash, @now)
		RETURNING id`,
		pgx.NamedArgs{"email": n.Email, "name": strings.TrimSpace(n.Name), "hash": hash, "now": s.now()}).Scan(&id)
	if pg := (*pgconn.PgError)(nil); errors.As(err, &pg) && pg.ConstraintName == "users_email" {
		return 0, problem.At(problem.Conflict, "email", "There is already a person with this e-mail address.")
	}
	if err != nil {
		return 0, fmt.Errorf("rbac: insert user: %w", err)
	}
	roles := []string{}
	for _, g := range n.Grants {
		if _, err := s.insertGrant(ctx, tx, actor, id, g); err != nil {
			return 0, err
		}
		roles = append(roles, g.String())
	}
	_, err = audit.Append(ctx, tx, actor, audit.Entry{
		Action: "user.create", Object: userObject(id), At: s.now(),
		Details: map[string]any{"email": n.Email, "roles": roles},
	})
	return id, err
}

// ListUsers returns all people, by address, at most limit of them. It needs the
// right to administer.
func (s *Service) ListUsers(ctx context.Context, p *Principal, limit int) ([]User, error) {
	if err := p.Require("", "", Administer); err != nil {
		return nil, err
	}
	rows, err := s.pool.Query(ctx, `
		SELECT u.id, u.email, u.name, u.created_at, u.disabled_at,
		       x.last_seen_at, coalesce(x.living, 0)
		FROM redrive.users u
		LEFT JOIN (
			SELECT user_id, max(last_seen_at) AS last_seen_at,
			       count(*) FILTER (WHERE created_at > @born AND last_seen_at > @idle) AS living
			FROM redrive.sessions
			GROUP BY user_id) x ON x.user_id = u.id
		ORDER BY lower(u.email)
		LIMIT @limit`,
		pgx.NamedArgs{"limit": limit, "born": s.now().Add(-SessionAbsolute), "idle": s.now().Add(-SessionIdle)})
	if err != nil {
		return nil, fmt.Errorf("rbac: list users: %w", err)
	}
	users, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (User, error) {
		var u User
		err := row.Scan(&u.ID, &u.Email, &u.Name, &u.CreatedAt, &u.DisabledAt, &u.LastSeenAt, &u.Sessions)
		return u, err
	})
	if err != nil {
		return nil, fmt.Errorf("rbac: list users: %w", err)
	}
	ids := make([]int64, len(users))
	for i, u := range users {
		ids[i] = u.ID
	}
	grants, err := grantsOf(ctx, s.pool, ids)
	if err != nil {
		return nil, err
	}
	for i := range users {
		users[i].Grants = grants[users[i].ID]
	}
	return users, nil
}

// FindUser returns the person with the address, whatever its case, or NotFound.
// It authorises nothing: it serves commands on the machine itself.
func (s *Service) FindUser(ctx context.Context, email string) (User, error) {
	var u User
	err := s.pool.QueryRow(ctx, `
		SELECT id, email, name, created_at, disabled_at
		FROM redrive.users
		WHERE lower(email) = lower($1)`, email).Scan(&u.ID, &u.Email, &u.Name, &u.CreatedAt, &u.DisabledAt)
	if err != nil {
		return User{}, notFound(err, "There is no person with this e-mail address.")
	}
	grants, err := grantsOf(ctx, s.pool, []int64{u.ID})
	u.Grants = grants[u.ID]
	return u, err
}

// mayAdminister asks for the right and a passphrase given just now: people,
// roles and keys change what everybody may do.
func (s *Service) mayAdminister(p *Principal) error {
	if err := p.Require("", "", Administer); err != nil {
		return err
	}
	return s.RequireStepUp(p)
}

// RequireStepUp returns StepUpMissing when the passphrase was not given
// recently enough for what the principal asks.
func (s *Service) RequireStepUp(p *Principal) error {
	switch {
	case p.SteppedUp(s.now()):
		return nil
	case p.TokenID != 0:
		return problem.New(problem.StepUpMissing, "This takes a token that its owner minted on their account page, after giving the passphrase at most %d minutes ago. Nothing was done.", int(StepUpTokenFor.Minutes()))
	default:
		return problem.New(problem.StepUpMissing, "Confirm your passphrase first: the last time was more than %d minutes ago.", int(StepUpFor.Minutes()))
	}
}

func cleanEmail(s string) (string, error) {
	s = strings.ToLower(strings.TrimSpace(s))
	a, err := mail.ParseAddress(s)
	if err != nil || a.Address != s || len(s) > 254 {
		return "", problem.At(problem.Invalid, "email", "This is no e-mail address. It should look like name@example.com.")
	}
	return s, nil
}

func userObject(id int64) audit.Object {
	return audit.Object{Kind: "user", ID: strconv.FormatInt(id, 10)}
}
