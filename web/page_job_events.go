package web

import (
	"context"

	"github.com/labstack/echo/v4"

	"github.com/redrive-dlq/redrive/dlq/board"
	"github.com/redrive-dlq/redrive/rbac"
)

// jobEvents tells an open page that its job changed: by a person, a new death
// or the outcome of a replay.
func (s *Server) jobEvents(c echo.Context) error {
	id, err := idParam(c, "id")
	if err != nil {
		return err
	}
	return s.stream(c, func(ctx context.Context, p *rbac.Principal) (string, error) {
		return board.JobVersion(ctx, s.config.Pool, p, id)
	}, rbac.Read)
}
