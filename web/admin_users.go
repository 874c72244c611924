package web

import (
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/rbac"
	"github.com/redrive-dlq/redrive/views/admin"
	"github.com/redrive-dlq/redrive/views/layout"
	"github.com/redrive-dlq/redrive/views/route"
)

type newUserForm struct {
	Email       string `form:"email"`
	Name        string `form:"name"`
	Role        string `form:"role"`
	Environment string `form:"environment"`
	Password    string `form:"password"`
}

type grantForm struct {
	Role        string `form:"role"`
	Environment string `form:"environment"`
	JobType     string `form:"job_type"`
}

type reasonForm struct {
	Reason string `form:"reason"`
}

// reason is what was typed, trimmed. Shorter than 3 or longer than 2,000
// characters is Invalid.
func (f reasonForm) reason() (string, error) {
	text := strings.TrimSpace(f.Reason)
	if n := utf8.RuneCountInString(text); n < 3 || n > 2000 {
		return "", problem.At(problem.Invalid, "reason", "Say why, in 3 to 2,000 characters. Nothing was changed.")
	}
	return text, nil
}

func (s *Server) newUserPage(c echo.Context) error {
	return s.renderNewUser(c, http.StatusOK, newUserForm{}, nil)
}

func (s *Server) createUser(c echo.Context) error {
	form, err := bind[newUserForm](c)
	if err != nil {
		return err
	}
	id, err := s.people.CreateUser(c.Request().Context(), s.principal(c), rbac.NewUser{
		Email: form.Email, Name: form.Name, Passphrase: form.Password,
		Grants: []rbac.Grant{{Role: rbac.Role(form.Role), Environment: form.Environment}},
	})
	if problem.Is(err, problem.Invalid) || problem.Is(err, problem.Conflict) {
		return s.renderNewUser(c, s.explain(err).status, form, err)
	}
	if err != nil {
		return err
	}
	return s.redirectWithFlash(c, route.User(strconv.FormatInt(id, 10)), layout.Flash{Tone: "success", Text: "The person can sign in now."})
}

func (s *Server) renderNewUser(c echo.Context, status int, form newUserForm, failure error) error {
	page, err := s.page(c, "Add a person", layout.SectionUsers)
	if err != nil {
		return err
	}
	props := admin.NewUserProps{Page: page, Email: form.Email, Name: form.Name, Role: form.Role,
		Environment: form.Environment, Environments: s.config.Environments}
	if failure != nil {
		a := s.explain(failure)
		props.Problem, props.At = a.text, a.field
	}
	return s.render(c, status, admin.NewUser(props))
}

func (s *Server) userPage(c echo.Context) error { return s.renderUser(c, http.StatusOK, nil) }

// renderUser shows a person, with what went wrong when it did.
func (s *Server) renderUser(c echo.Context, status int, failure error) error {
	id, err := idParam(c, "id")
	if err != nil {
		return err
	}
	u, err := s.people.UserByID(c.Request().Context(), s.principal(c), id)
	if err != nil {
		return err
	}
	page, err := s.page(c, u.Email, layout.SectionUsers)
	if err != nil {
		return err
	}
	props := admin.PersonProps{Page: page, ID: strconv.FormatInt(id, 10), Email: u.Email, Name: u.Name,
		Created: u.CreatedAt, Disabled: u.DisabledAt != nil, Environments: s.config.Environments}
	for _, g := range u.Grants {
		props.Grants = append(props.Grants, admin.Grant{Word: g.String(), Role: string(g.Role), Environment: g.Environment, JobType: g.JobType})
	}
	if failure != nil {
		props.Problem = s.explain(failure).text
	}
	return s.render(c, status, admin.Person(props))
}

func (s *Server) addGrant(c echo.Context) error { return s.changeGrant(c, s.people.AddGrant) }

func (s *Server) removeGrant(c echo.Context) error { return s.changeGrant(c, s.people.RemoveGrant) }

func (s *Server) disableUser(c echo.Context) error {
	return s.changeState(c, s.people.DisableUser, "The person is shut out.")
}

func (s *Server) enableUser(c echo.Context) error {
	return s.changeState(c, s.people.EnableUser, "The person can sign in again.")
}

func (s *Server) changeGrant(c echo.Context, change grantChange) error {
	form, err := bind[grantForm](c)
	if err != nil {
		return err
	}
	id, err := idParam(c, "id")
	if err != nil {
		return err
	}
	grant := rbac.Grant{Role: rbac.Role(form.Role), Environment: form.Environment, JobType: form.JobType}
	return s.changed(c, id, change(c.Request().Context(), s.principal(c), id, grant, ""), "The roles were changed.")
}

func (s *Server) changeState(c echo.Context, change stateChange, done string) error {
	form, err := bind[reasonForm](c)
	if err != nil {
		return err
	}
	id, err := idParam(c, "id")
	if err != nil {
		return err
	}
	reason, err := form.reason()
	if err == nil {
		err = change(c.Request().Context(), s.principal(c), id, reason)
	}
	return s.changed(c, id, err, done)
}

// changed answers a change of a person: with their page, which says what went
// wrong where it did. Who changed themselves has no session any more.
func (s *Server) changed(c echo.Context, id int64, err error, done string) error {
	if problem.Is(err, problem.Invalid) || problem.Is(err, problem.Conflict) {
		return s.renderUser(c, s.explain(err).status, err)
	}
	if err != nil {
		return err
	}
	if id == s.principal(c).UserID {
		return c.Redirect(http.StatusSeeOther, route.Login)
	}
	return s.redirectWithFlash(c, route.User(strconv.FormatInt(id, 10)), layout.Flash{Tone: "success", Text: done})
}
