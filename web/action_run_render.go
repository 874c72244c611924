package web

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/redrive-dlq/redrive/dlq/board"
	"github.com/redrive-dlq/redrive/views/batches"
	"github.com/redrive-dlq/redrive/views/layout"
	"github.com/redrive-dlq/redrive/views/route"
)

func (s *Server) renderRun(c echo.Context, status int, a runAct, b board.Batch, f runForm) error {
	props := a.view(s, b, f)
	props.Action = c.Request().URL.Path
	props.Reason, props.ReasonError = f.Reason, f.errorAt(route.FieldReason)
	if f.wrong != "" {
		props.Problem = "Nothing was done. " + f.wrong
	}
	return s.renderCommand(c, status, b, props)
}

func (s *Server) renderRunRefused(c echo.Context, a runAct, b board.Batch, why string) error {
	props := a.view(s, b, runForm{})
	props.Page.Title = "This can't be done to batch " + formatID(b.ID) + " now"
	props.Problem, props.Refused, props.Stopped = why, true, ""
	return s.renderCommand(c, http.StatusConflict, b, props)
}

// renderCommand fills what the pages of all commands show. The title comes in
// the props.
func (s *Server) renderCommand(c echo.Context, status int, b board.Batch, props batches.CommandProps) error {
	title := props.Page.Title
	page, err := s.pageIn(c, title, layout.SectionBatches, b.Environment, route.Batches)
	if err != nil {
		return err
	}
	props.Page, props.Row, props.Progress = page, batchRow(b), progressOf(b)
	return s.render(c, status, batches.Command(props))
}
