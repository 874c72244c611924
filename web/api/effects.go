package api

import (
	"encoding/json"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/redrive-dlq/redrive/dlq"
	"github.com/redrive-dlq/redrive/dlq/ledger"
	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/rbac"
	"github.com/redrive-dlq/redrive/web"
)

// beginRequest names an effect.
type beginRequest struct {
	Environment string `json:"environment"` // default: the token's
	Scope       string `json:"scope"`
	Key         string `json:"key"`
}

// finishRequest names an effect and its end.
type finishRequest struct {
	Environment string          `json:"environment"`
	Scope       string          `json:"scope"`
	Key         string          `json:"key"`
	Result      json.RawMessage `json:"result"`
	Outcome     string          `json:"outcome"` // done (default) or failed
}

// effectState answers about an effect. Result is what its worker told, for
// another worker of the key.
type effectState struct {
	State    string          `json:"state"`
	EffectID string          `json:"effect_id,omitempty"`
	Result   json.RawMessage `json:"result,omitempty"`
}

// effectKey fills the default environment and checks names and rights.
func effectKey(c echo.Context, k ledger.Key) (ledger.Key, error) {
	p := web.Principal(c)
	if k.Environment == "" {
		k.Environment = p.CaptureEnvironment()
	}
	for _, f := range []struct {
		pointer, value string
		most           int
	}{
		{"/environment", k.Environment, dlq.MaxNameBytes}, {"/scope", k.Scope, dlq.MaxNameBytes}, {"/key", k.Key, dlq.MaxKeyBytes},
	} {
		switch {
		case f.value == "":
			return k, problem.At(problem.Invalid, f.pointer, "%s is missing or empty; an empty one names no effect.", f.pointer)
		case len(f.value) > f.most:
			return k, problem.At(problem.Invalid, f.pointer, "%s has %d bytes; at most %d are allowed.", f.pointer, len(f.value), f.most)
		}
	}
	if !p.Can(rbac.Capture, k.Environment, "") && !p.Can(rbac.RunBatch, k.Environment, "") {
		return k, notAWorker(short(k.Environment))
	}
	return k, nil
}

// beginEffect says, committed before it answers, that an effect is about to happen.
func (a *API) beginEffect(c echo.Context) error {
	req, err := body[beginRequest](c)
	if err != nil {
		return err
	}
	key, err := effectKey(c, ledger.Key{Environment: req.Environment, Scope: req.Scope, Key: req.Key})
	if err != nil {
		return err
	}
	said, err := ledger.Begin(c.Request().Context(), a.Pool, key)
	if err != nil {
		return err
	}
	if said != ledger.Done {
		return c.JSON(http.StatusOK, effectState{State: string(said)})
	}
	return a.tellEffect(c, key)
}

// finishEffect writes the end of an effect.
func (a *API) finishEffect(c echo.Context) error {
	req, err := body[finishRequest](c)
	if err != nil {
		return err
	}
	key, err := effectKey(c, ledger.Key{Environment: req.Environment, Scope: req.Scope, Key: req.Key})
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
	return a.tellEffect(c, key)
}

func (a *API) tellEffect(c echo.Context, key ledger.Key) error {
	row, _, err := ledger.Of(c.Request().Context(), a.Pool, key)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, effectState{State: row.State, EffectID: row.EffectID, Result: json.RawMessage(row.Result)})
}
