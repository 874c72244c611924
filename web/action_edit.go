package web

import (
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/redrive-dlq/redrive/dlq"
	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/rbac"
	"github.com/redrive-dlq/redrive/views/component"
	"github.com/redrive-dlq/redrive/views/job"
	"github.com/redrive-dlq/redrive/views/layout"
	"github.com/redrive-dlq/redrive/views/route"
)

// editForm is what both steps of an edit send; the values come beside it.
type editForm struct {
	Version string `form:"version"` // what shown() wrote
	Reason  string `form:"reason"`
	Confirm bool   `form:"confirm"`

	values map[string]string // by JSON Pointer, as typed
	// What was wrong: by place, with the reason, and with all of it.
	faults                []dlq.EditFault
	reasonError, problems string
}

func (s *Server) editor() *dlq.Editor {
	return &dlq.Editor{Pool: s.config.Pool, Types: s.config.Types, Sealer: s.config.Sealer}
}

// shown names what a page was made from, for the form's version.
func shown(generation, payloadVersion int) string {
	return strconv.Itoa(generation) + "." + strconv.Itoa(payloadVersion)
}

// shownVersion reads it again; what is wrong there matches no version.
func shownVersion(text string) (generation, payloadVersion int) {
	g, v, _ := strings.Cut(text, ".")
	generation, err := strconv.Atoi(g)
	if err != nil {
		return -1, -1
	}
	payloadVersion, err = strconv.Atoi(v)
	if err != nil {
		return -1, -1
	}
	return generation, payloadVersion
}

func (f editForm) order() dlq.EditOrder {
	o := dlq.EditOrder{Values: f.values, Reason: f.Reason}
	o.Generation, o.Version = shownVersion(f.Version)
	return o
}

func (s *Server) editPage(c echo.Context) error {
	j, err := s.actJob(c, rbac.Edit)
	if err != nil {
		return err
	}
	return s.renderEdit(c, http.StatusOK, j, editForm{})
}

// editSubmit takes both steps: the first answers with the difference, the
// second, which repeats everything, saves.
func (s *Server) editSubmit(c echo.Context) error {
	j, err := s.actJob(c, rbac.Edit)
	if err != nil {
		return err
	}
	form, err := bind[editForm](c)
	if err != nil {
		return err
	}
	form.values = map[string]string{}
	for name, values := range c.Request().PostForm {
		if pointer, ok := strings.CutPrefix(name, route.FieldPointer); ok {
			form.values[pointer] = values[0]
		}
	}
	_, err = dlq.TriageReason(form.Reason)
	if err == nil && form.Confirm {
		return s.editSave(c, j, form)
	}
	form.wrong(err)
	preview, err := s.editor().Preview(c.Request().Context(), s.principal(c), j.ID, form.order())
	if problem.Is(err, problem.Conflict) {
		return s.renderRefused(c, j, err)
	}
	if !form.wrong(err) {
		return err
	}
	if err != nil || form.reasonError != "" {
		return s.renderEdit(c, http.StatusUnprocessableEntity, j, form)
	}
	return s.renderDiff(c, preview, form)
}

func (s *Server) editSave(c echo.Context, j dlq.TriageJob, form editForm) error {
	version, err := s.editor().Save(c.Request().Context(), s.principal(c), j.ID, form.order())
	switch {
	case problem.Is(err, problem.Conflict):
		return s.renderRefused(c, j, err)
	case problem.Is(err, problem.Invalid):
		form.wrong(err)
		return s.renderEdit(c, http.StatusUnprocessableEntity, j, form)
	case err != nil:
		return err
	}
	flash := layout.Flash{Tone: "success", Text: "Version " + strconv.Itoa(version) + " of the payload was saved. Nothing was sent yet."}
	if s.mayReplay(s.principal(c), j.Environment, j.JobType) {
		flash.Href, flash.Link = route.JobAction(actID(j), route.Replay), "Replay it"
	}
	return s.redirectWithFlash(c, route.Job(actID(j)), flash)
}

