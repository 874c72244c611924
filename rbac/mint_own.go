package rbac

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/audit"
)

// StepUpTokens are the living tokens that the person minted after a step-up,
// the newest first.
func (s *Service) StepUpTokens(ctx context.Context, p *Principal) ([]Token, error) {
	rows, err := s.pool.Query(ctx, `
		SELECT t.id, t.name, t.owner_id, u.email, t.roles, t.capture, t.environment, t.default_environment,
		       t.sources, t.created_at, t.expires_at, t.revoked_at, t.last_used_at
		FROM redrive.tokens t
		JOIN redrive.users u ON u.id = t.owner_id
		WHERE t.owner_id = $1 AND t.stepped_up_at IS NOT NULL AND t.revoked_at IS NULL AND t.expires_at > $2
		ORDER BY t.id DESC`, p.UserID, s.now())
	if err != nil {
		return nil, fmt.Errorf("rbac: own tokens: %w", err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Token])
	if err != nil {
		return nil, fmt.Errorf("rbac: own tokens: %w", err)
	}
	return list, nil
}

// RevokeStepUp stops a token that the person minted after a step-up, at once.
// Errors: NotFound when it isn't theirs or has ended.
func (s *Service) RevokeStepUp(ctx context.Context, p *Principal, id int64) error {
	return s.inTx(ctx, func(tx pgx.Tx) error {
		var name string
		err := tx.QueryRow(ctx, `
			UPDATE redrive.tokens
			SET revoked_at = $3
			WHERE id = $1 AND owner_id = $2 AND stepped_up_at IS NOT NULL AND revoked_at IS NULL AND expires_at > $3
			RETURNING name`, id, p.UserID, s.now()).Scan(&name)
		if err != nil {
			return notFound(err, "You have no such token, or it has ended already.")
		}
		_, err = audit.Append(ctx, tx, p.Actor(), audit.Entry{
			Action: "token.revoke", Object: tokenObject(id), At: s.now(), Details: map[string]any{"name": name, "owner": p.Email}})
		return err
	})
}
