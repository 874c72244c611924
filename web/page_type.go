package web

import (
	"fmt"
	"math"
	"net/http"
	"net/url"

	"github.com/labstack/echo/v4"

	"github.com/redrive-dlq/redrive/dlq/board"
	"github.com/redrive-dlq/redrive/dlq/jobtype"
	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/rbac"
	"github.com/redrive-dlq/redrive/views/component"
	"github.com/redrive-dlq/redrive/views/layout"
	"github.com/redrive-dlq/redrive/views/types"
)

// typeBatches is how many batches a type's page shows of each environment.
const typeBatches = 5

// typePage shows one type: its policy in words, how its replays fare, and its
// last batches.
func (s *Server) typePage(c echo.Context) error {
	name, err := typeParam(c)
	if err != nil {
		return err
	}
	catalogue := s.config.Types()
	t, ok := catalogue.Type(name)
	if !ok || !s.principal(c).Can(rbac.Read, "", name) {
		return problem.New(problem.NotFound, "The catalogue declares no type of this name.")
	}
	seen, err := s.typesSeen(c)
	if err != nil {
		return err
	}
	props := types.TypeProps{Name: name, Runbook: t.Runbook, Policy: policyWords(catalogue, t, seen.proofs), Idle: idle(t)}
	for _, environment := range catalogue.Environments {
		if chosen := s.environment(c); (chosen == "" || chosen == environment) && s.principal(c).Can(rbac.Read, environment, name) {
			props.Places = append(props.Places, s.typePlace(t, environment, seen))
		}
	}
	if err := s.offerPlaceHolds(c, name, props.Places); err != nil {
		return err
	}
	last, err := board.LastBatches(c.Request().Context(), s.config.Pool, s.principal(c), s.environment(c), typeBatches)
	if err != nil {
		return err
	}
	for _, b := range last {
		if b.JobType == name {
			props.Batches = append(props.Batches, batchRow(s.batchNow(b)))
		}
	}
	if props.Page, err = s.page(c, component.Cut(name, 80), layout.SectionTypes); err != nil {
		return err
	}
	return s.render(c, http.StatusOK, types.One(props))
}

// typeParam is the name in the path. Workers choose names, so it may hold a
// slash: then the router hands it on as it was escaped.
func typeParam(c echo.Context) (string, error) {
	name := c.Param("id")
	if c.Request().URL.RawPath == "" {
		return name, nil
	}
	name, err := url.PathUnescape(name)
	if err != nil {
		return "", problem.Wrap(err, problem.NotFound, "The catalogue declares no type of this name.")
	}
	return name, nil
}

func (s *Server) typePlace(t *jobtype.Type, environment string, seen typesSeen) types.Place {
	target, ok := t.Target(environment)
	place := types.Place{Environment: environment, Now: nowWords(seen.health, environment, t.Name), Tokens: component.Count(t.Limit().Burst) + " at once"}
	for _, n := range seen.counts {
		if n.Environment == environment && n.JobType == t.Name {
			place.Open += n.Open
		}
	}
	if place.Now == "" {
		place.Now = "nothing under way"
	}
	if !ok {
		place.Tokens = ""
		return place
	}
	place.Target = targetWords(target)
	place.Limit = "at most " + component.Count(target.InFlight()) + " out at once, all its types together"
	place.Held = heldWords(seen.health, environment, t.Name, target.Destination())
	for _, h := range seen.health.Types {
		if h.Environment == environment && h.JobType == t.Name {
			place.Tokens = fmt.Sprintf("%s of %s at once", component.Count(int(math.Floor(h.TokensNow(t.Limit(), s.people.Now())))), component.Count(t.Limit().Burst))
		}
	}
	for _, d := range seen.health.Destinations {
		if d.Environment == environment && d.Name == target.Destination() {
			place.Breaker = breakerWords(d.Destination, s.people.Now())
		}
	}
	return place
}
