package api

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/labstack/echo/v4"

	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/dlq/redact"
	"github.com/redrive-dlq/redrive/dlq/replay"
	"github.com/redrive-dlq/redrive/rbac"
	"github.com/redrive-dlq/redrive/web"
)

// replayRequest orders the replay of one job, as it was seen.
type replayRequest struct {
	Reason         string    `json:"reason"`
	Generation     int       `json:"generation"`
	PayloadVersion int       `json:"payload_version"`
	At             time.Time `json:"at,omitzero"`
}

// replay orders one; the rights are the domain's to check.
func (a *API) replay(c echo.Context) error {
	id, err := pathID(c, "job")
	if err != nil {
		return err
	}
	req, err := body[replayRequest](c)
	if err != nil {
		return err
	}
	out, err := a.Replays.One(c.Request().Context(), web.Principal(c), replay.Order{
		DeadJobID: id, Generation: req.Generation, PayloadVersion: req.PayloadVersion, Reason: req.Reason, At: req.At})
	if err != nil {
		return err
	}
	c.Response().Header().Set("Location", "/api/v1/replays/"+strconv.FormatInt(out.ReplayID, 10))
	return c.JSON(http.StatusAccepted, map[string]int64{"replay": out.ReplayID, "batch": out.BatchID})
}

// replayView is one replay as the API tells it.
type replayView struct {
	ID             int64      `json:"id"`
	Batch          int64      `json:"batch"`
	DeadJob        int64      `json:"dead_job"`
	Generation     int        `json:"generation"`
	PayloadVersion int        `json:"payload_version"`
	Environment    string     `json:"environment"`
	JobType        string     `json:"job_type"`
	State          string     `json:"state"`
	DueAt          *time.Time `json:"due_at"`
	ReleasedAt     *time.Time `json:"released_at"`
	Outcome        *string    `json:"outcome"`
	Code           string     `json:"code,omitempty"`
	Detail         string     `json:"detail,omitempty"`
	EffectID       string     `json:"effect_id,omitempty"`
	OutcomeAt      *time.Time `json:"outcome_at"`
}

// replayColumns are those of replayView, in its order.
const replayColumns = `id, batch_id, dead_job_id, generation, payload_version, environment, job_type, state, due_at, released_at,
	outcome, outcome_code, outcome_detail, effect_id, outcome_at`

func (a *API) readReplay(c echo.Context) (v replayView, err error) {
	id, err := pathID(c, "replay")
	if err != nil {
		return v, err
	}
	rows, err := a.Pool.Query(c.Request().Context(), `
		SELECT `+replayColumns+`
		FROM redrive.replays
		WHERE id = $1`, id)
	if err != nil {
		return v, err
	}
	v, err = pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[replayView])
	if errors.Is(err, pgx.ErrNoRows) {
		return v, problem.New(problem.NotFound, "There is no replay with this id.")
	}
	return v, err
}

func (a *API) showReplay(c echo.Context) error {
	v, err := a.readReplay(c)
	if err != nil {
		return err
	}
	if !web.Principal(c).Can(rbac.Read, v.Environment, v.JobType) {
		return problem.New(problem.NotFound, "There is no replay with this id.")
	}
	return c.JSON(http.StatusOK, v)
}

// outcomeRequest is a worker's word about a replay that it ran.
type outcomeRequest struct {
	Outcome  string `json:"outcome"` // succeeded, already_done or failed
	EffectID string `json:"effect_id,omitempty"`
	Detail   string `json:"detail,omitempty"`
}

// outcome records how a replay ended. The first final outcome wins; telling it
// again changes nothing.
func (a *API) outcome(c echo.Context) error {
	req, err := body[outcomeRequest](c)
	if err != nil {
		return err
	}
	v, err := a.readReplay(c)
	if err != nil {
		return err
	}
	if err := worker(web.Principal(c), v.Environment); err != nil {
		return err
	}
	switch req.Outcome {
	case replay.Succeeded, replay.AlreadyDone, replay.Failed:
	default:
		return problem.At(problem.Invalid, "/outcome", "The outcome of a replay is succeeded, already_done or failed.")
	}
	if len(req.EffectID) > 255 || len(req.Detail) > 4000 {
		return problem.New(problem.Invalid, "effect_id has at most 255 characters and detail 4,000.")
	}
	if v.State != "released" && v.State != "ended" {
		return problem.New(problem.Conflict, "Replay %d has not been released yet, so it can't have ended.", v.ID)
	}
	first, err := a.Replays.Record(c.Request().Context(), v.ID, replay.End{Outcome: req.Outcome, Code: "told",
		Detail: redact.Readable(req.Detail), EffectID: redact.Visible(req.EffectID)})
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, map[string]any{"recorded": first})
}
