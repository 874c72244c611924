package web

import (
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/redrive-dlq/redrive/rbac"
	"github.com/redrive-dlq/redrive/views/admin"
	"github.com/redrive-dlq/redrive/views/component"
	"github.com/redrive-dlq/redrive/views/layout"
	"github.com/redrive-dlq/redrive/views/route"
)

// adminRows is how many people or tokens a page lists.
const adminRows = 500

func (s *Server) adminRoutes() []Route {
	return []Route{
		{Method: http.MethodGet, Path: route.Users, Name: "admin.users", Audience: Browser, Policy: Needs(rbac.Administer), Handle: s.usersPage},
		{Method: http.MethodGet, Path: route.Tokens, Name: "admin.tokens", Audience: Browser, Policy: Needs(rbac.Administer), Handle: s.tokensPage},
	}
}

func (s *Server) usersPage(c echo.Context) error {
	users, err := s.people.ListUsers(c.Request().Context(), s.principal(c), adminRows)
	if err != nil {
		return err
	}
	page, err := s.page(c, component.Plural(len(users), "person", "people")+" may sign in here", layout.SectionUsers)
	if err != nil {
		return err
	}
	props := admin.UsersProps{Page: page}
	for _, u := range users {
		row := admin.User{Email: u.Email, Scope: scopeWords(u.Grants), Disabled: u.DisabledAt != nil, Sessions: u.Sessions,
			Roles: (&rbac.Principal{Grants: u.Grants}).Roles()}
		if u.LastSeenAt != nil {
			row.LastSeen = *u.LastSeenAt
		}
		props.Rows = append(props.Rows, row)
	}
	return s.render(c, http.StatusOK, admin.Users(props))
}

func (s *Server) tokensPage(c echo.Context) error {
	tokens, err := s.people.ListTokens(c.Request().Context(), s.principal(c), adminRows)
	if err != nil {
		return err
	}
	page, err := s.page(c, component.Plural(len(tokens), "API token", "API tokens"), layout.SectionTokens)
	if err != nil {
		return err
	}
	props := admin.TokensProps{Page: page}
	for _, t := range tokens {
		row := admin.Token{Name: t.Name, Owner: t.OwnerEmail, Grants: t.Roles, Scope: tokenScope(t), Revoked: t.RevokedAt != nil}
		if t.Capture {
			row.Grants = append([]string{"capture"}, row.Grants...)
		}
		if t.LastUsedAt != nil {
			row.LastUsed = *t.LastUsedAt
		}
		if t.ExpiresAt != nil {
			row.Expires = *t.ExpiresAt
		}
		props.Rows = append(props.Rows, row)
	}
	return s.render(c, http.StatusOK, admin.Tokens(props))
}

// tokenScope says what a token is limited to: "production, source ingest".
func tokenScope(t rbac.Token) string {
	var parts []string
	if t.Environment != "" {
		parts = append(parts, t.Environment)
	}
	if len(t.Sources) > 0 {
		parts = append(parts, "source "+strings.Join(t.Sources, ", "))
	}
	return strings.Join(parts, ", ")
}
