package rbac

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/dlq/problem"
)

// Sign-in limits. After so many failures within failureWindow each further one
// doubles the wait, from firstBlock up to longestBlock. The address allows
// more, because an office shares one.
const (
	accountFailures = 5
	addressFailures = 30
	failureWindow   = 15 * time.Minute
	firstBlock      = 30 * time.Second
	longestBlock    = 15 * time.Minute
)

// Throttled is the cause inside a TooMany problem: when to try again.
type Throttled struct {
	After time.Duration
}

// Error implements error.
func (t *Throttled) Error() string { return "throttled for " + t.After.String() }

// reservation is one try that counts as failed until it succeeds: so parallel
// guesses can't all slip in before the first of them is counted.
type reservation struct {
	account, address   string
	accountN, addressN int // failures so far, this one included
}

// reserve counts a try against the address, then the account, always in this
// order, so that sign-ins never deadlock. Unknown accounts count as known ones
// do. It returns TooMany with a *Throttled cause while either is blocked.
func (s *Service) reserve(ctx context.Context, email, ip string) (reservation, error) {
	r := reservation{account: accountSubject(email), address: addressSubject(ip)}
	var blocked error // kept outside: the transaction commits what it counted
	err := s.inTx(ctx, func(tx pgx.Tx) error {
		var err error
		if r.addressN, err = s.count(ctx, tx, r.address, addressFailures, &blocked); err != nil || blocked != nil {
			return err
		}
		r.accountN, err = s.count(ctx, tx, r.account, accountFailures, &blocked)
		return err
	})
	if err != nil {
		return r, err
	}
	return r, blocked
}

func (s *Service) count(ctx context.Context, tx pgx.Tx, subject string, limit int, blocked *error) (int, error) {
	now := s.now()
	_, err := tx.Exec(ctx, `
		INSERT INTO redrive.login_failures (subject, failures, last_at)
		VALUES ($1, 0, $2)
		ON CONFLICT (subject) DO NOTHING`, subject, now)
	if err != nil {
		return 0, fmt.Errorf("rbac: throttle: %w", err)
	}
	var n int
	var lastAt time.Time
	var until *time.Time
	err = tx.QueryRow(ctx, `
		SELECT failures, last_at, blocked_until
		FROM redrive.login_failures
		WHERE subject = $1
		FOR UPDATE`, subject).Scan(&n, &lastAt, &until)
	if err != nil {
		return 0, fmt.Errorf("rbac: throttle: %w", err)
	}
	if until != nil && until.After(now) {
		*blocked = tooMany(until.Sub(now))
		return n, nil
	}
	if now.Sub(lastAt) > failureWindow {
		n = 0
	}
	n++
	_, err = tx.Exec(ctx, `
		UPDATE redrive.login_failures
		SET failures = @n, last_at = @now, blocked_until = @until
		WHERE subject = @subject`,
		pgx.NamedArgs{"subject": subject, "n": n, "now": now, "until": blockUntil(n, limit, now)})
	if err != nil {
		return 0, fmt.Errorf("rbac: throttle: %w", err)
	}
	return n, nil
}

// release takes a try back that turned out right: the account starts anew, the
// address keeps what others did.
func (s *Service) release(ctx context.Context, tx pgx.Tx, r reservation) error {
	_, err := tx.Exec(ctx, `
		UPDATE redrive.login_failures
		SET failures = greatest(failures - 1, 0),
		    blocked_until = CASE WHEN failures - 1 < @limit THEN NULL ELSE blocked_until END
		WHERE subject = @address`,
		pgx.NamedArgs{"address": r.address, "limit": addressFailures})
	if err == nil {
		_, err = tx.Exec(ctx, `DELETE FROM redrive.login_failures WHERE subject = $1`, r.account)
	}
	if err != nil {
		return fmt.Errorf("rbac: throttle: %w", err)
	}
	return nil
}

func blockUntil(n, limit int, now time.Time) *time.Time {
	if n < limit {
		return nil
	}
	wait := longestBlock
	if over := n - limit; over < 10 {
		wait = min(firstBlock<<over, longestBlock)
	}
	until := now.Add(wait)
	return &until
}

func tooMany(after time.Duration) error {
	words := fmt.Sprintf("%d seconds", int(after.Seconds())+1)
	if after >= 2*time.Minute {
		words = fmt.Sprintf("%d minutes", int(after.Minutes())+1)
	}
	return problem.Wrap(&Throttled{After: after}, problem.TooMany,
		"Too many sign-ins failed. Nothing was checked this time. Try again in %s.", words)
}

func accountSubject(email string) string {
	sum := sha256.Sum256([]byte(strings.ToLower(strings.TrimSpace(email))))
	return "account:" + hex.EncodeToString(sum[:])
}

// addressSubject takes a whole /64 for IPv6: that is what one customer gets.
func addressSubject(ip string) string {
	addr, err := netip.ParseAddr(ip)
	if err != nil {
		return "address:unknown"
	}
	addr = addr.Unmap().WithZone("")
	if addr.Is6() {
		if prefix, err := addr.Prefix(64); err == nil {
			return "address:" + prefix.String()
		}
	}
	return "address:" + addr.String()
}
