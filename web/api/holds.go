package api

import (
	"context"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/redrive-dlq/redrive/dlq/replay"
	"github.com/redrive-dlq/redrive/rbac"
	"github.com/redrive-dlq/redrive/web"
)

// holdView is a hold in force.
type holdView struct {
	ID          int64     `json:"id"`
	Environment string    `json:"environment"`
	JobType     string    `json:"job_type"`    // empty: not limited to a type
	Destination string    `json:"destination"` // empty: not limited to a destination
	Reason      string    `json:"reason"`
	PlacedBy    string    `json:"placed_by"`
	PlacedAt    time.Time `json:"placed_at"`
}

// listHolds answers GET /holds.
func (a *API) listHolds(c echo.Context) error {
	holds, err := a.Replays.Holds(c.Request().Context(), web.Principal(c))
	if err != nil {
		return err
	}
	out := make([]holdView, 0, len(holds))
	for _, h := range holds {
		out = append(out, holdView{h.ID, h.Environment, h.JobType, h.Destination, h.Reason, h.PlacedBy, h.PlacedAt.UTC()})
	}
	return c.JSON(http.StatusOK, map[string]any{"items": out})
}

// holdRequest holds all replays of an environment, of a type in it, or of a
// destination; the reason may follow.
type holdRequest struct {
	Environment string `json:"environment"`
	JobType     string `json:"job_type"`
	Destination string `json:"destination"`
	Reason      string `json:"reason"`
}

func (a *API) placeHold(c echo.Context) error {
	req, err := body[holdRequest](c)
	if err != nil {
		return err
	}
	id, err := a.Replays.PlaceHold(c.Request().Context(), web.Principal(c),
		replay.Hold{Environment: req.Environment, JobType: req.JobType, Destination: req.Destination, Reason: req.Reason})
	if err != nil {
		return atPointer(err)
	}
	return c.JSON(http.StatusCreated, map[string]int64{"id": id})
}

func (a *API) liftHold(c echo.Context) error    { return a.onHold(c, a.Replays.LiftHold) }
func (a *API) explainHold(c echo.Context) error { return a.onHold(c, a.Replays.ExplainHold) }

// onHold is an act on a hold that takes a reason; it answers what is held now.
func (a *API) onHold(c echo.Context, act func(context.Context, *rbac.Principal, int64, string) error) error {
	id, err := pathID(c, "hold")
	if err != nil {
		return err
	}
	req, err := body[reasonRequest](c)
	if err != nil {
		return err
	}
	if err := act(c.Request().Context(), web.Principal(c), id, req.Reason); err != nil {
		return atPointer(err)
	}
	return a.listHolds(c)
}
