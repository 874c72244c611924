package rbac

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/redrive-dlq/redrive/dlq/problem"
)

// Limits of sessions and step-up (design.md; OWASP ASVS 5.0, 7.3 and 7.5).
const (
	SessionIdle     = 30 * time.Minute // without a request
	SessionAbsolute = 12 * time.Hour   // since the sign-in
	StepUpFor       = 5 * time.Minute  // how long a passphrase counts as fresh
	StepUpTokenFor  = time.Hour        // life of a token minted after step-up
)

// Service holds people, tokens and sessions. Safe for concurrent use.
type Service struct {
	pool   *pgxpool.Pool
	now    func() time.Time
	hasher *Hasher
}

// New returns a service on the pool. now is the clock of every rule here; nil
// means time.Now. hasher may be nil for the default one.
func New(pool *pgxpool.Pool, now func() time.Time, hasher *Hasher) *Service {
	if now == nil {
		now = time.Now
	}
	if hasher == nil {
		hasher = NewHasher(0)
	}
	return &Service{pool: pool, now: now, hasher: hasher}
}

// Now is the service's clock.
func (s *Service) Now() time.Time { return s.now() }

// inTx runs f in a transaction. The rollback is not cancelled with the request.
func (s *Service) inTx(ctx context.Context, f func(tx pgx.Tx) error) error {
	tx, err := s.pool.Begin(ctx)
	if err != nil {
		return fmt.Errorf("rbac: begin: %w", err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	if err := f(tx); err != nil {
		return err
	}
	if err := tx.Commit(ctx); err != nil {
		return fmt.Errorf("rbac: commit: %w", err)
	}
	return nil
}

// notFound turns "no rows" into a NotFound problem and keeps other errors.
func notFound(err error, format string, args ...any) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return problem.New(problem.NotFound, format, args...)
	}
	return fmt.Errorf("rbac: %w", err)
}
