package web

import (
	"net/http"
	"slices"
	"strconv"

	"github.com/labstack/echo/v4"

	"github.com/redrive-dlq/redrive/dlq"
	"github.com/redrive-dlq/redrive/dlq/filter"
	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/dlq/redact"
	"github.com/redrive-dlq/redrive/dlq/replay"
	"github.com/redrive-dlq/redrive/rbac"
	"github.com/redrive-dlq/redrive/views/batches"
	"github.com/redrive-dlq/redrive/views/component"
	"github.com/redrive-dlq/redrive/views/layout"
	"github.com/redrive-dlq/redrive/views/route"
)

// planLimit is the largest form of a plan: it may name a page of rows.
const planLimit = 256 << 10

// planRoutes lead from a selection to an ordered batch. Confirming and
// approving ask for a passphrase given just now, before their page is shown.
// What has a whole plan judged anew counts as an order like the plan itself.
func (s *Server) planRoutes() []Route {
	route2 := func(method, path, name string, p Policy, h handler) Route {
		return Route{Method: method, Path: path, Name: "batch." + name, Audience: Browser, Policy: p, Handle: h}
	}
	plan, run, approve := Needs(rbac.PlanBatch), Needs(rbac.RunBatch), Needs(rbac.ApproveBatch)
	submit := route2(http.MethodPost, route.NewBatch, "new.submit", plan.AsOrder(), s.planSubmit)
	submit.BodyLimit = planLimit
	return []Route{
		route2(http.MethodGet, route.NewBatch, "new", plan, s.planPage), submit,
		route2(http.MethodGet, route.MadeBatches, "made", Needs(rbac.Read), s.madePage),
		route2(http.MethodGet, route.BatchReviewPattern, "review", run, s.reviewPage),
		route2(http.MethodPost, route.BatchReviewPattern, "review.submit", run, s.reviewSubmit),
		route2(http.MethodGet, route.BatchConfirmPattern, "confirm", run.WithStepUp(), s.agreePage),
		route2(http.MethodPost, route.BatchConfirmPattern, "confirm.submit", run.WithStepUp().AsOrder(), s.confirmSubmit),
		route2(http.MethodGet, route.BatchApprovePattern, "approve", approve.WithStepUp(), s.agreePage),
		route2(http.MethodPost, route.BatchApprovePattern, "approve.submit", approve.WithStepUp().AsOrder(), s.approveSubmit),
		route2(http.MethodGet, route.BatchFixPattern, "fix", Needs(rbac.DeclareFix).AsOrder(), s.batchFixPage),
		route2(http.MethodPost, route.BatchFixPattern, "fix.submit", Needs(rbac.DeclareFix).AsOrder(), s.batchFixSubmit),
		route2(http.MethodGet, route.GroupFixPattern, "group.fix", Needs(rbac.DeclareFix), s.groupFixPage),
		route2(http.MethodPost, route.GroupFixPattern, "group.fix.submit", Needs(rbac.DeclareFix), s.groupFixSubmit),
		route2(http.MethodPost, route.BatchJudgePattern, "judge", plan.AsOrder(), s.judgeSubmit),
		route2(http.MethodGet, route.BatchOldPattern, "allow_old", run.AsOrder(), s.oldPage),
		route2(http.MethodPost, route.BatchOldPattern, "allow_old.submit", run.AsOrder(), s.oldSubmit),
	}
}

type planForm struct {
	Q      string   `form:"q"`
	IDs    []string `form:"ids"`
	Reason string   `form:"reason"`
}

// selection reads what was selected: rows by their ids, or a filter. Errors:
// Invalid.
func (f planForm) selection() (sel replay.Selection, err error) {
	if f.Q != "" && len(f.IDs) == 0 && redact.LooksSecret(f.Q) {
		return sel, problem.At(problem.Invalid, route.ParamQuery, "This filter holds what looks like a secret or personal data, and a plan keeps its filter. Select by job id, key or entity.")
	}
	for _, text := range f.IDs {
		id, err := strconv.ParseInt(text, 10, 64)
		if err != nil || id < 1 {
			return sel, problem.At(problem.Invalid, route.FieldIDs, "A selected row has no valid id. Select the rows again.")
		}
		sel.IDs = append(sel.IDs, id)
	}
	if len(f.IDs) == 0 {
		sel.Filter, err = filter.Parse(f.Q)
	}
	return sel, err
}

