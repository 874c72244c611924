package web

import (
	"errors"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/rbac"
	"github.com/redrive-dlq/redrive/views/layout"
	"github.com/redrive-dlq/redrive/views/login"
	"github.com/redrive-dlq/redrive/views/route"
)

func (s *Server) loginRoutes() []Route {
	return []Route{
		{Method: http.MethodGet, Path: route.Login, Name: "login", Audience: Browser, Policy: Public(), Handle: s.loginPage},
		{Method: http.MethodPost, Path: route.Login, Name: "login.submit", Audience: Browser, Policy: Public(), BodyLimit: 8 << 10, Handle: s.signIn},
		{Method: http.MethodPost, Path: route.Logout, Name: "logout", Audience: Browser, Policy: SignedIn(), Handle: s.signOut},
	}
}

type loginForm struct {
	Email    string `form:"email"`
	Password string `form:"password"`
	Next     string `form:"next"`
}

// loginPage shows the sign-in form; who is signed in already goes on.
func (s *Server) loginPage(c echo.Context) error {
	next := localPath(c.QueryParam(route.FieldNext))
	p, err := s.identify(c, Browser)
	if err != nil {
		return err
	}
	if p != nil {
		return c.Redirect(http.StatusSeeOther, next)
	}
	return s.renderLogin(c, http.StatusOK, loginForm{Next: next}, "")
}

// signIn answers the form. A refusal shows the form again with the status of
// its cause; the passphrase is never given back.
func (s *Server) signIn(c echo.Context) error {
	form, err := bind[loginForm](c)
	if err != nil {
		return err
	}
	form.Next = localPath(form.Next)
	old, err := s.session(c)
	if err != nil {
		return err
	}
	x, err := s.people.SignIn(c.Request().Context(), rbac.Attempt{
		Email: form.Email, Passphrase: form.Password, Old: old,
		IP: c.RealIP(), UserAgent: c.Request().UserAgent(), RequestID: RequestID(c),
	})
	if status, text := s.refusal(c, err); status != 0 {
		return s.renderLogin(c, status, form, text)
	}
	if err != nil {
		return err
	}
	if err := s.adopt(c, x); err != nil {
		return err
	}
	return c.Redirect(http.StatusSeeOther, form.Next)
}

// refusal says what a form that asks for a passphrase shows for a wrong one or
// for too many; status 0 means that err is something else.
func (s *Server) refusal(c echo.Context, err error) (status int, text string) {
	if !problem.Is(err, problem.Unauthorized) && !problem.Is(err, problem.TooMany) {
		return 0, ""
	}
	var throttled *rbac.Throttled
	if errors.As(err, &throttled) {
		c.Response().Header().Set("Retry-After", retryAfter(throttled.After))
	}
	a := s.explain(err)
	return a.status, a.text
}

func (s *Server) signOut(c echo.Context) error {
	sess, err := s.browserSession(c)
	if err != nil {
		return err
	}
	if err := s.people.SignOut(c.Request().Context(), s.principal(c), rbac.SessionOf(sess)); err != nil {
		return err
	}
	sess.Options.MaxAge = -1
	if err := s.sessions.Save(c.Request(), c.Response(), sess); err != nil {
		return err
	}
	// What the browser kept of pages goes too; they are no-store anyway.
	c.Response().Header().Set("Clear-Site-Data", `"cache"`)
	return c.Redirect(http.StatusSeeOther, route.Login)
}

func (s *Server) renderLogin(c echo.Context, status int, form loginForm, text string) error {
	props := login.Props{
		Page:    layout.Page{Title: "Sign in", Theme: theme(c), OpenJobs: -1, Demo: s.config.Demo, Now: s.people.Now()},
		Email:   form.Email,
		Problem: text,
	}
	if form.Next != route.Overview {
		props.Next = form.Next
	}
	if s.config.Demo {
		props.DemoPassphrase = rbac.DemoPassphrase
		for _, role := range rbac.AllRoles() {
			props.Accounts = append(props.Accounts, login.DemoAccount{Email: rbac.DemoEmail(role), Role: string(role)})
		}
	}
	return s.render(c, status, login.View(props))
}
