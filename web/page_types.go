package web

import (
	"net/http"
	"slices"
	"strconv"
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

// typesSeen is what pages of types read beside the catalogue.
type typesSeen struct {
	counts []board.TypeCount
	health board.Health
	proofs []board.Proof
}

func (s *Server) typesSeen(c echo.Context) (seen typesSeen, err error) {
	ctx, p, environment := c.Request().Context(), s.principal(c), s.environment(c)
	if seen.counts, err = board.Types(ctx, s.config.Pool, p, environment); err != nil {
		return seen, err
	}
	if seen.health, err = board.ReadHealth(ctx, s.config.Pool, p, environment, s.people.Now()); err != nil {
		return seen, err
	}
	seen.proofs, err = board.Proofs(ctx, s.config.Pool, p)
	return seen, err
}

// typesPage shows the catalogue beside what arrived.
func (s *Server) typesPage(c echo.Context) error {
	seen, err := s.typesSeen(c)
	if err != nil {
		return err
	}
	catalogue := s.config.Types()
	props := types.Props{Version: s.catalogueVersion()}
	for _, t := range catalogue.Types() {
		props.Rows = append(props.Rows, typeRow(t, catalogue, seen))
	}
	if err := s.offerTypeHolds(c, props.Rows); err != nil {
		return err
	}
	props.Undeclared = undeclared(catalogue, seen.counts)
	title := component.Plural(len(props.Rows), "job type is", "job types are") + " declared"
	if n := len(props.Undeclared); n > 0 {
		title += ", " + component.Count(n) + " arrived undeclared"
	}
	if props.Page, err = s.page(c, title, layout.SectionTypes); err != nil {
		return err
	}
	return s.render(c, http.StatusOK, types.View(props))
}

// catalogueVersion is the version in force; zero where none is kept.
func (s *Server) catalogueVersion() types.Version {
	if s.config.Catalogue == nil {
		return types.Version{}
	}
	in := s.config.Catalogue()
	v := types.Version{ID: strconv.FormatInt(in.ID, 10), LoadedAt: in.LoadedAt, LoadedBy: in.LoadedBy, Sum: in.Sum,
		First: in.Changes == nil, NeedsRestart: in.NeedsRestart}
	for _, change := range in.Changes {
		v.Changes = append(v.Changes, types.Change(change))
	}
	return v
}

func typeRow(t *jobtype.Type, c *jobtype.Catalogue, seen typesSeen) types.Row {
	row := types.Row{Name: t.Name, Owner: t.Owner, SideEffects: sideEffects(t), Money: t.MoneyRisk(),
		Idempotency: idempotencyWords(t), Proven: provenWords(t, seen.proofs), Limits: limitWords(c, t)}
	dead := map[string]int{}
	for _, n := range seen.counts {
		if n.JobType == t.Name {
			row.Open += n.Open
			dead[n.Environment] = n.Total
		}
	}
	for _, environment := range c.Environments {
		target, ok := t.Target(environment)
		switch {
		case ok:
			row.Targets = append(row.Targets, types.Target{Environment: environment, Text: targetWords(target)})
		case dead[environment] > 0:
			row.Targets = append(row.Targets, types.Target{Environment: environment,
				Text: "no target: " + component.Plural(dead[environment], "dead job", "dead jobs") + " there can't be replayed"})
		}
		now := types.Now{Environment: environment, Text: nowWords(seen.health, environment, t.Name), Held: heldWords(seen.health, environment, t.Name, target.Destination())}
		if now.Text != "" || now.Held != "" {
			row.Now = append(row.Now, now)
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