// planPage asks for the reason before a selection is planned. The job list's
// form says which of its two buttons was pressed.
func (s *Server) planPage(c echo.Context) error {
	query := c.QueryParams()
	form := planForm{Q: query.Get(route.ParamQuery), IDs: query[route.FieldIDs]}
	if query.Get(route.FieldSelect) == route.SelectAll {
		form.IDs = nil
	}
	if query.Get(route.FieldSelect) == route.SelectRows || len(form.IDs) > 0 {
		form.Q = ""
	}
	return s.renderNew(c, http.StatusOK, form, nil)
}

func (s *Server) planSubmit(c echo.Context) error {
	if s.config.Replays == nil {
		return errNoReplays
	}
	form, err := bind[planForm](c)
	if err != nil {
		return err
	}
	sel, err := form.selection()
	if err != nil {
		return s.renderNew(c, http.StatusUnprocessableEntity, form, err)
	}
	ids, err := s.config.Replays.Plan(c.Request().Context(), s.principal(c), sel, form.Reason)
	if problem.Is(err, problem.Invalid) || problem.Is(err, problem.Forbidden) {
		return s.renderNew(c, s.explain(err).status, form, err)
	}
	if err != nil {
		return err
	}
	if len(ids) == 1 {
		return s.redirectWithFlash(c, route.Batch(formatID(ids[0])), layout.Flash{Tone: "success", Text: "The plan is being made. Nothing is sent."})
	}
	var made []string
	for _, id := range ids {
		made = append(made, formatID(id))
	}
	return s.redirectWithFlash(c, route.BatchesMade(made), layout.Flash{Tone: "success", Text: component.Plural(len(ids), "plan is", "plans are") + " being made. Nothing is sent."})
}

func (s *Server) renderNew(c echo.Context, status int, form planForm, cause error) error {
	props := batches.NewProps{IDs: form.IDs, Reason: form.Reason}
	at, text := fault(cause)
	if at == route.FieldReason {
		props.ReasonError = text
	} else {
		props.Problem = text
	}
	sel, err := form.selection()
	if err == nil && len(sel.IDs) == 0 && sel.Filter.Empty() {
		err = problem.At(problem.Invalid, route.ParamQuery, "Nothing is selected. Tick rows in the list, or take all that a filter matches.")
	}
	if err != nil {
		_, props.Problem = fault(err)
		props.Refused, status = true, http.StatusUnprocessableEntity
	} else if props.Words, err = s.selectedWords(c, sel); problem.Is(err, problem.Invalid) {
		_, props.Problem = fault(err)
		props.Refused, status = true, http.StatusUnprocessableEntity
	} else if err != nil {
		return err
	}
	props.Back = route.Jobs
	if len(sel.IDs) == 0 {
		if props.Filter = sel.Filter.String(); props.Filter != "" {
			props.Back = route.JobsWhere(route.ParamQuery, props.Filter)
		}
	}
	title := "Plan a replay of " + orNothing(props.Words)
	if in := sel.Filter.Environments; len(in) == 1 && slices.Contains(s.config.Environments, in[0]) {
		props.Page, err = s.pageIn(c, title+", "+in[0], layout.SectionBatches, in[0], route.Jobs)
	} else {
		props.Page, err = s.page(c, title, layout.SectionBatches)
	}
	if err != nil {
		return err
	}
	return s.render(c, status, batches.New(props))
}

func orNothing(words string) string {
	if words == "" {
		return "nothing"
	}
	return words
}

// selectedWords say how many are selected.
func (s *Server) selectedWords(c echo.Context, sel replay.Selection) (string, error) {
	if len(sel.IDs) > 0 {
		return component.Plural(len(sel.IDs), "selected job", "selected jobs"), nil
	}
	found, err := dlq.List(c.Request().Context(), s.config.Pool, s.principal(c), dlq.ListQuery{Filter: sel.Filter, Limit: 1, Now: s.people.Now()})
	if err != nil {
		return "", err
	}
	if found.Total.N == 0 {
		return "", problem.At(problem.Invalid, route.ParamQuery, "No job that you may see matches this filter, so there is nothing to plan.")
	}
	if found.Total.More {
		return "all jobs that match, more than " + component.Count(int(found.Total.N)), nil
	}
	return "all " + component.Plural(int(found.Total.N), "job", "jobs") + " that match", nil
}
