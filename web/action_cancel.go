package web

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/redrive-dlq/redrive/dlq"
	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/dlq/replay"
	"github.com/redrive-dlq/redrive/rbac"
	"github.com/redrive-dlq/redrive/views/component"
	"github.com/redrive-dlq/redrive/views/job"
	"github.com/redrive-dlq/redrive/views/layout"
	"github.com/redrive-dlq/redrive/views/route"
)

type cancelForm struct {
	Version string `form:"version"` // the replay that was shown
	Reason  string `form:"reason"`
}

// mayCancel: taking a replay back takes the right that ordering it took.
func (s *Server) mayCancel(p *rbac.Principal, j dlq.DetailJob) bool {
	return s.config.Replays != nil && p.Can(rbac.ReplayOne, j.Environment, j.JobType) && s.mayReplay(p, j.Environment, j.JobType)
}

// cancelJob reads the job and its replay that has not left; without one the
// answer is a Conflict, together with the job.
func (s *Server) cancelJob(c echo.Context) (dlq.DetailJob, *dlq.DetailReplay, error) {
	j, err := s.replayJob(c)
	if err != nil {
		return j, nil, err
	}
	t, _ := s.config.Types().Type(j.JobType)
	if err := s.principal(c).Require(j.Environment, j.JobType, replay.Needs(t)); err != nil {
		return j, nil, err
	}
	r, err := dlq.DetailWaiting(c.Request().Context(), s.config.Pool, j.ID)
	if err == nil && r == nil {
		err = problem.New(problem.Conflict, "No replay of this job is waiting to leave, so there is none to take back: it has left or ended already, or none was ordered.")
	}
	return j, r, err
}

// cancelPage says what was to happen and what will not.
func (s *Server) cancelPage(c echo.Context) error {
	j, r, err := s.cancelJob(c)
	if problem.Is(err, problem.Conflict) {
		return s.renderRefused(c, triageJob(j), err)
	}
	if err != nil {
		return err
	}
	return s.renderCancel(c, http.StatusOK, j, r, cancelForm{Version: formatID(r.ID)}, "")
}

// cancelSubmit takes back exactly the replay that was shown.
func (s *Server) cancelSubmit(c echo.Context) error {
	j, r, err := s.cancelJob(c)
	if err != nil && !problem.Is(err, problem.Conflict) {
		return err
	}
	form, bindErr := bind[cancelForm](c)
	if bindErr != nil {
		return bindErr
	}
	if err == nil {
		id, _ := strconv.ParseInt(form.Version, 10, 64)
		if id != r.ID {
			err = problem.New(problem.Conflict, "Another replay of this job was ordered since the page was shown. Nothing was done; look at the job again.")
		} else {
			err = s.config.Replays.CancelOne(c.Request().Context(), s.principal(c), r.ID, form.Reason)
		}
	}
	var p *problem.Error
	switch {
	case err == nil:
		return s.redirectWithFlash(c, route.Job(formatID(j.ID)), layout.Flash{Tone: "success", Text: "The replay was taken back. Nothing was sent, and the job is open again."})
	case errors.As(err, &p) && p.Code == problem.Invalid:
		return s.renderCancel(c, http.StatusUnprocessableEntity, j, r, form, p.Message)
	case errors.As(err, &p) && p.Code == problem.Conflict:
		return s.renderRefused(c, triageJob(j), err)
	}
	return err
}

func (s *Server) renderCancel(c echo.Context, status int, j dlq.DetailJob, r *dlq.DetailReplay, form cancelForm, wrong string) error {
	page, err := s.act(c, triageJob(j), "Take back the replay of "+component.Cut(j.JobID, 60)+"?")
	if err != nil {
		return err
	}
	page.Version, page.Reason, page.ReasonError = form.Version, form.Reason, wrong
	page.Consequence = cancelWords(j, r, s.people.Now())
	t, _ := s.config.Types().Type(j.JobType)
	if effects := effectsOf(t); len(effects) > 0 {
		page.Consequence += " One run " + strings.Join(effects, " and ") + "; that does not happen."
	}
	return s.render(c, status, job.Cancel(page))
}

func cancelWords(j dlq.DetailJob, r *dlq.DetailReplay, now time.Time) string {
	const then = " Nothing will be sent; the job is open again and can be replayed later."
	switch {
	case r.Scheduled(now):
		return "It was to be sent at " + r.DueAt.UTC().Format("2006-01-02 15:04") + " UTC." + then
	case r.State == "pending" && j.Entity != "":
		return "It was to be sent when its turn comes among the replays of " + component.Cut(j.Entity, 80) + "." + then
	}
	return "It was to be sent as soon as the limits of its type allow." + then
}
