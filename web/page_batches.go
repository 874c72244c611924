package web

import (
	"net/http"
	"strconv"

	"github.com/labstack/echo/v4"

	"github.com/redrive-dlq/redrive/dlq/board"
	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/rbac"
	"github.com/redrive-dlq/redrive/views/batches"
	"github.com/redrive-dlq/redrive/views/component"
	"github.com/redrive-dlq/redrive/views/layout"
	"github.com/redrive-dlq/redrive/views/route"
)

// batchTabs are the choices of the list's state filter, with the states that
// each stands for.
var batchTabs = []struct {
	value, word string
	states      []string
}{
	{"", "All", nil},
	{"planned", "Planned", []string{"planning", "planned"}},
	{"waiting", "Waiting for approval", []string{"waiting"}},
	{"running", "Under way", []string{"scheduled", "running", "cancelling"}},
	{"paused", "Paused", []string{"paused"}},
	{"done", "Done", []string{"done"}},
	{"cancelled", "Cancelled", []string{"cancelled"}},
}

// batchesPage lists batches, newest first; on top those that wait for the
// reader's word.
func (s *Server) batchesPage(c echo.Context) error {
	ctx, p, environment := c.Request().Context(), s.principal(c), s.environment(c)
	tabs, states, err := batchFilter(c)
	if err != nil {
		return err
	}
	found, err := board.BatchesIn(ctx, s.config.Pool, p, board.BatchQuery{Environment: environment, States: states, Cursor: c.QueryParam(route.ParamCursor)})
	if err != nil {
		return err
	}
	props := batches.ListProps{Tabs: tabs, Filtered: len(states) > 0, Pages: pages(c, found.Next, found.Prev)}
	for _, b := range found.Rows {
		props.Rows = append(props.Rows, batchRow(s.batchNow(b)))
	}
	if props.Asked, err = s.askedOf(c, environment); err != nil {
		return err
	}
	if props.Page, err = s.page(c, s.environmentTitle(c, "Batches of replays, newest first"), layout.SectionBatches); err != nil {
		return err
	}
	return s.render(c, http.StatusOK, batches.List(props))
}

// batchFilter reads the state of the address. Errors: Invalid.
func batchFilter(c echo.Context) (tabs []batches.Tab, states []string, err error) {
	chosen, known := c.QueryParam(route.ParamState), false
	for _, tab := range batchTabs {
		current := tab.value == chosen
		if current {
			states, known = tab.states, true
		}
		tabs = append(tabs, batches.Tab{Word: tab.word, Href: route.Change(c.Request().URL, route.ParamState, tab.value), Count: -1, Current: current})
	}
	if !known {
		return nil, nil, problem.At(problem.Invalid, route.ParamState, "Batches are planned, waiting, running, paused, done or cancelled.")
	}
	return tabs, states, nil
}

// askedOf are the requests that the request's person may approve: not their own.
func (s *Server) askedOf(c echo.Context, environment string) ([]batches.Row, error) {
	p := s.principal(c)
	if !p.Can(rbac.ApproveBatch, "", "") {
		return nil, nil
	}
	waiting, err := board.Unfinished(c.Request().Context(), s.config.Pool, p, environment, "waiting")
	if err != nil {
		return nil, err
	}
	var rows []batches.Row
	for _, b := range waiting {
		if mayApprove(p, b) {
			rows = append(rows, batchRow(b))
		}
	}
	return rows, nil
}

// mayApprove says whether the batch is one that the person may give the second
// word for: never one that they asked for.
func mayApprove(p *rbac.Principal, b board.Batch) bool {
	return p.Can(rbac.ApproveBatch, b.Environment, b.JobType) && p.UserID != b.ConfirmedByID && p.UserID != b.CreatedByID
}

// batchRow shows a single replay that has ended by how it ended.
func batchRow(b board.Batch) batches.Row {
	row := batches.Row{ID: strconv.FormatInt(b.ID, 10), Type: b.JobType, Environment: b.Environment, State: b.State, Planned: b.Planned,
		Eligible: b.Eligible, Ended: b.Ended(), Failed: b.Failed(), By: b.CreatedBy, Reason: reasonText(b.Reason), At: b.CreatedAt}
	if b.ConfirmedBy != "" {
		row.By = b.ConfirmedBy
	}
	if b.Outcome != "" {
		row.State = b.Outcome
	}
	if b.StoppedItself() {
		row.Note = "stopped by itself: " + reasonText(b.PauseWhy)
	}
	row.Note = coolingNote(b, row.Note)
	return row
}

// batchTitle says in words what became of a single replay.
func batchTitle(b board.Batch) string {
	what := "Replay of one " + component.Cut(b.JobType, 60)
	return what + outcomeWords(b) + ", " + b.Environment
}

func outcomeWords(b board.Batch) string {
	switch b.Outcome {
	case "succeeded":
		return " succeeded"
	case "already_done":
		return ": its effect was in place already"
	case "failed":
		return " failed: the job is open again"
	case "skipped":
		return " was not sent"
	case "unconfirmed":
		return ": no outcome came, its effect is unknown"
	case "cancelled":
		return " was cancelled"
	}
	switch b.State {
	case "scheduled":
		return " is scheduled"
	case "paused", "cancelled":
		return " is " + b.State
	}
	return " is under way"
}
