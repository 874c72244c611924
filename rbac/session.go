package rbac

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/audit"
	"github.com/redrive-dlq/redrive/dlq/problem"
)

const (
	tokenBytes = 32 // 256 bits

	// touchAfter is how stale last_seen_at may get: so that not every request
	// writes. It shortens nobody's session.
	touchAfter = 30 * time.Second

	// maxSessions is how many sessions of one person live at once; a further
	// sign-in ends the one unused for longest.
	maxSessions = 20
)

// Session is one signed-in browser. Its token is known only to the browser and
// to the request that carries it; the database holds the SHA-256.
type Session struct {
	token           string
	ID              string // names the session on pages and in the audit log
	UserID          int64
	CreatedAt       time.Time // of the sign-in
	LastSeenAt      time.Time
	AuthenticatedAt time.Time // last passphrase
	IP              string
	UserAgent       string
	data            []byte
}

func (x *Session) hash() []byte { return tokenHash(x.token) }

func tokenHash(token string) []byte {
	sum := sha256.Sum256([]byte(token))
	return sum[:]
}

func newToken() string { return base64.RawURLEncoding.EncodeToString(randomBytes(tokenBytes)) }

// plausibleToken keeps arbitrary cookies away from the database.
func plausibleToken(s string) bool {
	b, err := base64.RawURLEncoding.Strict().DecodeString(s)
	return err == nil && len(b) == tokenBytes
}

// openSession inserts the session of a person who just proved the passphrase,
// and removes the browser's old one and what has expired.
func (s *Service) openSession(ctx context.Context, tx pgx.Tx, userID int64, a Attempt) (*Session, error) {
	if a.Old != nil {
		if _, err := tx.Exec(ctx, `DELETE FROM redrive.sessions WHERE token_hash = $1`, a.Old.hash()); err != nil {
			return nil, fmt.Errorf("rbac: end old session: %w", err)
		}
	}
	// The lock makes a sign-in and a disabling of the same person take turns.
	var disabledAt *time.Time
	if err := tx.QueryRow(ctx, `SELECT disabled_at FROM redrive.users WHERE id = $1 FOR SHARE`, userID).Scan(&disabledAt); err != nil {
		return nil, fmt.Errorf("rbac: find user: %w", err)
	}
	if disabledAt != nil {
		return nil, problem.New(problem.Unauthorized, wrongCredentials)
	}
	now := s.now()
	x := &Session{token: newToken(), UserID: userID, CreatedAt: now, LastSeenAt: now, AuthenticatedAt: now,
		IP: a.IP, UserAgent: cut(strings.ToValidUTF8(strings.ReplaceAll(a.UserAgent, "\x00", ""), ""), 300)}
	err := tx.QueryRow(ctx, `
		INSERT INTO redrive.sessions (token_hash, user_id, created_at, last_seen_at, authenticated_at, ip, user_agent)
		VALUES (@hash, @user, @now, @now, @now, @ip, @agent)
		RETURNING id::text`,
		pgx.NamedArgs{"hash": x.hash(), "user": userID, "now": now, "ip": x.IP, "agent": x.UserAgent}).Scan(&x.ID)
	if err != nil {
		return nil, fmt.Errorf("rbac: insert session: %w", err)
	}
	_, err = tx.Exec(ctx, `
		DELETE FROM redrive.sessions
		WHERE user_id = @user
		  AND (created_at <= @born OR last_seen_at <= @idle OR token_hash IN (
			SELECT token_hash
			FROM redrive.sessions
			WHERE user_id = @user
			ORDER BY last_seen_at DESC, created_at DESC
			OFFSET @keep))`,
		pgx.NamedArgs{"user": userID, "born": now.Add(-SessionAbsolute), "idle": now.Add(-SessionIdle), "keep": maxSessions})
	if err != nil {
		return nil, fmt.Errorf("rbac: trim sessions: %w", err)
	}
	return x, nil
}

// renewSession moves the session to a new token; its age stays.
func (s *Service) renewSession(ctx context.Context, tx pgx.Tx, old *Session) (*Session, error) {
	x := *old
	x.token, x.AuthenticatedAt = newToken(), s.now()
	tag, err := tx.Exec(ctx, `
		UPDATE redrive.sessions
		SET token_hash = @new, authenticated_at = @now
		WHERE token_hash = @old`,
		pgx.NamedArgs{"new": x.hash(), "old": old.hash(), "now": x.AuthenticatedAt})
	if err != nil {
		return nil, fmt.Errorf("rbac: renew session: %w", err)
	}
	if tag.RowsAffected() == 0 {
		return nil, problem.New(problem.Unauthorized, "Your session has ended. Sign in again.")
	}
	return &x, nil
}

