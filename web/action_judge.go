package web

import (
	"net/http"
	"strconv"

	"github.com/labstack/echo/v4"

	"github.com/redrive-dlq/redrive/dlq/board"
	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/dlq/replay"
	"github.com/redrive-dlq/redrive/views/batches"
	"github.com/redrive-dlq/redrive/views/component"
	"github.com/redrive-dlq/redrive/views/layout"
	"github.com/redrive-dlq/redrive/views/route"
)

// judgeSubmit judges the jobs of a plan again.
func (s *Server) judgeSubmit(c echo.Context) error {
	b, err := s.planBatch(c)
	if err != nil {
		return err
	}
	flash := layout.Flash{Tone: "success", Text: "The jobs are being judged again. Reviews of the plan before are void."}
	if err := s.config.Replays.Rejudge(c.Request().Context(), s.principal(c), b.ID); err != nil {
		if !problem.Is(err, problem.Conflict) {
			return err
		}
		_, flash.Text = fault(err)
		flash.Tone = "warning"
	}
	return s.redirectWithFlash(c, route.Batch(formatID(b.ID)), flash)
}

// oldPage asks before jobs are taken along that are older than their type
// allows.
func (s *Server) oldPage(c echo.Context) error {
	b, err := s.planBatch(c)
	if err != nil {
		return err
	}
	if err := s.mayRun(s.principal(c), b); err != nil {
		return err
	}
	return s.renderOld(c, http.StatusOK, b, runForm{})
}

func (s *Server) oldSubmit(c echo.Context) error {
	b, err := s.planBatch(c)
	if err != nil {
		return err
	}
	form, err := bind[runForm](c)
	if err != nil {
		return err
	}
	err = s.config.Replays.AllowOld(c.Request().Context(), s.principal(c), b.ID, form.Reason)
	switch {
	case err == nil:
		return s.redirectWithFlash(c, route.Batch(formatID(b.ID)), layout.Flash{Tone: "success", Text: "Old jobs are taken along. All are being judged again."})
	case problem.Is(err, problem.Invalid), problem.Is(err, problem.Conflict):
		form.at, form.wrong = fault(err)
		return s.renderOld(c, s.explain(err).status, b, form)
	}
	return err
}

func (s *Server) renderOld(c echo.Context, status int, b board.Batch, f runForm) error {
	props := batches.CommandProps{Page: layout.Page{Title: "Take " + component.Plural(b.Verdicts[replay.TooOld], "old job", "old jobs") + " along?"}, Here: "Old jobs",
		Action: route.BatchOld(formatID(b.ID)), ReasonMust: true, Back: "Leave them out", Button: "Take old jobs along",
		Consequence: "They died longer ago than their type is valid for. Say why their effect is still wanted. The whole batch is judged again, and a review of the plan before is void. Nothing is sent.",
		Reason:      f.Reason, ReasonError: f.errorAt(route.FieldReason)}
	if f.wrong != "" {
		props.Problem = "Nothing was done. " + f.wrong
	}
	return s.renderCommand(c, status, b, props)
}

// madePage leads to each of several batches that one selection became.
func (s *Server) madePage(c echo.Context) error {
	props := batches.ListProps{}
	made := c.QueryParams()[route.FieldIDs]
	for _, text := range made[:min(len(made), replay.MaxBatches)] { // each is looked up
		b, err := s.batchByText(c, text)
		if problem.Is(err, problem.NotFound) {
			continue
		}
		if err != nil {
			return err
		}
		props.Rows = append(props.Rows, batchRow(b))
	}
	var err error
	if props.Page, err = s.page(c, component.Plural(len(props.Rows), "plan", "plans")+" of one selection", layout.SectionBatches); err != nil {
		return err
	}
	return s.render(c, http.StatusOK, batches.List(props))
}

func (s *Server) batchByText(c echo.Context, text string) (board.Batch, error) {
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id < 1 {
		return board.Batch{}, problem.New(problem.NotFound, "There is no batch with this number.")
	}
	return board.BatchOf(c.Request().Context(), s.config.Pool, s.principal(c), id)
}
