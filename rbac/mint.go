package rbac

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/dlq/problem"
)

// maxStepUpTokens is how many tokens minted after a step-up one person may have
// alive at once.
const maxStepUpTokens = 5

// StepUpToken is what a person enters for a token of their own that counts as
// stepped up: what scripts confirm batches with.
type StepUpToken struct {
	Name        string
	Roles       []Role        // of the person's own; empty: all of them
	Environment string        // limit; empty: everywhere the person may act
	ExpiresIn   time.Duration // at most StepUpTokenFor; 0 = StepUpTokenFor
}

// MintStepUp makes a token of the person's own and returns its secret, which is
// never shown again. It counts as stepped up from the passphrase on, for at
// most an hour, and may never do more than its owner. Errors: Forbidden for
// one who isn't in a session, StepUpMissing, Invalid with the field, Conflict
// for one too many.
func (s *Service) MintStepUp(ctx context.Context, p *Principal, n StepUpToken) (secret string, t Token, err error) {
	if p == nil || p.UserID == 0 || p.TokenID != 0 || p.SessionID == "" {
		return "", Token{}, problem.New(problem.Forbidden, "Only a person who signed in can mint such a token, and no token can mint another.")
	}
	if err := s.RequireStepUp(p); err != nil {
		return "", Token{}, err
	}
	full, err := s.newStepUp(p, n)
	if err != nil {
		return "", Token{}, err
	}
	secret = TokenPrefix + newToken()
	var id int64
	err = s.inTx(ctx, func(tx pgx.Tx) error {
		if err := s.roomForStepUp(ctx, tx, p.UserID); err != nil {
			return err
		}
		id, err = s.insertToken(ctx, tx, p.Actor(), full, secret)
		return err
	})
	if err != nil {
		return "", Token{}, err
	}
	expires := s.now().Add(full.ExpiresIn)
	t = Token{ID: id, Name: full.Name, OwnerID: p.UserID, OwnerEmail: p.Email, Environment: full.Environment, ExpiresAt: &expires}
	for _, r := range full.Roles {
		t.Roles = append(t.Roles, string(r))
	}
	return secret, t, nil
}

// newStepUp checks what was entered and fills in what it leaves open.
func (s *Service) newStepUp(p *Principal, n StepUpToken) (NewToken, error) {
	if n.ExpiresIn < 0 || n.ExpiresIn > StepUpTokenFor {
		return NewToken{}, problem.At(problem.Invalid, "expires", "Such a token lives at most %d minutes.", int(StepUpTokenFor.Minutes()))
	}
	if n.Environment != "" && !p.Can(Read, n.Environment, "") {
		return NewToken{}, problem.At(problem.Invalid, "environment", "You have no role in an environment of this name.")
	}
	if n.ExpiresIn == 0 {
		n.ExpiresIn = StepUpTokenFor
	}
	if len(n.Roles) == 0 {
		for _, r := range p.Roles() {
			n.Roles = append(n.Roles, Role(r))
		}
	}
	// An hour after the passphrase it would count for nothing.
	left := p.AuthenticatedAt.Add(StepUpTokenFor).Sub(s.now())
	full := NewToken{Name: strings.TrimSpace(n.Name), OwnerID: p.UserID, Roles: n.Roles, Environment: n.Environment,
		ExpiresIn: min(n.ExpiresIn, left), steppedUpAt: &p.AuthenticatedAt}
	return full, full.check()
}

// roomForStepUp takes the person's row, so that two at once are counted, and
// refuses one token too many.
func (s *Service) roomForStepUp(ctx context.Context, tx pgx.Tx, userID int64) error {
	var alive int
	if _, err := tx.Exec(ctx, `SELECT FROM redrive.users WHERE id = $1 FOR UPDATE`, userID); err != nil {
		return fmt.Errorf("rbac: lock person: %w", err)
	}
	err := tx.QueryRow(ctx, `
		SELECT count(*)
		FROM redrive.tokens
		WHERE owner_id = $1 AND stepped_up_at IS NOT NULL AND revoked_at IS NULL AND expires_at > $2`, userID, s.now()).Scan(&alive)
	if err != nil {
		return fmt.Errorf("rbac: count tokens: %w", err)
	}
	if alive >= maxStepUpTokens {
		return problem.New(problem.Conflict, "You have %d such tokens already. Revoke one, or wait until one ends.", alive)
	}
	return nil
}