// wrong keeps what an Invalid problem says; it reports false for an error that
// the form can't show.
func (f *editForm) wrong(err error) bool {
	var p *problem.Error
	var refused *dlq.EditRefused
	switch {
	case err == nil:
		return true
	case errors.As(err, &refused):
		f.faults = append(f.faults, refused.Faults...)
	case !errors.As(err, &p) || p.Code != problem.Invalid:
		return false
	case p.Field == route.FieldReason:
		f.reasonError = p.Message
	default:
		f.problems = p.Message
	}
	return true
}

func (s *Server) renderEdit(c echo.Context, status int, j dlq.TriageJob, f editForm) error {
	open, err := s.editor().Open(c.Request().Context(), s.principal(c), j.ID)
	if problem.Is(err, problem.Conflict) {
		return s.renderRefused(c, j, err)
	}
	if err != nil {
		return err
	}
	props := job.EditProps{From: open.Job.PayloadVersion}
	if props.Act, err = s.act(c, open.Job, "Edit the payload of "+component.Cut(j.JobID, 60)); err != nil {
		return err
	}
	props.Version, props.Reason, props.ReasonError = shown(open.Job.Generation, open.Job.PayloadVersion), f.Reason, f.reasonError
	if f.Version != "" {
		props.Version = f.Version // what was typed belongs to what was seen
	}
	t, _ := s.config.Types().Type(j.JobType)
	props.Consequence = "Only these places may change; every other byte stays as it is. Nothing is saved before you have seen the difference, and nothing is sent: a replay, which you order afterwards, " +
		runDoes(t) + "."
	others := f.faults
	for _, place := range open.Places {
		field := job.EditField{Pointer: place.Pointer, Now: place.Now, Hidden: place.Hidden, Kind: place.Kind}
		if !place.Hidden {
			field.Value = place.Now
		}
		if typed, ok := f.values[place.Pointer]; ok {
			field.Value = typed
		}
		field.Error, others = takeFault(others, place.Pointer)
		props.Fields = append(props.Fields, field)
	}
	props.Problem = editProblem(f, others, open)
	return s.render(c, status, job.EditForm(props))
}

// takeFault takes the message for a place out of the faults.
func takeFault(faults []dlq.EditFault, pointer string) (message string, rest []dlq.EditFault) {
	for _, f := range faults {
		if f.Pointer == pointer && message == "" {
			message = "It " + f.Message + "."
			continue
		}
		rest = append(rest, f)
	}
	return message, rest
}

// editProblem is what no field can show: faults elsewhere in the payload, and
// why declared places are missing from a form without fields.
func editProblem(f editForm, others []dlq.EditFault, open dlq.EditForm) string {
	var parts []string
	if f.problems != "" {
		parts = append(parts, f.problems)
	}
	for _, fault := range others {
		where := fault.Pointer
		if where == "" {
			where = "The payload"
		}
		parts = append(parts, where+" "+fault.Message+".")
	}
	if len(parts) > 0 || len(f.faults) > 0 || f.reasonError != "" {
		parts = append([]string{"Nothing was saved."}, parts...)
	}
	if len(open.Places) == 0 {
		for _, fault := range open.Unusable {
			parts = append(parts, fault.Pointer+" "+fault.Message+".")
		}
	}
	const most = 6
	if len(parts) > most {
		parts = append(parts[:most], "And more.")
	}
	return strings.Join(parts, " ")
}

func (s *Server) renderDiff(c echo.Context, preview dlq.EditPreview, f editForm) error {
	j := preview.Job
	props := job.EditDiffProps{Size: preview.Size, From: j.PayloadVersion}
	var err error
	if props.Act, err = s.act(c, j, "Look at the difference before saving"); err != nil {
		return err
	}
	t, _ := s.config.Types().Type(j.JobType)
	props.Version, props.Reason = f.Version, f.Reason
	props.Consequence = "Saving adds a version and sends nothing; the captured version stays. A replay, which you order afterwards, " + runDoes(t) + "."
	for _, change := range preview.Changes {
		props.Fields = append(props.Fields, job.EditField{Pointer: change.Pointer, Value: f.values[change.Pointer]})
	}
	for _, line := range preview.Lines {
		props.Diff = append(props.Diff, component.DiffLine{Kind: line.Kind, Text: line.Text})
	}
	return s.render(c, http.StatusOK, job.EditDiff(props))
}
