package web

import (
	"net/http"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/redrive-dlq/redrive/dlq/board"
	"github.com/redrive-dlq/redrive/dlq/jobtype"
	"github.com/redrive-dlq/redrive/views/component"
	"github.com/redrive-dlq/redrive/views/layout"
	"github.com/redrive-dlq/redrive/views/types"
)

// CatalogueInForce is what pages say of the catalogue.
type CatalogueInForce struct {
	jobtype.Version
	NeedsRestart []string // what it says and this process takes up at its next start
}

// typesPage shows the catalogue beside what arrived.
func (s *Server) typesPage(c echo.Context) error {
	counts, err := board.Types(c.Request().Context(), s.config.Pool, s.principal(c), s.environment(c))
	if err != nil {
		return err
	}
	catalogue := s.config.Types()
	props := types.Props{}
	for _, t := range catalogue.Types() {
		props.Rows = append(props.Rows, typeRow(t, catalogue.Environments, counts))
	}
	props.Undeclared = undeclared(catalogue, counts)
	title := component.Plural(len(props.Rows), "job type is", "job types are") + " declared"
	if n := len(props.Undeclared); n > 0 {
		title += ", " + component.Count(n) + " arrived undeclared"
	}
	if props.Page, err = s.page(c, title, layout.SectionTypes); err != nil {
		return err
	}
	return s.render(c, http.StatusOK, types.View(props))
}

func typeRow(t *jobtype.Type, environments []string, counts []board.TypeCount) types.Row {
	row := types.Row{Name: t.Name, Owner: t.Owner, Runbook: t.Runbook, SideEffects: sideEffects(t), Money: t.MoneyRisk(),
		Idempotency: idempotencyWords(t), Edits: t.Edits.Payload}
	dead := map[string]int{}
	for _, n := range counts {
		if n.JobType == t.Name {
			row.Open += n.Open
			dead[n.Environment] = n.Total
		}
	}
	for _, environment := range environments {
		target, ok := t.Target(environment)
		switch {
		case ok:
			row.Targets = append(row.Targets, types.Target{Environment: environment, Text: targetWords(target)})
		case dead[environment] > 0:
			row.Targets = append(row.Targets, types.Target{Environment: environment,
				Text: "no target: " + component.Plural(dead[environment], "dead job", "dead jobs") + " there can't be replayed"})
		}
	}
	return row
}

// undeclared are the types that arrived and stand in no catalogue.
func undeclared(catalogue *jobtype.Catalogue, counts []board.TypeCount) []types.Undeclared {
	var list []types.Undeclared
	var environments []string
	for _, n := range counts {
		if _, ok := catalogue.Type(n.JobType); ok {
			continue
		}
		if len(list) == 0 || list[len(list)-1].Name != n.JobType {
			list, environments = append(list, types.Undeclared{Name: n.JobType}), nil
		}
		last := &list[len(list)-1]
		last.Jobs += n.Total
		environments = append(environments, n.Environment)
		last.Missing = "What it does outside (side_effects), what keeps it from doing it twice (idempotency), and where its replays go (targets) in " +
			strings.Join(environments, ", ") + "."
	}
	slices.SortStableFunc(list, func(a, b types.Undeclared) int { return b.Jobs - a.Jobs })
	return list
}

// sideEffects are what a run of the type does outside, each as a sentence's end.
func sideEffects(t *jobtype.Type) []string {
	var texts []string
	for _, e := range t.SideEffects {
		switch {
		case e.Kind == "none":
		case e.Text != "":
			texts = append(texts, e.Text)
		default:
			texts = append(texts, e.Kind)
		}
	}
	return texts
}

// idempotencyWords says what keeps a second run from repeating the effect.
func idempotencyWords(t *jobtype.Type) string {
	var words string
	switch t.Idempotency.By {
	case "key":
		words = "by key, scope " + t.Scope()
	case "unique_constraint":
		words = "by a unique constraint of the application"
	case "marker":
		words = "by a marker of the application"
	default:
		words = "none: a second run repeats it"
		if !t.HasEffect() {
			words = "not needed: it does nothing outside"
		}
	}
	if t.Idempotency.ProviderDeduplicates {
		words += "; the provider refuses a second effect of one key"
	}
	return words
}

// targetWords says where replays go: "River app-prod, queue mail; outcome within 15 min".
func targetWords(t jobtype.Target) string {
	return destinationWords(t) + "; outcome within " + component.Duration(t.OutcomeWithin)
}

// destinationWords names the endpoint behind a target.
func destinationWords(t jobtype.Target) string {
	switch {
	case t.River != nil:
		return "River " + t.River.Client + ", queue " + t.River.Queue
	case t.HTTP != nil:
		return t.HTTP.URL
	}
	return "nowhere"
}
