package api

import (
	"encoding/json"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/redrive-dlq/redrive/dlq/ledger"
	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/web"
)

// effectRequest names an effect, and for finish its end.
type effectRequest struct {
	Environment string          `json:"environment"`
	Scope       string          `json:"scope"`
	Key         string          `json:"key"`
	Result      json.RawMessage `json:"result,omitempty"`
	Outcome     string          `json:"outcome,omitempty"` // done (default) or failed
}

func (a *API) effect(c echo.Context) (effectRequest, ledger.Key, error) {
	req, err := body[effectRequest](c)
	if err != nil {
		return req, ledger.Key{}, err
	}
	p := web.Principal(c)
	if req.Environment == "" {
		req.Environment = p.CaptureEnvironment()
	}
	return req, ledger.Key{Environment: req.Environment, Scope: req.Scope, Key: req.Key}, worker(p, req.Environment)
}

// beginEffect says, committed before it answers, that an effect is about to happen.
func (a *API) beginEffect(c echo.Context) error {
	_, key, err := a.effect(c)
	if err != nil {
		return err
	}
	answer, err := ledger.Begin(c.Request().Context(), a.Pool, key)
	if err != nil {
		return err
	}
	out := map[string]any{"state": answer}
	if answer == ledger.Done {
		row, ok, err := ledger.Of(c.Request().Context(), a.Pool, key)
		if err != nil {
			return err
		}
		if ok && row.Result != "" {
			out["result"] = json.RawMessage(row.Result)
		}
	}
	return c.JSON(http.StatusOK, out)
}

// finishEffect writes the end of an effect.
func (a *API) finishEffect(c echo.Context) error {
	req, key, err := a.effect(c)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	switch req.Outcome {
	case "", "done":
		err = ledger.Finish(ctx, a.Pool, key, req.Result)
	case "failed":
		err = ledger.Fail(ctx, a.Pool, key, req.Result)
	default:
		err = problem.At(problem.Invalid, "/outcome", "The outcome of an effect is done or failed.")
	}
	if err != nil {
		return err
	}
	row, _, err := ledger.Of(ctx, a.Pool, key)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, map[string]any{"state": row.State})
}
