package web

import (
	"github.com/labstack/echo/v4"

	"github.com/redrive-dlq/redrive/dlq/board"
)

// planView shows a batch that isn't confirmed.
func (s *Server) planView(c echo.Context, b board.Batch) error { return s.runView(c, b) }
