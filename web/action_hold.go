package web

import (
	"errors"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/dlq/replay"
	"github.com/redrive-dlq/redrive/rbac"
	"github.com/redrive-dlq/redrive/views/holds"
	"github.com/redrive-dlq/redrive/views/layout"
	"github.com/redrive-dlq/redrive/views/route"
)

type holdForm struct {
	Environment string `form:"environment"`
	JobType     string `form:"job_type"`
	Destination string `form:"destination"`
	Next        string `form:"next"`
	Reason      string `form:"reason"` // may follow
}

func (s *Server) holdRoutes() []Route {
	hold := Needs(rbac.HoldReplays)
	return []Route{
		{Method: http.MethodGet, Path: route.Holds, Name: "holds", Audience: Browser, Policy: Needs(rbac.Read), Handle: s.holdsPage},
		{Method: http.MethodPost, Path: route.Holds, Name: "holds.place", Audience: Browser, Policy: hold, Handle: s.placeHold},
		{Method: http.MethodGet, Path: route.HoldExplainPattern, Name: "hold.explain", Audience: Browser, Policy: hold, Handle: s.holdPage(false)},
		{Method: http.MethodPost, Path: route.HoldExplainPattern, Name: "hold.explain.submit", Audience: Browser, Policy: hold, Handle: s.holdSubmit(false)},
		{Method: http.MethodGet, Path: route.HoldLiftPattern, Name: "hold.lift", Audience: Browser, Policy: hold, Handle: s.holdPage(true)},
		{Method: http.MethodPost, Path: route.HoldLiftPattern, Name: "hold.lift.submit", Audience: Browser, Policy: hold, Handle: s.holdSubmit(true)},
	}
}

// placeHold holds at once; the reason may follow.
func (s *Server) placeHold(c echo.Context) error {
	if s.config.Replays == nil {
		return errNoReplays
	}
	form, err := bind[holdForm](c)
	if err != nil {
		return err
	}
	h := replay.Hold{Environment: form.Environment, JobType: form.JobType, Destination: form.Destination, Reason: form.Reason}
	id, err := s.config.Replays.PlaceHold(c.Request().Context(), s.principal(c), h)
	if err != nil {
		return err
	}
	next := route.Holds
	if form.Next != "" {
		next = localPath(form.Next)
	}
	flash := layout.Flash{Tone: "success", Text: holdWhat(h) + " are held. Nothing of it leaves any more; what is out goes on to its outcome."}
	if form.Reason == "" {
		flash.Href, flash.Link = route.HoldExplain(formatID(id)), "Say why"
	}
	return s.redirectWithFlash(c, next, flash)
}

// heldOne is the hold of the address, when it is in force and in sight.
func (s *Server) heldOne(c echo.Context) (replay.Hold, error) {
	id, err := idParam(c, "id")
	if err != nil {
		return replay.Hold{}, err
	}
	list, err := s.holds(c)
	if err != nil {
		return replay.Hold{}, err
	}
	for _, h := range list {
		if h.ID == id {
			if !mayHold(s.principal(c), h.Environment, h.JobType) {
				return h, problem.New(problem.Forbidden, "Your role doesn't let you hold or release all of this.")
			}
			return h, nil
		}
	}
	return replay.Hold{}, problem.New(problem.NotFound, "No such hold is in force: it was lifted already, or you may not see it.")
}

func (s *Server) holdPage(lift bool) handler {
	return func(c echo.Context) error {
		h, err := s.heldOne(c)
		if err != nil {
			return err
		}
		return s.renderHold(c, http.StatusOK, h, holds.ActProps{Lift: lift})
	}
}

func (s *Server) holdSubmit(lift bool) handler {
	return func(c echo.Context) error {
		h, err := s.heldOne(c)
		if err != nil {
			return err
		}
		form, err := bind[holdForm](c)
		if err != nil {
			return err
		}
		ctx, p, done := c.Request().Context(), s.principal(c), holdWhat(h)+" are held; everybody who meets the hold reads your reason."
		if lift {
			done = "The hold is lifted: " + lowerFirst(holdWhat(h)) + " leave again as their limits allow."
			err = s.config.Replays.LiftHold(ctx, p, h.ID, form.Reason)
		} else {
			err = s.config.Replays.ExplainHold(ctx, p, h.ID, form.Reason)
		}
		var bad *problem.Error
		switch {
		case err == nil:
			return s.redirectWithFlash(c, route.Holds, layout.Flash{Tone: "success", Text: done})
		case !errors.As(err, &bad):
			return err
		case bad.Code == problem.Invalid:
			return s.renderHold(c, http.StatusUnprocessableEntity, h, holds.ActProps{Lift: lift, Reason: form.Reason, ReasonError: bad.Message,
				Problem: "Nothing was done. " + bad.Message})
		case bad.Code == problem.Conflict:
			return s.renderHold(c, http.StatusConflict, h, holds.ActProps{Lift: lift, Problem: bad.Message, Refused: true})
		}
		return err
	}
}

func (s *Server) renderHold(c echo.Context, status int, h replay.Hold, props holds.ActProps) error {
	title := "Why are " + lowerFirst(holdWhat(h)) + " held?"
	if props.Lift {
		title = "Lift the hold of " + lowerFirst(holdWhat(h)) + "?"
	}
	rows, err := s.holdRows(c, []replay.Hold{h})
	if err != nil {
		return err
	}
	props.Row = rows[0]
	if props.Page, err = s.pageIn(c, title, layout.SectionBatches, h.Environment, route.Holds); err != nil {
		return err
	}
	return s.render(c, status, holds.Act(props))
}
