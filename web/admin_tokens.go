package web

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/rbac"
	"github.com/redrive-dlq/redrive/views/admin"
	"github.com/redrive-dlq/redrive/views/component"
	"github.com/redrive-dlq/redrive/views/layout"
	"github.com/redrive-dlq/redrive/views/route"
)

type newTokenForm struct {
	Name        string `form:"name"`
	Owner       int64  `form:"owner"`
	Role        string `form:"role"`
	Environment string `form:"environment"`
	Capture     bool   `form:"capture"`
	Sources     string `form:"sources"`
	Days        int    `form:"days"`
}

func (f newTokenForm) token() (rbac.NewToken, error) {
	if f.Owner == 0 {
		return rbac.NewToken{}, problem.At(problem.Invalid, "owner", "Choose the person that the token acts as.")
	}
	if f.Days < 1 || f.Days > 366 {
		return rbac.NewToken{}, problem.At(problem.Invalid, "expires", "A token lives 1 to 366 days.")
	}
	n := rbac.NewToken{Name: strings.TrimSpace(f.Name), OwnerID: f.Owner, Capture: f.Capture, Environment: f.Environment,
		ExpiresIn: time.Duration(f.Days) * 24 * time.Hour}
	if f.Role != "" {
		n.Roles = []rbac.Role{rbac.Role(f.Role)}
	}
	if f.Capture {
		for source := range strings.SplitSeq(f.Sources, ",") {
			if source = strings.TrimSpace(source); source != "" {
				n.Sources = append(n.Sources, source)
			}
		}
	}
	return n, nil
}

func (s *Server) newTokenPage(c echo.Context) error {
	return s.renderNewToken(c, http.StatusOK, newTokenForm{Days: 90}, nil)
}

// mintToken answers with the page that shows the secret: it is stored nowhere,
// so no redirect could find it again.
func (s *Server) mintToken(c echo.Context) error {
	form, err := bind[newTokenForm](c)
	if err != nil {
		return err
	}
	n, err := form.token()
	var secret string
	if err == nil {
		secret, _, err = s.people.MintToken(c.Request().Context(), s.principal(c), n)
	}
	if problem.Is(err, problem.Invalid) || problem.Is(err, problem.NotFound) {
		return s.renderNewToken(c, http.StatusUnprocessableEntity, form, err)
	}
	if err != nil {
		return err
	}
	page, err := s.page(c, "The token was made", layout.SectionTokens)
	if err != nil {
		return err
	}
	return s.render(c, http.StatusOK, admin.Minted(admin.MintedProps{Page: page, Name: n.Name, Secret: secret}))
}

func (s *Server) renderNewToken(c echo.Context, status int, form newTokenForm, failure error) error {
	users, err := s.people.ListUsers(c.Request().Context(), s.principal(c), adminRows)
	if err != nil {
		return err
	}
	page, err := s.page(c, "Make an API token", layout.SectionTokens)
	if err != nil {
		return err
	}
	props := admin.NewTokenProps{Page: page, Name: form.Name, Role: form.Role, Environment: form.Environment,
		Capture: form.Capture, Sources: form.Sources, Days: strconv.Itoa(form.Days), Environments: s.config.Environments}
	if form.Owner != 0 {
		props.Owner = strconv.FormatInt(form.Owner, 10)
	}
	for _, u := range users {
		if u.DisabledAt == nil {
			props.Owners = append(props.Owners, component.Choice{Value: strconv.FormatInt(u.ID, 10), Word: u.Email})
		}
	}
	if failure != nil {
		a := s.explain(failure)
		props.Problem, props.At = a.text, a.field
	}
	return s.render(c, status, admin.NewToken(props))
}

func (s *Server) revokePage(c echo.Context) error { return s.renderRevoke(c, http.StatusOK, nil) }

func (s *Server) revokeToken(c echo.Context) error {
	form, err := bind[reasonForm](c)
	if err != nil {
		return err
	}
	id, err := idParam(c, "id")
	if err != nil {
		return err
	}
	reason, err := form.reason()
	if err != nil {
		return s.renderRevoke(c, http.StatusUnprocessableEntity, err)
	}
	if err := s.people.RevokeToken(c.Request().Context(), s.principal(c), id, reason); err != nil {
		return err
	}
	return s.redirectWithFlash(c, route.Tokens, layout.Flash{Tone: "success", Text: "The token is revoked."})
}

func (s *Server) renderRevoke(c echo.Context, status int, failure error) error {
	id, err := idParam(c, "id")
	if err != nil {
		return err
	}
	token, err := s.people.TokenByID(c.Request().Context(), s.principal(c), id)
	if err != nil {
		return err
	}
	page, err := s.page(c, "Revoke this token?", layout.SectionTokens)
	if err != nil {
		return err
	}
	props := admin.RevokeProps{Page: page, ID: strconv.FormatInt(id, 10), Name: token.Name, Owner: token.OwnerEmail}
	var p *problem.Error
	if errors.As(failure, &p) {
		props.Problem = p.Message
	}
	return s.render(c, status, admin.Revoke(props))
}
