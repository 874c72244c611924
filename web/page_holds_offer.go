package web

import (
	"github.com/labstack/echo/v4"

	"github.com/redrive-dlq/redrive/dlq/replay"
	"github.com/redrive-dlq/redrive/views/holds"
	"github.com/redrive-dlq/redrive/views/types"
)

// offerTypeHolds puts a button beside each environment of a type whose replays
// the person may hold and that aren't held.
func (s *Server) offerTypeHolds(c echo.Context, rows []types.Row) error {
	if s.config.Replays == nil {
		return nil
	}
	held, err := s.holds(c)
	if err != nil {
		return err
	}
	for _, row := range rows {
		for i := range row.Targets {
			to := &row.Targets[i]
			t, ok := s.config.Types().Type(row.Name)
			if !ok || !mayHold(s.principal(c), to.Environment, row.Name) || heldExactly(held, replay.Hold{Environment: to.Environment, JobType: row.Name}) {
				continue
			}
			if _, ok := t.Target(to.Environment); ok { // nothing leaves without one
				to.Hold = &holds.Target{Environment: to.Environment, Type: row.Name, Next: c.Request().URL.RequestURI()}
			}
		}
	}
	return nil
}

// offerTargetHold puts a button on a destination that the person may hold and
// that isn't held.
func (s *Server) offerTargetHold(c echo.Context, row *targetRow) {
	if s.config.Replays != nil && row.Held == "" && mayHold(s.principal(c), row.Environment, "") {
		row.Hold = &holds.Target{Environment: row.Environment, Destination: row.destination, Next: c.Request().URL.RequestURI()}
	}
}
