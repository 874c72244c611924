package web

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/redrive-dlq/redrive/dlq/board"
	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/dlq/replay"
	"github.com/redrive-dlq/redrive/rbac"
	"github.com/redrive-dlq/redrive/views/batches"
	"github.com/redrive-dlq/redrive/views/component"
	"github.com/redrive-dlq/redrive/views/layout"
	"github.com/redrive-dlq/redrive/views/route"
)

type agreeForm struct {
	PlanHash   string `form:"plan_hash"`
	ReviewHash string `form:"review_hash"`
	Nonce      string `form:"nonce"`
	Phrase     string `form:"phrase"`
}

// agreePage is the second confirmation, or what the second person sees: the
// same page.
func (s *Server) agreePage(c echo.Context) error {
	b, err := s.planBatch(c)
	if err != nil {
		return err
	}
	return s.renderAgree(c, http.StatusOK, b, agreeForm{}, nil)
}

func (s *Server) confirmSubmit(c echo.Context) error {
	return s.agree(c, func(ctx context.Context, p *rbac.Principal, o replay.ConfirmOrder) (string, error) {
		return s.config.Replays.Confirm(ctx, p, o)
	})
}

func (s *Server) approveSubmit(c echo.Context) error {
	return s.agree(c, func(ctx context.Context, p *rbac.Principal, o replay.ConfirmOrder) (string, error) {
		return s.config.Replays.Approve(ctx, p, o)
	})
}

func (s *Server) agree(c echo.Context, do func(context.Context, *rbac.Principal, replay.ConfirmOrder) (string, error)) error {
	b, err := s.planBatch(c)
	if err != nil {
		return err
	}
	form, err := bind[agreeForm](c)
	if err != nil {
		return err
	}
	state, err := do(c.Request().Context(), s.principal(c), replay.ConfirmOrder{Batch: b.ID, PlanHash: form.PlanHash, ReviewHash: form.ReviewHash,
		Phrase: form.Phrase, Nonce: form.Nonce})
	switch {
	case err == nil:
		return s.redirectWithFlash(c, route.Batch(formatID(b.ID)), layout.Flash{Tone: "success", Text: agreedWords(state)})
	case problem.Is(err, problem.Invalid), problem.Is(err, problem.Conflict), problem.Is(err, problem.Forbidden):
		now, again := board.BatchOf(c.Request().Context(), s.config.Pool, s.principal(c), b.ID)
		if again != nil {
			return again
		}
		return s.renderAgree(c, s.explain(err).status, now, form, err)
	}
	return err
}

func agreedWords(state string) string {
	switch state {
	case "waiting":
		return "Confirmed. It waits for a second person now; nothing leaves before."
	case "scheduled":
		return "Confirmed. It starts at its time and can be cancelled until then without a trace outside."
	}
	return "Confirmed. It begins to leave as its limits allow."
}

// renderAgree shows the page, or why this person can't confirm or approve now.
func (s *Server) renderAgree(c echo.Context, status int, b board.Batch, f agreeForm, cause error) error {
	props := batches.AgreeProps{Row: batchRow(b), Approving: c.Path() == route.BatchApprovePattern, Action: c.Request().URL.Path,
		Who: s.batchWho(b), Asked: s.askFor(c, b), Typed: f.Phrase}
	at, text := fault(cause)
	if at == route.FieldPhrase {
		props.TypedError = text
	} else {
		props.Problem = text
	}
	page, err := s.config.Replays.Confirming(c.Request().Context(), s.principal(c), b.ID)
	switch {
	case err == nil && props.Approving != (b.State == "waiting"):
		props.Problem, props.Refused, status = "Batch "+formatID(b.ID)+" "+component.BatchLook(b.State).Word+": there is nothing to do here.", true, http.StatusConflict
	case err == nil:
		props.Risk, props.Phrase, props.NeedsApproval = page.Risk, page.Phrase, page.NeedsApproval
		props.PlanHash, props.ReviewHash, props.Nonce = page.PlanHash, page.ReviewHash, page.Nonce
		// What it may do stands above, in large.
		starts := s.startWords(b)
		if page.CoolsOff {
			starts, props.NeedsApproval = coolsOff(b.Environment, page.NeedsApproval), ""
		}
		pace := component.Sentence(strings.TrimSpace(paceWords(b, s.rateOf(b), b.Canary))) + "."
		props.Sentence = slices.Concat([]string{pace, starts}, s.willHappen(b, s.rateOf(b), b.Canary)[1:])
	case problem.Is(err, problem.Conflict), problem.Is(err, problem.Forbidden):
		if props.Problem == "" {
			_, props.Problem = fault(err)
			status = s.explain(err).status
		}
		props.Refused = true
	default:
		return err
	}
	title := "Confirm: replay " + component.Count(b.Eligible) + " " + component.Cut(b.JobType, 60) + " in " + b.Environment
	if props.Approving {
		title = "Approve: replay " + component.Count(b.Eligible) + " " + component.Cut(b.JobType, 60) + " in " + b.Environment
	}
	if props.Page, err = s.pageIn(c, title, layout.SectionBatches, b.Environment, route.Batches); err != nil {
		return err
	}
	return s.render(c, status, batches.Agree(props))
}
