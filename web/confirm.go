package web

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/redrive-dlq/redrive/views/layout"
	"github.com/redrive-dlq/redrive/views/login"
	"github.com/redrive-dlq/redrive/views/route"
)

type confirmForm struct {
	Password string `form:"password"`
	Next     string `form:"next"`
}

// confirmPage asks for the passphrase before something grave.
func (s *Server) confirmPage(c echo.Context) error {
	return s.renderConfirm(c, http.StatusOK, localPath(c.QueryParam(route.FieldNext)), "")
}

// confirm checks it and moves the session to a new id.
func (s *Server) confirm(c echo.Context) error {
	form, err := bind[confirmForm](c)
	if err != nil {
		return err
	}
	next := localPath(form.Next)
	old, err := s.session(c)
	if err != nil {
		return err
	}
	x, err := s.people.StepUp(c.Request().Context(), s.principal(c), old, form.Password)
	if status, text := s.refusal(c, err); status != 0 {
		return s.renderConfirm(c, status, next, text)
	}
	if err != nil {
		return err
	}
	if err := s.adopt(c, x); err != nil {
		return err
	}
	return c.Redirect(http.StatusSeeOther, next)
}

func (s *Server) renderConfirm(c echo.Context, status int, next, text string) error {
	page, err := s.page(c, "Confirm your passphrase", layout.SectionAccount)
	if err != nil {
		return err
	}
	props := login.ConfirmProps{Page: page, Problem: text}
	if next != route.Overview {
		props.Next = next
	}
	return s.render(c, status, login.Confirm(props))
}
