package api

import (
	"context"
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
	Reason          string `json:"reason"`
	Generation      int    `json:"generation"`
	PayloadRevision int    `json:"payload_revision"` // ours; payload_version is the worker's schema
	At              string `json:"at"`               // RFC 3339; empty: now
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
	order := replay.Order{DeadJobID: id, Generation: req.Generation, PayloadVersion: req.PayloadRevision, Reason: req.Reason}
	if req.At != "" {
		if order.At, err = time.Parse(time.RFC3339, req.At); err != nil {
			return problem.At(problem.Invalid, "/at", "/at must be a time with its zone, such as 2026-05-04T03:02:01Z (RFC 3339).")
		}
	}
	if req.Generation < 1 || req.PayloadRevision < 1 {
		return problem.At(problem.Invalid, "/generation", "Send the generation and the payload_revision that GET /api/v1/dead-jobs/%d shows: only what was looked at is replayed.", id)
	}
	out, err := a.Replays.One(c.Request().Context(), web.Principal(c), order)
	if err != nil {
		return atPointer(err)
	}
	c.Response().Header().Set(echo.HeaderLocation, "/api/v1/replays/"+strconv.FormatInt(out.ReplayID, 10))
	return c.JSON(http.StatusAccepted, map[string]int64{"replay": out.ReplayID, "batch": out.BatchID})
}

// atPointer turns the name of a form field into a JSON Pointer.
func atPointer(err error) error {
	var p *problem.Error
	if !errors.As(err, &p) || p.Field == "" || p.Field[0] == '/' {
		return err
	}
	pointed := *p
	pointed.Field = "/" + p.Field
	return &pointed
}

// replayView is one replay as the API tells it.
type replayView struct {
	ID              int64      `json:"id"`
	Batch           int64      `json:"batch"`
	DeadJob         int64      `json:"dead_job"`
	Generation      int        `json:"generation"`
	PayloadRevision int        `json:"payload_revision"`
	Environment     string     `json:"environment"`
	Source          string     `json:"source"`
	JobType         string     `json:"job_type"`
	State           string     `json:"state"`
	DueAt           *time.Time `json:"due_at"`
	ReleasedAt      *time.Time `json:"released_at"`
	Outcome         *string    `json:"outcome"` // null until it ended
	Code            string     `json:"code,omitempty"`
	Detail          string     `json:"detail,omitempty"`
	EffectID        string     `json:"effect_id,omitempty"`
	OutcomeAt       *time.Time `json:"outcome_at"`
}

// replayColumns are those of replayView, in its order.
const replayColumns = `id, batch_id, dead_job_id, generation, payload_version, environment, source, job_type, state, due_at, released_at,
	outcome, outcome_code, outcome_detail, effect_id, outcome_at`

func scanReplay(r pgx.CollectableRow) (replayView, error) {
	v, err := pgx.RowToStructByPos[replayView](r)
	v.DueAt, v.ReleasedAt, v.OutcomeAt = utc(v.DueAt), utc(v.ReleasedAt), utc(v.OutcomeAt)
	return v, err
}

func (a *API) readReplay(ctx context.Context, id int64) (v replayView, err error) {
	rows, err := a.Pool.Query(ctx, `
		SELECT `+replayColumns+`
		FROM redrive.replays
		WHERE id = $1`, id)
	if err != nil {
		return v, err
	}
	v, err = pgx.CollectExactlyOneRow(rows, scanReplay)
	if errors.Is(err, pgx.ErrNoRows) {
		return v, notFound("replay")
	}
	return v, err
}

func (a *API) showReplay(c echo.Context) error {
	id, err := pathID(c, "replay")
	if err != nil {
		return err
	}
	v, err := a.readReplay(c.Request().Context(), id)
	if err != nil {
		return err
	}
	if !web.Principal(c).Can(rbac.Read, v.Environment, v.JobType) {
		return notFound("replay")
	}
	return c.JSON(http.StatusOK, v)
}

// outcomeRequest is a worker's word about a replay that it ran.
type outcomeRequest struct {
	Outcome  string `json:"outcome"` // succeeded, already_done or failed
	EffectID string `json:"effect_id"`
	Detail   string `json:"detail"`
}

// Limits of an outcome's texts, in bytes.
const (
	maxEffectID = 255
	maxDetail   = 4000
)

// outcome records how a replay ended. The first final outcome wins; telling it
// again changes nothing.
func (a *API) outcome(c echo.Context) error {
	id, err := pathID(c, "replay")
	if err != nil {
		return err
	}
	req, err := body[outcomeRequest](c)
	if err != nil {
		return err
	}
	v, err := a.readReplay(c.Request().Context(), id)
	if err != nil {
		return err
	}
	if err := mayTellOutcome(web.Principal(c), v); err != nil {
		return err
	}
	switch {
	case req.Outcome != replay.Succeeded && req.Outcome != replay.AlreadyDone && req.Outcome != replay.Failed:
		return problem.At(problem.Invalid, "/outcome", "The outcome of a replay is succeeded, already_done or failed.")
	case len(req.EffectID) > maxEffectID:
		return problem.At(problem.Invalid, "/effect_id", "/effect_id has more than %d bytes.", maxEffectID)
	case len(req.Detail) > maxDetail:
		return problem.At(problem.Invalid, "/detail", "/detail has more than %d bytes.", maxDetail)
	case v.State != "released" && v.State != "ended":
		return problem.New(problem.Conflict, "Replay %d has not been released yet, so it can't have ended.", v.ID)
	}
	first, err := a.Replays.Record(c.Request().Context(), v.ID, replay.End{Outcome: req.Outcome, Code: "told",
		Detail: redact.Readable(req.Detail), EffectID: redact.Readable(req.EffectID)})
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, map[string]bool{"recorded": first})
}

// mayTellOutcome: a capture token speaks for its own sources only. Who may not
// even read the replay learns nothing of it.
func mayTellOutcome(p *rbac.Principal, v replayView) error {
	if p.Can(rbac.RunBatch, v.Environment, v.JobType) ||
		(p.Can(rbac.Capture, v.Environment, v.JobType) && p.MayWriteSource(v.Source)) {
		return nil
	}
	if p.Can(rbac.Read, v.Environment, v.JobType) {
		return notAWorker(v.Environment)
	}
	return notFound("replay")
}
