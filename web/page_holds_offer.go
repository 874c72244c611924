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
			to.Hold = s.typeHold(c, held, row.Name, to.Environment)
		}
	}
	return nil
}

// offerPlaceHolds does the same on a type's own page.
func (s *Server) offerPlaceHolds(c echo.Context, jobType string, places []types.Place) error {
	if s.config.Replays == nil {
		return nil
	}
	held, err := s.holds(c)
	if err != nil {
		return err
	}
	for i := range places {
		places[i].Hold = s.typeHold(c, held, jobType, places[i].Environment)
	}
	return nil
}

// typeHold is what holds the replays of a type in an environment; nil when they
// are held, the person may not, or nothing leaves there.
func (s *Server) typeHold(c echo.Context, held []replay.Hold, jobType, environment string) *holds.Target {
	t, ok := s.config.Types().Type(jobType)
	if !ok || !mayHold(s.principal(c), environment, jobType) || heldExactly(held, replay.Hold{Environment: environment, JobType: jobType}) {
		return nil
	}
	if _, ok := t.Target(environment); !ok {
		return nil
	}
	return &holds.Target{Environment: environment, Type: jobType, Next: c.Request().URL.RequestURI()}
}

// offerTargetHold puts a button on a destination that the person may hold and
// that isn't held.
func (s *Server) offerTargetHold(c echo.Context, row *targetRow) {
	if s.config.Replays != nil && row.Held == "" && mayHold(s.principal(c), row.Environment, "") {
		row.Hold = &holds.Target{Environment: row.Environment, Destination: row.destination, Next: c.Request().URL.RequestURI()}
	}
}
