package api

import (
	"context"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/redrive-dlq/redrive/dlq/board"
	"github.com/redrive-dlq/redrive/dlq/replay"
	"github.com/redrive-dlq/redrive/rbac"
	"github.com/redrive-dlq/redrive/web"
)

// agree is a confirmation or an approval: bound to both hashes and the phrase,
// once by the batch's state.
func (a *API) agree(c echo.Context, do func(context.Context, *rbac.Principal, replay.ConfirmOrder) (string, error)) error {
	id, err := pathID(c, "batch")
	if err != nil {
		return err
	}
	req, err := body[confirmRequest](c)
	if err != nil {
		return err
	}
	order := replay.ConfirmOrder{Batch: id, PlanHash: req.PlanHash, ReviewHash: req.ReviewHash, Phrase: req.Phrase}
	if _, err := do(c.Request().Context(), web.Principal(c), order); err != nil {
		return atPointer(err)
	}
	return a.showBatch(c)
}

// withReason is an act on a batch that takes a reason.
func (a *API) withReason(act func(context.Context, *rbac.Principal, int64, string) error) echo.HandlerFunc {
	return func(c echo.Context) error {
		id, err := pathID(c, "batch")
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
		return a.showBatch(c)
	}
}

// resumeBatch lets a batch go on. One that stopped by itself, and not because
// a person paused it, takes a passphrase given lately, as on its page.
func (a *API) resumeBatch(c echo.Context) error {
	id, err := pathID(c, "batch")
	if err != nil {
		return err
	}
	b, err := board.BatchOf(c.Request().Context(), a.Pool, web.Principal(c), id)
	if err != nil {
		return err
	}
	if b.StoppedItself() {
		if err := a.People.RequireStepUp(web.Principal(c)); err != nil {
			return err
		}
	}
	return a.withReason(a.Replays.Resume)(c)
}

// rateRequest makes a batch slower.
type rateRequest struct {
	PerMinute int `json:"per_minute"`
}

func (a *API) slowBatch(c echo.Context) error {
	id, err := pathID(c, "batch")
	if err != nil {
		return err
	}
	req, err := body[rateRequest](c)
	if err != nil {
		return err
	}
	if err := a.Replays.SetRate(c.Request().Context(), web.Principal(c), id, req.PerMinute); err != nil {
		return atPointer(err)
	}
	return a.showBatch(c)
}

// cancelBatch says how many it stops and how many are out.
func (a *API) cancelBatch(c echo.Context) error {
	id, err := pathID(c, "batch")
	if err != nil {
		return err
	}
	req, err := body[reasonRequest](c)
	if err != nil {
		return err
	}
	stops, out, err := a.Replays.Cancel(c.Request().Context(), web.Principal(c), id, req.Reason)
	if err != nil {
		return atPointer(err)
	}
	return c.JSON(http.StatusOK, map[string]int64{"stops": stops, "out": out})
}

// planFailed plans the failed replays of a batch anew.
func (a *API) planFailed(c echo.Context) error {
	id, err := pathID(c, "batch")
	if err != nil {
		return err
	}
	req, err := body[reasonRequest](c)
	if err != nil {
		return err
	}
	ids, err := a.Replays.PlanFailed(c.Request().Context(), web.Principal(c), id, req.Reason)
	if err != nil {
		return atPointer(err)
	}
	return a.planned(c, ids)
}

func (a *API) rejudgeBatch(c echo.Context) error {
	id, err := pathID(c, "batch")
	if err != nil {
		return err
	}
	if err := a.Replays.Rejudge(c.Request().Context(), web.Principal(c), id); err != nil {
		return err
	}
	return a.showBatch(c)
}

// fixRequest declares what was fixed for all of a batch.
type fixRequest struct {
	Kind   string `json:"kind"` // worker_version, ticket or record
	Ref    string `json:"ref"`
	Reason string `json:"reason"`
}

func (a *API) fixBatch(c echo.Context) error {
	id, err := pathID(c, "batch")
	if err != nil {
		return err
	}
	req, err := body[fixRequest](c)
	if err != nil {
		return err
	}
	fix := replay.FixOrder{Batch: id, Kind: req.Kind, Ref: req.Ref, Reason: req.Reason}
	if err := a.Replays.DeclareFix(c.Request().Context(), web.Principal(c), fix); err != nil {
		return atPointer(err)
	}
	return a.showBatch(c)
}
