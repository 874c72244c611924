package rbac

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/gorilla/sessions"

	"github.com/redrive-dlq/redrive/dlq/problem"
)

// CookieName names the session cookie. The prefix makes browsers insist on
// Secure, Path=/ and no Domain, so that no neighbour host can plant one.
const CookieName = "__Host-redrive"

// maxSessionData bounds what a page may keep in a session, in bytes.
const maxSessionData = 8 << 10

// sessionKey is where a *Session stands among the values of a gorilla session.
type sessionKey struct{}

// Store is a gorilla/sessions Store over redrive.sessions. It never makes a row
// for somebody who isn't signed in: SignIn does, and Adopt takes it over.
type Store struct {
	service *Service
}

// Store returns the session store of the service.
func (s *Service) Store() *Store { return &Store{service: s} }

var _ sessions.Store = (*Store)(nil)

// cookieOptions sets every attribute: gorilla's defaults are not safe. There is
// no MaxAge, so the cookie goes with the browser; the server decides on expiry.
func cookieOptions() *sessions.Options {
	return &sessions.Options{Path: "/", Secure: true, HttpOnly: true, SameSite: http.SameSiteLaxMode}
}

// Get returns the request's session, read once a request.
func (st *Store) Get(r *http.Request, name string) (*sessions.Session, error) {
	return sessions.GetRegistry(r).Get(st, name)
}

// New reads the request's session. One without a living row is new and empty;
// an error means the database could not be asked, and the caller must refuse.
func (st *Store) New(r *http.Request, name string) (*sessions.Session, error) {
	sess := sessions.NewSession(st, name)
	sess.Options = cookieOptions()
	sess.IsNew = true
	cookie, err := r.Cookie(name)
	if err != nil {
		return sess, nil //nolint:nilerr // no cookie: nobody is signed in
	}
	x, err := st.service.findSession(r.Context(), cookie.Value, true)
	if err != nil {
		return sess, err
	}
	if x != nil {
		st.Adopt(sess, x)
		if err := decodeValues(sess, x.data); err != nil {
			return sess, err
		}
	}
	return sess, nil
}

// Adopt makes x the session's row; Save then sends its cookie.
func (st *Store) Adopt(sess *sessions.Session, x *Session) {
	sess.ID = x.token
	sess.IsNew = false
	sess.Values[sessionKey{}] = x
}

// SessionOf returns the row behind a gorilla session, nil when nobody is signed in.
func SessionOf(sess *sessions.Session) *Session {
	x, _ := sess.Values[sessionKey{}].(*Session)
	return x
}

// Save stores the session's values and sends the cookie; with a negative MaxAge
// it deletes both. It returns Unauthorized when there are values to keep but
// nobody is signed in.
func (st *Store) Save(r *http.Request, w http.ResponseWriter, sess *sessions.Session) error {
	x := SessionOf(sess)
	if sess.Options.MaxAge < 0 {
		http.SetCookie(w, sessions.NewCookie(sess.Name(), "", sess.Options))
		if x == nil {
			return nil
		}
		_, err := st.service.pool.Exec(r.Context(), `DELETE FROM redrive.sessions WHERE token_hash = $1`, x.hash())
		if err != nil {
			return fmt.Errorf("rbac: delete session: %w", err)
		}
		return nil
	}
	data, err := encodeValues(sess)
	if err != nil {
		return err
	}
	if x == nil {
		if len(data) == 0 {
			return nil
		}
		return problem.New(problem.Unauthorized, "Sign in first.")
	}
	if string(data) != string(x.data) {
		_, err := st.service.pool.Exec(r.Context(), `UPDATE redrive.sessions SET data = $2 WHERE token_hash = $1`, x.hash(), data)
		if err != nil {
			return fmt.Errorf("rbac: save session: %w", err)
		}
		x.data = data
	}
	if cookie, err := r.Cookie(sess.Name()); errors.Is(err, http.ErrNoCookie) || cookie.Value != x.token {
		http.SetCookie(w, sessions.NewCookie(sess.Name(), x.token, sess.Options))
	}
	return nil
}

// Alive reports whether the session of an open event stream still lives, without
// counting as use.
func (st *Store) Alive(ctx context.Context, x *Session) (bool, error) {
	found, err := st.service.findSession(ctx, x.token, false)
	return found != nil, err
}

// encodeValues writes the values with a string for a name; nothing else is kept.
func encodeValues(sess *sessions.Session) ([]byte, error) {
	values := map[string]any{}
	for k, v := range sess.Values {
		if name, ok := k.(string); ok {
			values[name] = v
		}
	}
	if len(values) == 0 {
		return []byte{}, nil
	}
	data, err := json.Marshal(values)
	if err != nil {
		return nil, fmt.Errorf("rbac: encode session: %w", err)
	}
	if len(data) > maxSessionData {
		return nil, fmt.Errorf("rbac: session data has %d bytes, more than %d", len(data), maxSessionData)
	}
	return data, nil
}

func decodeValues(sess *sessions.Session, data []byte) error {
	if len(data) == 0 {
		return nil
	}
	var values map[string]any
	if err := json.Unmarshal(data, &values); err != nil {
		return fmt.Errorf("rbac: decode session: %w", err)
	}
	for k, v := range values {
		sess.Values[k] = v
	}
	return nil
}
