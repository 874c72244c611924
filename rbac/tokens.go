package rbac

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/audit"
	"github.com/redrive-dlq/redrive/dlq/problem"
)

// TokenPrefix starts every minted token, so that scanners and the redactor
// recognise one that leaked.
const TokenPrefix = "rdt_"

// MaxTokenLife bounds how long a minted token may live.
const MaxTokenLife = 366 * 24 * time.Hour

// Token is an API token as lists show it; the secret is stored nowhere.
type Token struct {
	ID                 int64
	Name               string
	OwnerID            int64
	OwnerEmail         string
	Roles              []string
	Capture            bool     // may write dead jobs
	Environment        string   // limit; empty = every environment
	DefaultEnvironment string   // of documents that name none
	Sources            []string // may write only these; the first is the default
	CreatedAt          time.Time
	ExpiresAt          *time.Time
	RevokedAt          *time.Time
	LastUsedAt         *time.Time // to the minute
}

// NewToken is what an administrator enters for a new token.
type NewToken struct {
	Name               string
	OwnerID            int64
	Roles              []Role // at most the owner's; empty for one that only captures
	Capture            bool
	Environment        string
	DefaultEnvironment string
	Sources            []string      // needed for Capture
	ExpiresIn          time.Duration // at most MaxTokenLife; 0 = MaxTokenLife

	steppedUpAt *time.Time // of its owner, for one that counts as stepped up
}

// MintToken makes a token and returns its secret, which is never shown again.
// It needs the right to administer and a fresh step-up. Errors: Forbidden,
// StepUpMissing, Invalid with the field, NotFound for the owner.
func (s *Service) MintToken(ctx context.Context, p *Principal, n NewToken) (secret string, id int64, err error) {
	if err := s.mayAdminister(p); err != nil {
		return "", 0, err
	}
	if err := n.check(); err != nil {
		return "", 0, err
	}
	secret = TokenPrefix + newToken()
	err = s.inTx(ctx, func(tx pgx.Tx) error {
		id, err = s.insertToken(ctx, tx, p.Actor(), n, secret)
		return err
	})
	if err != nil {
		return "", 0, err
	}
	return secret, id, nil
}

func (n NewToken) check() error {
	for _, text := range append([]string{n.Name, n.Environment, n.DefaultEnvironment}, n.Sources...) {
		if len(text) > 255 || strings.ContainsRune(text, 0) {
			return problem.At(problem.Invalid, "name", "A name, environment or source is longer than 255 bytes or holds characters that can't be stored.")
		}
	}
	switch {
	case strings.TrimSpace(n.Name) == "":
		return problem.At(problem.Invalid, "name", "Give the token a name that says who uses it.")
	case len(n.Roles) == 0 && !n.Capture:
		return problem.At(problem.Invalid, "role", "Choose a role for the token, or let it capture.")
	case n.Capture && (len(n.Sources) == 0 || slices.Contains(n.Sources, "")):
		return problem.At(problem.Invalid, "sources", "Name at least one source that the token writes to.")
	case n.Environment != "" && n.DefaultEnvironment != "" && n.Environment != n.DefaultEnvironment:
		return problem.At(problem.Invalid, "default_environment", "The default environment is outside the token's limit.")
	case n.ExpiresIn < 0 || n.ExpiresIn > MaxTokenLife:
		return problem.At(problem.Invalid, "expires", "A token lives at most 366 days.")
	}
	for _, r := range n.Roles {
		if !r.Valid() {
			return problem.At(problem.Invalid, "role", "There is no such role.")
		}
	}
	return nil
}

