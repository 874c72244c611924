package web

import (
	"errors"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/views/account"
	"github.com/redrive-dlq/redrive/views/layout"
	"github.com/redrive-dlq/redrive/views/route"
)

type passphraseForm struct {
	Current string `form:"password"`
	New     string `form:"new_password"`
}

func (s *Server) passphrasePage(c echo.Context) error {
	return s.renderPassphrase(c, http.StatusOK, account.PassphraseProps{})
}

func (s *Server) changePassphrase(c echo.Context) error {
	form, err := bind[passphraseForm](c)
	if err != nil {
		return err
	}
	old, err := s.session(c)
	if err != nil {
		return err
	}
	x, err := s.people.ChangePassphrase(c.Request().Context(), s.principal(c), old, form.Current, form.New)
	if x != nil { // renewed even where what follows failed
		if err := s.adopt(c, x); err != nil {
			return err
		}
	}
	if status, text := s.refusal(c, err); status != 0 {
		return s.renderPassphrase(c, status, account.PassphraseProps{Problem: text})
	}
	var p *problem.Error
	if errors.As(err, &p) && p.Code == problem.Invalid {
		return s.renderPassphrase(c, http.StatusUnprocessableEntity, account.PassphraseProps{Problem: p.Message, AtNew: true})
	}
	if err != nil {
		return err
	}
	return s.redirectWithFlash(c, route.Account, layout.Flash{Tone: "success", Text: "Your passphrase was changed, and your other sessions have ended."})
}

func (s *Server) renderPassphrase(c echo.Context, status int, props account.PassphraseProps) error {
	page, err := s.page(c, "Change your passphrase", layout.SectionAccount)
	if err != nil {
		return err
	}
	props.Page = page
	return s.render(c, status, account.Passphrase(props))
}
