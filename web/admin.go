package web

import (
	"context"
	"net/http"
	"strconv"
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
	look := Needs(rbac.Administer)
	change := look.WithStepUp()
	get, post := http.MethodGet, http.MethodPost
	return []Route{
		{Method: get, Path: route.Users, Name: "admin.users", Audience: Browser, Policy: look, Handle: s.usersPage},
		{Method: get, Path: route.NewUser, Name: "admin.users.new", Audience: Browser, Policy: change, Handle: s.newUserPage},
		{Method: post, Path: route.NewUser, Name: "admin.users.create", Audience: Browser, Policy: change, Handle: s.createUser},
		{Method: get, Path: route.UserPattern, Name: "admin.user", Audience: Browser, Policy: look, Handle: s.userPage},
		{Method: post, Path: route.AddGrantPattern, Name: "admin.user.grant", Audience: Browser, Policy: change, Handle: s.addGrant},
		{Method: post, Path: route.RemoveGrantPattern, Name: "admin.user.ungrant", Audience: Browser, Policy: change, Handle: s.removeGrant},
		// Shutting out and revoking are done in a hurry: no step-up.
		{Method: post, Path: route.DisablePattern, Name: "admin.user.disable", Audience: Browser, Policy: look, Handle: s.disableUser},
		{Method: post, Path: route.EnablePattern, Name: "admin.user.enable", Audience: Browser, Policy: change, Handle: s.enableUser},
		{Method: get, Path: route.Tokens, Name: "admin.tokens", Audience: Browser, Policy: look, Handle: s.tokensPage},
		{Method: get, Path: route.NewToken, Name: "admin.tokens.new", Audience: Browser, Policy: change, Handle: s.newTokenPage},
		{Method: post, Path: route.NewToken, Name: "admin.tokens.mint", Audience: Browser, Policy: change, Handle: s.mintToken},
		{Method: get, Path: route.RevokePattern, Name: "admin.token.revoke", Audience: Browser, Policy: look, Handle: s.revokePage},
		{Method: post, Path: route.RevokePattern, Name: "admin.token.revoke.submit", Audience: Browser, Policy: look, Handle: s.revokeToken},
	}
}

// What changes a person, by the domain's functions.
type (
	grantChange func(ctx context.Context, p *rbac.Principal, userID int64, g rbac.Grant, reason string) error
	stateChange func(ctx context.Context, p *rbac.Principal, userID int64, reason string) error
)

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
		row := admin.User{ID: strconv.FormatInt(u.ID, 10), Email: u.Email, Scope: scopeWords(u.Grants), Disabled: u.DisabledAt != nil, Sessions: u.Sessions,
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
		row := admin.Token{ID: strconv.FormatInt(t.ID, 10), Name: t.Name, Owner: t.OwnerEmail, Grants: t.Roles, Scope: tokenScope(t), Revoked: t.RevokedAt != nil}
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
