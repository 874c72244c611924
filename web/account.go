package web

import (
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/redrive-dlq/redrive/rbac"
	"github.com/redrive-dlq/redrive/views/account"
	"github.com/redrive-dlq/redrive/views/component"
	"github.com/redrive-dlq/redrive/views/layout"
	"github.com/redrive-dlq/redrive/views/route"
)

func (s *Server) accountRoutes() []Route {
	return append(s.ownTokenRoutes(), []Route{
		{Method: http.MethodGet, Path: route.Account, Name: "account", Audience: Browser, Policy: SignedIn(), Handle: s.accountPage},
		{Method: http.MethodPost, Path: route.EndSessionPattern, Name: "account.end", Audience: Browser, Policy: SignedIn(), Handle: s.endSession},
		{Method: http.MethodPost, Path: route.EndOthers, Name: "account.end_others", Audience: Browser, Policy: SignedIn(), Handle: s.endOthers},
		{Method: http.MethodGet, Path: route.Confirm, Name: "confirm", Audience: Browser, Policy: SignedIn(), Handle: s.confirmPage},
		{Method: http.MethodPost, Path: route.Confirm, Name: "confirm.submit", Audience: Browser, Policy: SignedIn(), BodyLimit: 8 << 10, Handle: s.confirm},
		{Method: http.MethodGet, Path: route.Passphrase, Name: "account.passphrase", Audience: Browser, Policy: SignedIn(), Handle: s.passphrasePage},
		{Method: http.MethodPost, Path: route.Passphrase, Name: "account.passphrase.submit", Audience: Browser, Policy: SignedIn(), BodyLimit: 8 << 10, Handle: s.changePassphrase},
	}...)
}

// accountPage shows who one is here, one's own sessions and tokens.
func (s *Server) accountPage(c echo.Context) error {
	p := s.principal(c)
	sessions, err := s.people.ListSessions(c.Request().Context(), p)
	if err != nil {
		return err
	}
	page, err := s.page(c, "Your account, sessions and tokens", layout.SectionAccount)
	if err != nil {
		return err
	}
	tokens, err := s.ownTokens(c)
	if err != nil {
		return err
	}
	props := account.Props{Page: page, Scope: scopeWords(p.Grants), Tokens: tokens}
	for _, x := range sessions {
		props.Sessions = append(props.Sessions, account.Session{
			ID: x.ID, Agent: agentWords(x.UserAgent), Address: x.IP, Created: x.CreatedAt, LastSeen: x.LastSeenAt,
			Expires: x.CreatedAt.Add(rbac.SessionAbsolute), Current: x.ID == p.SessionID,
		})
	}
	return s.render(c, http.StatusOK, account.View(props))
}

func (s *Server) endSession(c echo.Context) error {
	id := c.Param("id")
	if err := s.people.EndSession(c.Request().Context(), s.principal(c), id); err != nil {
		return err
	}
	if id == s.principal(c).SessionID {
		return c.Redirect(http.StatusSeeOther, route.Login)
	}
	return s.redirectWithFlash(c, route.Account, layout.Flash{Tone: "success", Text: "The session has ended."})
}

func (s *Server) endOthers(c echo.Context) error {
	n, err := s.people.EndOtherSessions(c.Request().Context(), s.principal(c))
	if err != nil {
		return err
	}
	text := "You had no other session."
	if n > 0 {
		text = component.Plural(n, "other session has", "other sessions have") + " ended."
	}
	return s.redirectWithFlash(c, route.Account, layout.Flash{Tone: "success", Text: text})
}

// scopeWords says what limited grants are limited to; empty when none is.
func scopeWords(grants []rbac.Grant) string {
	var limited []string
	for _, g := range grants {
		if g.Environment != "" || g.JobType != "" {
			limited = append(limited, g.String())
		}
	}
	return strings.Join(limited, ", ")
}

// agentWords names browser and system of a User-Agent header, as far as it
// tells; anything else stays as it was sent.
func agentWords(agent string) string {
	find := func(names ...[2]string) string {
		for _, n := range names {
			if strings.Contains(agent, n[0]) {
				return n[1]
			}
		}
		return ""
	}
	browser := find([2]string{"Edg/", "Edge"}, [2]string{"OPR/", "Opera"}, [2]string{"Firefox/", "Firefox"},
		[2]string{"HeadlessChrome/", "Chromium without a window"}, [2]string{"Chrome/", "Chrome"}, [2]string{"Safari/", "Safari"})
	system := find([2]string{"Android", "Android"}, [2]string{"iPhone", "iPhone"}, [2]string{"iPad", "iPad"},
		[2]string{"Windows", "Windows"}, [2]string{"Mac OS X", "macOS"}, [2]string{"Linux", "Linux"})
	switch {
	case browser == "" && agent == "":
		return "Unknown browser"
	case browser == "":
		return agent
	case system == "":
		return browser
	}
	return browser + " on " + system
}
