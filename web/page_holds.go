package web

import (
	"net/http"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/redrive-dlq/redrive/dlq/board"
	"github.com/redrive-dlq/redrive/dlq/replay"
	"github.com/redrive-dlq/redrive/rbac"
	"github.com/redrive-dlq/redrive/views/component"
	"github.com/redrive-dlq/redrive/views/holds"
	"github.com/redrive-dlq/redrive/views/layout"
)

// holds are the holds in force that the request's person may see.
func (s *Server) holds(c echo.Context) ([]replay.Hold, error) {
	p := s.principal(c)
	if s.config.Replays == nil || !p.Can(rbac.Read, "", "") {
		return nil, nil
	}
	return s.config.Replays.Holds(c.Request().Context(), p)
}

// frameHolds are the holds as every page's frame shows them.
func (s *Server) frameHolds(c echo.Context) ([]layout.Hold, error) {
	list, err := s.holds(c)
	var shown []layout.Hold
	for _, h := range list {
		shown = append(shown, layout.Hold{Environment: h.Environment, What: holdWhat(h), By: h.PlacedBy, Since: h.PlacedAt, Reason: reasonText(h.Reason)})
	}
	return shown, err
}

// holdWhat says what a hold stops: "All replays of charge_card in production".
func holdWhat(h replay.Hold) string {
	switch {
	case h.JobType != "":
		return "All replays of " + component.Cut(h.JobType, 60) + " in " + h.Environment
	case h.Destination != "":
		return "All replays to " + component.Cut(h.Destination, 80) + " in " + h.Environment
	}
	return "All replays in " + h.Environment
}

func lowerFirst(text string) string {
	if text == "" {
		return ""
	}
	return strings.ToLower(text[:1]) + text[1:]
}

// holdsPage lists the holds in force, and offers what may be held.
func (s *Server) holdsPage(c echo.Context) error {
	list, err := s.holds(c)
	if err != nil {
		return err
	}
	chosen := s.environment(c)
	here := slices.DeleteFunc(slices.Clone(list), func(h replay.Hold) bool { return chosen != "" && h.Environment != chosen })
	props := holds.Props{Offers: s.holdOffers(s.principal(c), chosen, list)}
	if props.Rows, err = s.holdRows(c, here); err != nil {
		return err
	}
	title := "No replay is held"
	if len(here) > 0 {
		title = component.Plural(len(here), "hold is", "holds are") + " in force"
	}
	if props.Page, err = s.page(c, s.environmentTitle(c, title), layout.SectionBatches); err != nil {
		return err
	}
	return s.render(c, http.StatusOK, holds.View(props))
}

// holdRows says of each hold what it is and how many batches it keeps back.
func (s *Server) holdRows(c echo.Context, list []replay.Hold) ([]holds.Row, error) {
	if len(list) == 0 {
		return nil, nil
	}
	way, err := board.WaysUnder(c.Request().Context(), s.config.Pool, s.principal(c))
	if err != nil {
		return nil, err
	}
	var rows []holds.Row
	for _, h := range list {
		row := holds.Row{ID: formatID(h.ID), What: holdWhat(h), Environment: h.Environment, Reason: reasonText(h.Reason), By: h.PlacedBy, Since: h.PlacedAt,
			CanLift: mayHold(s.principal(c), h.Environment, h.JobType)}
		for _, w := range way {
			if holdsBack(h, w.Environment, w.JobType, w.Destination) {
				row.Waits += w.N
			}
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// holdsBack says whether a hold keeps back replays of a type to a destination.
func holdsBack(h replay.Hold, environment, jobType, destination string) bool {
	return h.Environment == environment && (h.JobType == "" || h.JobType == jobType) && (h.Destination == "" || h.Destination == destination)
}

// holdOffers are what the person may hold and is not held, by environment.
func (s *Server) holdOffers(p *rbac.Principal, chosen string, list []replay.Hold) []holds.Offer {
	catalogue := s.config.Types()
	held := func(h replay.Hold) bool { return heldExactly(list, h) }
	var offers []holds.Offer
	for _, environment := range catalogue.Environments {
		if chosen != "" && chosen != environment {
			continue
		}
		wide := mayHold(p, environment, "")
		offer := holds.Offer{Environment: environment, All: wide && !held(replay.Hold{Environment: environment})}
		for _, t := range catalogue.Types() {
			target, ok := t.Target(environment)
			if !ok || !mayHold(p, environment, t.Name) {
				continue
			}
			if !held(replay.Hold{Environment: environment, JobType: t.Name}) {
				offer.Types = append(offer.Types, t.Name)
			}
			to := component.Choice{Value: target.Destination(), Word: destinationWords(target)}
			if wide && !held(replay.Hold{Environment: environment, Destination: to.Value}) && !slices.Contains(offer.Destinations, to) {
				offer.Destinations = append(offer.Destinations, to)
			}
		}
		if offer.All || len(offer.Types) > 0 || len(offer.Destinations) > 0 {
			offers = append(offers, offer)
		}
	}
	return offers
}

// heldExactly says whether this very hold is among those in force.
func heldExactly(list []replay.Hold, h replay.Hold) bool {
	for _, one := range list {
		if one.Environment == h.Environment && one.JobType == h.JobType && one.Destination == h.Destination {
			return true
		}
	}
	return false
}
