package rbac

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/dlq/problem"
)

// Person reads who is behind a session, with the roles of this moment. It
// returns nil when they are disabled or gone.
func (s *Service) Person(ctx context.Context, x *Session) (*Principal, error) {
	p, err := PersonNow(ctx, s.pool, x.UserID)
	if err != nil || p == nil {
		return nil, err
	}
	p.AuthenticatedAt, p.SessionID = x.AuthenticatedAt, x.ID
	return p, nil
}

// PersonNow reads a person with the roles of this moment, for a decision on
// what they ordered before. It returns nil when they are disabled or gone.
func PersonNow(ctx context.Context, db querier, userID int64) (*Principal, error) {
	p := &Principal{UserID: userID}
	// One round trip: this runs for every request.
	rows, err := db.Query(ctx, `
		SELECT u.email, u.name, coalesce(g.role, ''), coalesce(g.environment, ''), coalesce(g.job_type, '')
		FROM redrive.users u
		LEFT JOIN redrive.grants g ON g.user_id = u.id
		WHERE u.id = $1 AND u.disabled_at IS NULL
		ORDER BY g.role, g.environment, g.job_type`, userID)
	if err != nil {
		return nil, fmt.Errorf("rbac: load person: %w", err)
	}
	var g Grant
	found := false
	_, err = pgx.ForEachRow(rows, []any{&p.Email, &p.Name, &g.Role, &g.Environment, &g.JobType}, func() error {
		if found = true; g.Role != "" {
			p.Grants = append(p.Grants, g)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("rbac: load person: %w", err)
	}
	if !found {
		return nil, nil
	}
	return p, nil
}

// Bearer reads who is behind an API token: its owner, with no more than the
// token's own roles and environment. Unknown, revoked and expired tokens and
// those of disabled owners get the same Unauthorized.
func (s *Service) Bearer(ctx context.Context, secret string) (*Principal, error) {
	refused := problem.New(problem.Unauthorized, "This token is unknown, revoked or expired. Ask an administrator for another.")
	if secret == "" || len(secret) > 200 {
		return nil, refused
	}
	now := s.now()
	p := &Principal{}
	var roles []string
	var steppedUp, lastUsed *time.Time
	err := s.pool.QueryRow(ctx, `
		SELECT t.id, t.name, t.owner_id, u.email, u.name, t.roles, t.capture,
		       t.environment, t.default_environment, t.sources, t.stepped_up_at, t.last_used_at
		FROM redrive.tokens t
		JOIN redrive.users u ON u.id = t.owner_id
		WHERE t.token_hash = @hash
		  AND t.revoked_at IS NULL
		  AND (t.expires_at IS NULL OR t.expires_at > @now)
		  AND u.disabled_at IS NULL`, pgx.NamedArgs{"hash": tokenHash(secret), "now": now}).
		Scan(&p.TokenID, &p.TokenName, &p.UserID, &p.Email, &p.Name, &roles, &p.CaptureAllowed,
			&p.Environment, &p.DefaultEnvironment, &p.Sources, &steppedUp, &lastUsed)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, refused
	}
	if err != nil {
		return nil, fmt.Errorf("rbac: find token: %w", err)
	}
	if steppedUp != nil {
		p.AuthenticatedAt = *steppedUp
	}
	p.CaptureOnly = p.CaptureAllowed && len(roles) == 0
	if len(roles) > 0 {
		owned, err := grantsOf(ctx, s.pool, []int64{p.UserID})
		if err != nil {
			return nil, err
		}
		p.Grants = narrow(owned[p.UserID], roles, p.Environment)
	}
	if lastUsed == nil || now.Sub(*lastUsed) > time.Minute {
		if _, err := s.pool.Exec(ctx, `UPDATE redrive.tokens SET last_used_at = $2 WHERE id = $1`, p.TokenID, now); err != nil {
			return nil, fmt.Errorf("rbac: touch token: %w", err)
		}
	}
	return p, nil
}

// narrow keeps the owner's grants that the token also has, inside its environment.
func narrow(owned []Grant, roles []string, environment string) []Grant {
	var out []Grant
	for _, g := range owned {
		if !slices.Contains(roles, string(g.Role)) {
			continue
		}
		if environment != "" {
			if g.Environment != "" && g.Environment != environment {
				continue
			}
			g.Environment = environment
		}
		out = append(out, g)
	}
	return out
}

// BearerToken takes the token out of an Authorization header; the scheme's case
// doesn't matter (RFC 9110, 11.1). Empty when there is none.
func BearerToken(header string) string {
	scheme, rest, ok := strings.Cut(strings.TrimSpace(header), " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(rest)
}
