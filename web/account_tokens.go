package web

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/rbac"
	"github.com/redrive-dlq/redrive/views/account"
	"github.com/redrive-dlq/redrive/views/component"
	"github.com/redrive-dlq/redrive/views/layout"
	"github.com/redrive-dlq/redrive/views/route"
)

func (s *Server) ownTokenRoutes() []Route {
	stepped := SignedIn().WithStepUp()
	return []Route{
		{Method: http.MethodGet, Path: route.NewOwnToken, Name: "account.tokens.new", Audience: Browser, Policy: stepped, Handle: s.newOwnTokenPage},
		{Method: http.MethodPost, Path: route.NewOwnToken, Name: "account.tokens.mint", Audience: Browser, Policy: stepped, BodyLimit: 8 << 10, Handle: s.mintOwnToken},
		// Revoking is done in a hurry: no step-up.
		{Method: http.MethodPost, Path: route.RevokeOwnTokenPattern, Name: "account.token.revoke", Audience: Browser, Policy: SignedIn(), BodyLimit: 8 << 10, Handle: s.revokeOwnToken},
	}
}

type ownTokenForm struct {
	Name        string `form:"name"`
	Role        string `form:"role"`
	Environment string `form:"environment"`
	Minutes     int    `form:"minutes"`
}

func (f ownTokenForm) token() (rbac.StepUpToken, error) {
	most := int(rbac.StepUpTokenFor.Minutes())
	if f.Minutes < 1 || f.Minutes > most {
		return rbac.StepUpToken{}, problem.At(problem.Invalid, "expires", "Such a token lives 1 to %d minutes.", most)
	}
	t := rbac.StepUpToken{Name: f.Name, Environment: f.Environment, ExpiresIn: time.Duration(f.Minutes) * time.Minute}
	if f.Role != "" {
		t.Roles = []rbac.Role{rbac.Role(f.Role)}
	}
	return t, nil
}

func (s *Server) newOwnTokenPage(c echo.Context) error {
	return s.renderOwnToken(c, http.StatusOK, ownTokenForm{Minutes: int(rbac.StepUpTokenFor.Minutes())}, nil)
}

// mintOwnToken answers with the page that shows the secret: it is stored
// nowhere, so no redirect could find it again.
func (s *Server) mintOwnToken(c echo.Context) error {
	form, err := bind[ownTokenForm](c)
	if err != nil {
		return err
	}
	n, err := form.token()
	var secret string
	var made rbac.Token
	if err == nil {
		secret, made, err = s.people.MintStepUp(c.Request().Context(), s.principal(c), n)
	}
	switch {
	case problem.Is(err, problem.Invalid):
		return s.renderOwnToken(c, http.StatusUnprocessableEntity, form, err)
	case problem.Is(err, problem.Conflict):
		return s.renderOwnToken(c, http.StatusConflict, form, err)
	case err != nil:
		return err
	}
	page, err := s.page(c, "The token was minted", layout.SectionAccount)
	if err != nil {
		return err
	}
	return s.render(c, http.StatusOK, account.Minted(account.MintedProps{Page: page, Name: made.Name, Secret: secret, Expires: *made.ExpiresAt}))
}

func (s *Server) renderOwnToken(c echo.Context, status int, form ownTokenForm, failure error) error {
	page, err := s.page(c, "Mint a token for scripts", layout.SectionAccount)
	if err != nil {
		return err
	}
	props := account.NewTokenProps{Page: page, Name: form.Name, Role: form.Role, Environment: form.Environment,
		Minutes: strconv.Itoa(form.Minutes), Environments: s.config.Environments}
	for _, role := range s.principal(c).Roles() {
		props.Roles = append(props.Roles, component.Choice{Value: role, Word: roleWord(role)})
	}
	if failure != nil {
		a := s.explain(failure)
		props.Problem, props.At = a.text, a.field
	}
	return s.render(c, status, account.NewToken(props))
}

func (s *Server) revokeOwnToken(c echo.Context) error {
	id, err := idParam(c, "id")
	if err != nil {
		return err
	}
	if err := s.people.RevokeStepUp(c.Request().Context(), s.principal(c), id); err != nil {
		return err
	}
	return s.redirectWithFlash(c, route.Account, layout.Flash{Tone: "success", Text: "The token is revoked."})
}

// ownTokens are the living tokens that the person minted, for the page.
func (s *Server) ownTokens(c echo.Context) ([]account.Token, error) {
	found, err := s.people.StepUpTokens(c.Request().Context(), s.principal(c))
	if err != nil {
		return nil, err
	}
	list := make([]account.Token, 0, len(found))
	for _, t := range found {
		words := make([]string, len(t.Roles))
		for i, role := range t.Roles {
			words[i] = roleWord(role)
		}
		list = append(list, account.Token{ID: strconv.FormatInt(t.ID, 10), Name: t.Name, Roles: strings.Join(words, ", "),
			Limit: t.Environment, Created: t.CreatedAt, Expires: *t.ExpiresAt, LastUsed: t.LastUsedAt})
	}
	return list, nil
}

func roleWord(role string) string {
	if role == string(rbac.OnCall) {
		return "on-call"
	}
	return role
}