// insertToken writes the token and its audit entry. A demo token has no expiry.
func (s *Service) insertToken(ctx context.Context, tx pgx.Tx, actor audit.Actor, n NewToken, secret string) (int64, error) {
	var email string
	err := tx.QueryRow(ctx, `SELECT email FROM redrive.users WHERE id = $1 AND disabled_at IS NULL FOR SHARE`, n.OwnerID).Scan(&email)
	if err != nil {
		return 0, notFound(err, "There is no such person, or they are disabled.")
	}
	owned, err := grantsOf(ctx, tx, []int64{n.OwnerID})
	if err != nil {
		return 0, err
	}
	roles := []string{}
	for _, r := range n.Roles {
		if !slices.ContainsFunc(owned[n.OwnerID], func(g Grant) bool { return g.Role == r }) {
			return 0, problem.At(problem.Invalid, "role", "%s is not %s, so their token can't be.", email, r)
		}
		roles = append(roles, string(r))
	}
	now := s.now()
	var expires *time.Time
	if n.ExpiresIn > 0 {
		at := now.Add(n.ExpiresIn)
		expires = &at
	} else if strings.HasPrefix(secret, TokenPrefix) {
		at := now.Add(MaxTokenLife)
		expires = &at
	}
	sources := append([]string{}, n.Sources...)
	var id int64
	err = tx.QueryRow(ctx, `
		INSERT INTO redrive.tokens (name, token_hash, owner_id, roles, capture, environment, default_environment, sources, created_at, expires_at, stepped_up_at)
		VALUES (@name, @hash, @owner, @roles, @capture, @environment, @default, @sources, @now, @expires, @stepped_up)
		RETURNING id`,
		pgx.NamedArgs{"name": n.Name, "hash": tokenHash(secret), "owner": n.OwnerID, "roles": roles, "capture": n.Capture,
			"environment": n.Environment, "default": n.DefaultEnvironment, "sources": sources, "now": now, "expires": expires, "stepped_up": n.steppedUpAt}).Scan(&id)
	if err != nil {
		return 0, fmt.Errorf("rbac: insert token: %w", err)
	}
	details := map[string]any{"name": n.Name, "owner": email, "roles": roles, "capture": n.Capture, "sources": sources}
	if n.steppedUpAt != nil {
		details["stepped_up_at"] = n.steppedUpAt.UTC().Format(time.RFC3339)
	}
	_, err = audit.Append(ctx, tx, actor, audit.Entry{
		Action: "token.mint", Object: tokenObject(id), Environment: n.Environment, At: now, Details: details,
	})
	return id, err
}

// RevokeToken stops a token at once. Like disabling, it needs no step-up.
// Errors: Forbidden, NotFound, Conflict when revoked already.
func (s *Service) RevokeToken(ctx context.Context, p *Principal, id int64, reason string) error {
	if err := p.Require("", "", Administer); err != nil {
		return err
	}
	return s.inTx(ctx, func(tx pgx.Tx) error {
		var name, email string
		var revoked *time.Time
		err := tx.QueryRow(ctx, `
			SELECT t.name, u.email, t.revoked_at
			FROM redrive.tokens t
			JOIN redrive.users u ON u.id = t.owner_id
			WHERE t.id = $1
			FOR UPDATE OF t`, id).Scan(&name, &email, &revoked)
		if err != nil {
			return notFound(err, "There is no such token.")
		}
		if revoked != nil {
			return problem.New(problem.Conflict, "This token is revoked already.")
		}
		if _, err := tx.Exec(ctx, `UPDATE redrive.tokens SET revoked_at = $2 WHERE id = $1`, id, s.now()); err != nil {
			return fmt.Errorf("rbac: revoke token: %w", err)
		}
		_, err = audit.Append(ctx, tx, p.Actor(), audit.Entry{
			Action: "token.revoke", Object: tokenObject(id), Reason: reason, At: s.now(),
			Details: map[string]any{"name": name, "owner": email}})
		return err
	})
}

// ListTokens returns the newest tokens, at most limit, revoked ones too. It
// needs the right to administer.
func (s *Service) ListTokens(ctx context.Context, p *Principal, limit int) ([]Token, error) {
	if err := p.Require("", "", Administer); err != nil {
		return nil, err
	}
	rows, err := s.pool.Query(ctx, `
		SELECT t.id, t.name, t.owner_id, u.email, t.roles, t.capture, t.environment, t.default_environment,
		       t.sources, t.created_at, t.expires_at, t.revoked_at, t.last_used_at
		FROM redrive.tokens t
		JOIN redrive.users u ON u.id = t.owner_id
		ORDER BY t.id DESC
		LIMIT $1`, limit)
	if err != nil {
		return nil, fmt.Errorf("rbac: list tokens: %w", err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Token])
	if err != nil {
		return nil, fmt.Errorf("rbac: list tokens: %w", err)
	}
	return list, nil
}

func tokenObject(id int64) audit.Object {
	return audit.Object{Kind: "token", ID: strconv.FormatInt(id, 10)}
}
