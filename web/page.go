package web

import (
	"slices"

	"github.com/labstack/echo/v4"

	"github.com/redrive-dlq/redrive/dlq/redact"
	"github.com/redrive-dlq/redrive/rbac"
	"github.com/redrive-dlq/redrive/views/layout"
	"github.com/redrive-dlq/redrive/views/route"
)

// principal is who makes the request. On a route with a policy other than
// Public it is never nil.
func (s *Server) principal(c echo.Context) *rbac.Principal { return Principal(c) }

// page fills the frame for the signed-in person: title, navigation, environment
// switch, messages kept by the last action. Title is a sentence that says what
// is shown.
func (s *Server) page(c echo.Context, title string, section layout.Section) (layout.Page, error) {
	p := s.principal(c)
	page := layout.Page{
		Title:    title,
		Section:  section,
		Theme:    theme(c),
		OpenJobs: -1,
		Demo:     s.config.Demo,
		Now:      s.people.Now(),
	}
	if p == nil {
		return page, nil
	}
	page.Viewer = &layout.Viewer{
		Email:    p.Email,
		Roles:    p.Roles(),
		MayAudit: p.Can(rbac.ReadAudit, "", ""),
		MayAdmin: p.Can(rbac.Administer, "", ""),
	}
	page.Environment = s.environment(c)
	page.Environments = layout.EnvironmentLinks(c.Request().URL, s.config.Environments, page.Environment)
	if q := c.QueryParam(route.ParamQuery); !redact.LooksSecret(q) {
		page.Search = q
	}
	if s.config.OpenJobs != nil {
		n, err := s.config.OpenJobs(c.Request().Context(), p, page.Environment)
		if err != nil {
			return page, err
		}
		page.OpenJobs = n
	}
	var err error
	if page.Holds, err = s.frameHolds(c); err != nil {
		return page, err
	}
	page.Flashes, err = s.takeFlashes(c)
	return page, err
}

// environment is the one chosen in the address; an unknown one counts as none.
func (s *Server) environment(c echo.Context) string {
	if name := c.QueryParam(route.ParamEnvironment); slices.Contains(s.config.Environments, name) {
		return name
	}
	return ""
}

// theme is the reader's choice, kept by the page's script in a cookie.
func theme(c echo.Context) string {
	if cookie, err := c.Cookie("theme"); err == nil {
		return cookie.Value
	}
	return ""
}
