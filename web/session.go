package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	gorilla "github.com/gorilla/sessions"
	"github.com/labstack/echo/v4"

	"github.com/redrive-dlq/redrive/rbac"
	"github.com/redrive-dlq/redrive/views/layout"
	"github.com/redrive-dlq/redrive/views/route"
)

const keySession = "redrive.session"

// browserSession reads the request's session once.
func (s *Server) browserSession(c echo.Context) (*gorilla.Session, error) {
	if sess, ok := c.Get(keySession).(*gorilla.Session); ok {
		return sess, nil
	}
	sess, err := s.sessions.New(c.Request(), rbac.CookieName)
	if err != nil {
		return nil, fmt.Errorf("web: session: %w", err)
	}
	c.Set(keySession, sess)
	return sess, nil
}

// session is the row behind the browser's cookie, nil when nobody is signed in.
func (s *Server) session(c echo.Context) (*rbac.Session, error) {
	sess, err := s.browserSession(c)
	if err != nil {
		return nil, err
	}
	return rbac.SessionOf(sess), nil
}

// adopt makes x the browser's session and sends its cookie.
func (s *Server) adopt(c echo.Context, x *rbac.Session) error {
	sess, err := s.browserSession(c)
	if err != nil {
		return err
	}
	s.sessions.Adopt(sess, x)
	return s.sessions.Save(c.Request(), c.Response(), sess)
}

// redirectWithFlash answers a form: it keeps a message for the next page and
// leads there with a GET.
func (s *Server) redirectWithFlash(c echo.Context, path string, flash layout.Flash) error {
	sess, err := s.browserSession(c)
	if err != nil {
		return err
	}
	text, err := json.Marshal(flash)
	if err != nil {
		return fmt.Errorf("web: encode flash: %w", err)
	}
	if rbac.SessionOf(sess) != nil {
		keepFlash(sess, string(text))
		if err := s.sessions.Save(c.Request(), c.Response(), sess); err != nil {
			return err
		}
	}
	return c.Redirect(http.StatusSeeOther, path)
}

// maxFlashes is how many messages wait for a page. A script that posts forms and
// opens no page would fill the session, and its next act would be done and
// answered with a failure.
const maxFlashes = 5

// keepFlash adds a message, in the place of the oldest one where there are many.
func keepFlash(sess *gorilla.Session, text string) {
	kept := sess.Flashes()
	for _, old := range kept[max(0, len(kept)-maxFlashes+1):] {
		sess.AddFlash(old)
	}
	sess.AddFlash(text)
}

// takeFlashes returns the messages kept for this page, newest first, and
// forgets them.
func (s *Server) takeFlashes(c echo.Context) ([]layout.Flash, error) {
	sess, err := s.browserSession(c)
	if err != nil || rbac.SessionOf(sess) == nil {
		return nil, err
	}
	kept := sess.Flashes()
	if len(kept) == 0 {
		return nil, nil
	}
	var list []layout.Flash
	for i := len(kept) - 1; i >= 0; i-- {
		text, _ := kept[i].(string)
		var f layout.Flash
		if json.Unmarshal([]byte(text), &f) == nil {
			list = append(list, f)
		}
	}
	return list, s.sessions.Save(c.Request(), c.Response(), sess)
}

// localPath returns next when it is a path of this console, else the overview:
// a sign-in must not lead to another site (OWASP ASVS 5.0, 3.7.2).
func localPath(next string) string {
	if len(next) > 2000 || !strings.HasPrefix(next, "/") {
		return route.Overview
	}
	u, err := url.Parse(next)
	if err != nil || u.Scheme != "" || u.Host != "" || u.User != nil || u.Opaque != "" {
		return route.Overview
	}
	// Browsers read a backslash as a slash and drop tabs and line ends, also
	// when they come escaped through a redirect.
	for _, form := range []string{next, u.Path} {
		bad := strings.ContainsFunc(form, func(r rune) bool { return r < 0x20 || r == 0x7f || r == '\\' })
		if bad || strings.HasPrefix(form, "//") {
			return route.Overview
		}
	}
	if u.Path == route.Login || u.Path == route.Logout {
		return route.Overview
	}
	return u.RequestURI()
}
