package web

import (
	"net/http"
	"slices"

	"github.com/labstack/echo/v4"

	"github.com/redrive-dlq/redrive/dlq/board"
	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/dlq/replay"
	"github.com/redrive-dlq/redrive/views/batches"
	"github.com/redrive-dlq/redrive/views/component"
	"github.com/redrive-dlq/redrive/views/layout"
	"github.com/redrive-dlq/redrive/views/route"
)

type fixForm struct {
	Environment string `form:"environment"`
	Kind        string `form:"kind"`
	Ref         string `form:"ref"`
	Reason      string `form:"reason"`
}

// batchFixPage declares what was fixed for all of a batch.
func (s *Server) batchFixPage(c echo.Context) error {
	b, err := s.planBatch(c)
	if err != nil {
		return err
	}
	return s.renderFix(c, http.StatusOK, s.batchFixProps(b), fixForm{}, nil)
}

func (s *Server) batchFixProps(b board.Batch) batches.FixProps {
	n := b.Verdicts[replay.InvalidInput] + b.Verdicts[replay.AuthNotFixed]
	return batches.FixProps{Page: layout.Page{Title: "Declare a fix for batch " + formatID(b.ID) + ", " + component.Cut(b.JobType, 60) + " in " + b.Environment, Environment: b.Environment}, Action: route.BatchFix(formatID(b.ID)), Back: route.Batch(formatID(b.ID)),
		Consequence: component.Plural(n, "job of it is", "jobs of it are") + " blocked because the input or the credentials were refused. The fix lifts these verdicts until a job dies again, and the whole batch is judged anew; a review of the plan before is void. Nothing is sent."}
}

func (s *Server) batchFixSubmit(c echo.Context) error {
	b, err := s.planBatch(c)
	if err != nil {
		return err
	}
	form, err := bind[fixForm](c)
	if err != nil {
		return err
	}
	err = s.config.Replays.DeclareFix(c.Request().Context(), s.principal(c),
		replay.FixOrder{Batch: b.ID, Kind: form.Kind, Ref: form.Ref, Reason: form.Reason})
	if err != nil {
		return s.renderFix(c, s.explain(err).status, s.batchFixProps(b), form, err)
	}
	return s.redirectWithFlash(c, route.Batch(formatID(b.ID)), layout.Flash{Tone: "success", Text: "The fix is declared. The jobs are being judged again."})
}

// groupFixPage declares what was fixed for a whole group.
func (s *Server) groupFixPage(c echo.Context) error {
	if _, err := board.GroupOf(c.Request().Context(), s.config.Pool, s.principal(c), c.Param("id")); err != nil {
		return err
	}
	return s.renderFix(c, http.StatusOK, s.groupFixProps(c), fixForm{Environment: s.environment(c)}, nil)
}

func (s *Server) groupFixProps(c echo.Context) batches.FixProps {
	fingerprint := c.Param("id")
	return batches.FixProps{Page: layout.Page{Title: "Declare a fix for this group"}, Action: route.GroupFix(fingerprint), Back: route.Group(fingerprint),
		Environments: s.config.Environments,
		Consequence:  "The fix lifts the block of every job of this group that died before now, in the environment that you choose, until it dies again. Nothing is sent. Plans that stand are judged again from their own page."}
}

func (s *Server) groupFixSubmit(c echo.Context) error {
	if s.config.Replays == nil {
		return errNoReplays
	}
	ctx, p := c.Request().Context(), s.principal(c)
	if _, err := board.GroupOf(ctx, s.config.Pool, p, c.Param("id")); err != nil {
		return err
	}
	form, err := bind[fixForm](c)
	if err != nil {
		return err
	}
	if form.Environment != "" && !slices.Contains(s.config.Environments, form.Environment) {
		err = problem.At(problem.Invalid, route.FieldEnvironment, "There is no environment of this name.")
	} else {
		err = s.config.Replays.DeclareFix(ctx, p,
			replay.FixOrder{Environment: form.Environment, Fingerprint: c.Param("id"), Kind: form.Kind, Ref: form.Ref, Reason: form.Reason})
	}
	if err != nil {
		return s.renderFix(c, s.explain(err).status, s.groupFixProps(c), form, err)
	}
	return s.redirectWithFlash(c, route.Group(c.Param("id")), layout.Flash{Tone: "success", Text: "The fix is declared for the group in " + form.Environment + "."})
}

func (s *Server) renderFix(c echo.Context, status int, props batches.FixProps, f fixForm, cause error) error {
	if cause != nil && !problem.Is(cause, problem.Invalid) && !problem.Is(cause, problem.Conflict) {
		return cause
	}
	props.Environment, props.Kind, props.Ref, props.Reason = f.Environment, f.Kind, f.Ref, f.Reason
	at, text := fault(cause)
	switch at {
	case route.FieldEnvironment:
		props.EnvironmentError = text
	case route.FieldKind:
		props.KindError = text
	case route.FieldFixRef:
		props.RefError = text
	case route.FieldReason:
		props.ReasonError = text
	default:
		props.Problem, props.Refused = text, problem.Is(cause, problem.Conflict)
	}
	var err error
	if environment := props.Page.Environment; environment != "" {
		props.Page, err = s.pageIn(c, props.Page.Title, layout.SectionBatches, environment, route.Batches)
	} else {
		props.Page, err = s.page(c, props.Page.Title, layout.SectionBatches)
	}
	if err != nil {
		return err
	}
	return s.render(c, status, batches.Fix(props))
}