// findSession returns the living session of a token, or nil. touch counts the
// request as use; event streams don't, so that an open tab keeps nobody in.
func (s *Service) findSession(ctx context.Context, token string, touch bool) (*Session, error) {
	if !plausibleToken(token) {
		return nil, nil
	}
	now := s.now()
	x := &Session{token: token}
	err := s.pool.QueryRow(ctx, `
		SELECT id::text, user_id, created_at, last_seen_at, authenticated_at, ip, user_agent, data
		FROM redrive.sessions
		WHERE token_hash = @hash
		  AND user_id IS NOT NULL
		  AND authenticated_at IS NOT NULL
		  AND created_at > @born
		  AND last_seen_at > @idle`,
		pgx.NamedArgs{"hash": x.hash(), "born": now.Add(-SessionAbsolute), "idle": now.Add(-SessionIdle)}).
		Scan(&x.ID, &x.UserID, &x.CreatedAt, &x.LastSeenAt, &x.AuthenticatedAt, &x.IP, &x.UserAgent, &x.data)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("rbac: find session: %w", err)
	}
	if touch && now.Sub(x.LastSeenAt) > touchAfter {
		_, err = s.pool.Exec(ctx, `
			UPDATE redrive.sessions
			SET last_seen_at = greatest(last_seen_at, $2)
			WHERE token_hash = $1`, x.hash(), now)
		if err != nil {
			return nil, fmt.Errorf("rbac: touch session: %w", err)
		}
		x.LastSeenAt = now
	}
	return x, nil
}

// ListSessions returns the principal's own living sessions, newest use first.
func (s *Service) ListSessions(ctx context.Context, p *Principal) ([]Session, error) {
	now := s.now()
	rows, err := s.pool.Query(ctx, `
		SELECT id::text, user_id, created_at, last_seen_at, authenticated_at, ip, user_agent
		FROM redrive.sessions
		WHERE user_id = @user
		  AND created_at > @born
		  AND last_seen_at > @idle
		ORDER BY last_seen_at DESC, id`,
		pgx.NamedArgs{"user": p.UserID, "born": now.Add(-SessionAbsolute), "idle": now.Add(-SessionIdle)})
	if err != nil {
		return nil, fmt.Errorf("rbac: list sessions: %w", err)
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (Session, error) {
		var x Session
		err := row.Scan(&x.ID, &x.UserID, &x.CreatedAt, &x.LastSeenAt, &x.AuthenticatedAt, &x.IP, &x.UserAgent)
		return x, err
	})
	if err != nil {
		return nil, fmt.Errorf("rbac: list sessions: %w", err)
	}
	return list, nil
}

// EndSession ends one of the principal's own sessions by its id; NotFound when
// it isn't theirs or has ended.
func (s *Service) EndSession(ctx context.Context, p *Principal, id string) error {
	return s.inTx(ctx, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `DELETE FROM redrive.sessions WHERE id::text = $1 AND user_id = $2`, id, p.UserID)
		if err != nil {
			return fmt.Errorf("rbac: end session: %w", err)
		}
		if tag.RowsAffected() == 0 {
			return problem.New(problem.NotFound, "This session has ended already.")
		}
		_, err = audit.Append(ctx, tx, p.Actor(), audit.Entry{
			Action: "session.end", Object: audit.Object{Kind: "session", ID: id}, At: s.now()})
		return err
	})
}

// EndOtherSessions ends all of the principal's sessions but the current one and
// returns how many ended.
func (s *Service) EndOtherSessions(ctx context.Context, p *Principal) (int, error) {
	var ended int
	err := s.inTx(ctx, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `DELETE FROM redrive.sessions WHERE user_id = $1 AND id::text <> $2`, p.UserID, p.SessionID)
		if err != nil {
			return fmt.Errorf("rbac: end sessions: %w", err)
		}
		if ended = int(tag.RowsAffected()); ended == 0 {
			return nil
		}
		_, err = audit.Append(ctx, tx, p.Actor(), audit.Entry{
			Action: "session.end_others", Object: userObject(p.UserID), Details: map[string]any{"email": p.Email, "sessions_ended": ended}, At: s.now()})
		return err
	})
	return ended, err
}

// PurgeSessions deletes sessions that have expired, and sign-in failures that
// no longer count. Run it now and then; nothing depends on it.
func (s *Service) PurgeSessions(ctx context.Context) error {
	now := s.now()
	_, err := s.pool.Exec(ctx, `DELETE FROM redrive.sessions WHERE created_at <= $1 OR last_seen_at <= $2`,
		now.Add(-SessionAbsolute), now.Add(-SessionIdle))
	if err == nil {
		_, err = s.pool.Exec(ctx, `DELETE FROM redrive.login_failures WHERE last_at < $1 AND coalesce(blocked_until, $2) <= $2`,
			now.Add(-24*time.Hour), now)
	}
	if err != nil {
		return fmt.Errorf("rbac: purge: %w", err)
	}
	return nil
}

func endAll(ctx context.Context, tx pgx.Tx, userID int64) (int64, error) {
	tag, err := tx.Exec(ctx, `DELETE FROM redrive.sessions WHERE user_id = $1`, userID)
	if err != nil {
		return 0, fmt.Errorf("rbac: end sessions: %w", err)
	}
	return tag.RowsAffected(), nil
}

// cut shortens s to at most n bytes without splitting a character.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "")
}
