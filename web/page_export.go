package web

import (
	"fmt"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/redrive-dlq/redrive/dlq/board"
	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/dlq/redact"
)

// exportTimeout is for a million rows over a slow line.
const exportTimeout = 10 * time.Minute

// export streams a batch's plan and what became of it. That it was taken away
// is in the audit log before the first row leaves; so a form asks for it, no
// link: a GET writes nothing.
func (s *Server) export(format, kind string) handler {
	return func(c echo.Context) error {
		if s.config.Replays == nil {
			return errNoReplays
		}
		id, err := idParam(c, "id")
		if err != nil {
			return err
		}
		ctx, p := c.Request().Context(), s.principal(c)
		b, err := board.BatchOf(ctx, s.config.Pool, p, id)
		if err != nil {
			return err
		}
		if b.State == "planning" {
			return problem.New(problem.Conflict, "Batch %d is still being planned. Export it when its plan is complete.", b.ID)
		}
		if err := s.exports.take(p.UserID, s.people.Now()); err != nil {
			return err
		}
		if err := s.config.Replays.Exported(ctx, p, b.ID, format); err != nil {
			return err
		}
		h := c.Response().Header()
		h.Set(echo.HeaderContentType, kind)
		h.Set(echo.HeaderContentDisposition, fmt.Sprintf("attachment; filename=%q", fmt.Sprintf("batch-%d.%s", b.ID, format)))
		c.Response().WriteHeader(http.StatusOK)
		if format == "csv" {
			err = board.ExportCSV(ctx, s.config.Pool, b.ID, c.Response())
		} else {
			err = board.ExportJSON(ctx, s.config.Pool, b, c.Response())
		}
		if err != nil {
			s.log.Warn("export cut off", "request_id", RequestID(c), "batch", b.ID, "error", redact.Text(err.Error()))
			panic(http.ErrAbortHandler) // a cut connection: half an export must not look whole
		}
		return nil
	}
}
