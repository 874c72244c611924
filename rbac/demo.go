package rbac

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/audit"
)

// What the demo's accounts share. `redrive serve` never creates them.
const (
	DemoPassphrase  = "demo-only-passphrase"
	DemoIngestToken = "demo-ingest-token"
	demoDomain      = "@demo.test"
)

// DemoEmail is the demo account of a role: oncall@demo.test.
func DemoEmail(r Role) string { return string(r) + demoDomain }

// DemoToken is the demo's API token of a role: demo-oncall-token.
func DemoToken(r Role) string { return "demo-" + string(r) + "-token" }

// SeedDemo creates the demo's accounts, one a role, and their tokens, where
// they don't exist yet. The ingest token only captures, for the source
// "ingest": into production when a document names no environment, else into the
// one it names. Callers make sure that only a demo on loopback gets here.
func (s *Service) SeedDemo(ctx context.Context, tx pgx.Tx) error {
	actor := audit.SystemActor()
	for _, role := range AllRoles() {
		id, err := s.seedUser(ctx, tx, actor, role)
		if err != nil {
			return err
		}
		token := NewToken{Name: DemoToken(role), OwnerID: id, Roles: []Role{role}}
		if err := s.seedToken(ctx, tx, actor, token, DemoToken(role)); err != nil {
			return err
		}
		if role == Admin {
			ingest := NewToken{Name: DemoIngestToken, OwnerID: id, Capture: true,
				DefaultEnvironment: "production", Sources: []string{"ingest"}}
			if err := s.seedToken(ctx, tx, actor, ingest, DemoIngestToken); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Service) seedUser(ctx context.Context, tx pgx.Tx, actor audit.Actor, role Role) (int64, error) {
	var id int64
	err := tx.QueryRow(ctx, `SELECT coalesce((SELECT id FROM redrive.users WHERE lower(email) = $1), 0)`, DemoEmail(role)).Scan(&id)
	if err != nil {
		return 0, fmt.Errorf("rbac: demo user: %w", err)
	}
	if id != 0 {
		return id, nil
	}
	hash, err := s.hasher.Hash(ctx, DemoPassphrase)
	if err != nil {
		return 0, err
	}
	return s.insertUser(ctx, tx, actor, NewUser{Email: DemoEmail(role), Name: "Demo " + string(role), Grants: []Grant{{Role: role}}}, hash)
}

func (s *Service) seedToken(ctx context.Context, tx pgx.Tx, actor audit.Actor, n NewToken, secret string) error {
	var exists bool
	err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM redrive.tokens WHERE token_hash = $1)`, tokenHash(secret)).Scan(&exists)
	if err != nil {
		return fmt.Errorf("rbac: demo token: %w", err)
	}
	if exists {
		return nil
	}
	_, err = s.insertToken(ctx, tx, actor, n, secret)
	return err
}
