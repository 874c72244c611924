package web

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/redrive-dlq/redrive/audit"
	"github.com/redrive-dlq/redrive/dlq/board"
	"github.com/redrive-dlq/redrive/dlq/replay"
	"github.com/redrive-dlq/redrive/rbac"
	"github.com/redrive-dlq/redrive/views/batches"
	"github.com/redrive-dlq/redrive/views/component"
	"github.com/redrive-dlq/redrive/views/layout"
	"github.com/redrive-dlq/redrive/views/route"
)

// trailRows is how many audit entries a page of a job or batch shows.
const trailRows = 50

// batchPage shows one batch as far as it is: its plan until it is confirmed,
// then its run, and its report when it has ended.
func (s *Server) batchPage(c echo.Context) error {
	id, err := idParam(c, "id")
	if err != nil {
		return err
	}
	b, err := board.BatchOf(c.Request().Context(), s.config.Pool, s.principal(c), id)
	if err != nil {
		return err
	}
	switch {
	case b.Kind == "single":
		return s.singleView(c, s.batchNow(b))
	case !ordered(b) && b.State != "cancelled":
		return s.planView(c, b)
	case b.FinishedAt != nil:
		return s.reportView(c, b)
	}
	return s.runView(c, b)
}

// batchHead is what all pages of an ordered batch begin with. A page of what
// goes on follows its events.
func (s *Server) batchHead(c echo.Context, b board.Batch, title string) (batches.Head, error) {
	head := batches.Head{Row: batchRow(b)}
	var err error
	if head.Page, err = s.pageIn(c, title, layout.SectionBatches, b.Environment, route.Batches); err != nil {
		return head, err
	}
	if b.FinishedAt == nil {
		head.Page.Live = route.BatchLive(head.ID)
	}
	return head, nil
}

// batchTrail are the batch's own entries: whoever may read it may read them.
func (s *Server) batchTrail(c echo.Context, b board.Batch) ([]component.Entry, error) {
	trail, err := audit.List(c.Request().Context(), s.config.Pool, audit.Scope{Everywhere: true}, audit.Query{Batch: b.ID, Limit: trailRows})
	return entries(trail.Records), err
}

// batchEvents tells an open page that its batch went on.
func (s *Server) batchEvents(c echo.Context) error {
	id, err := idParam(c, "id")
	if err != nil {
		return err
	}
	return s.stream(c, func(ctx context.Context, p *rbac.Principal) (string, error) {
		b, err := board.BatchOf(ctx, s.config.Pool, p, id)
		if err != nil {
			return "", err
		}
		return s.batchVersion(ctx, b)
	}, rbac.Read)
}

// batchVersion is another text whenever the batch's page would say something
// else: how many stand where, who paused it, what holds it back. While it is
// under way the clock counts too, for what is left of the time.
func (s *Server) batchVersion(ctx context.Context, b board.Batch) (string, error) {
	var text strings.Builder
	fmt.Fprintf(&text, "%s %d %d %d %s %d", b.State, b.Planned, b.PlanRevision, b.ReviewRevision, b.PauseKind, b.RatePerMinute)
	for _, name := range slices.Sorted(maps.Keys(b.Tallies)) {
		fmt.Fprintf(&text, " %s=%d", name, b.Tallies[name])
	}
	if b.Wave != nil {
		fmt.Fprintf(&text, " wave %d", *b.Wave)
	}
	if b.FinishedAt != nil {
		return text.String(), nil
	}
	hold, err := replay.HeldBy(ctx, s.config.Pool, b.Environment, b.JobType, b.Destination)
	if err != nil {
		return "", err
	}
	if hold != nil {
		fmt.Fprintf(&text, " held %d %t", hold.ID, hold.Reason != "")
	}
	d, err := board.DestinationOf(ctx, s.config.Pool, b.Environment, b.Destination)
	if err != nil {
		return "", err
	}
	fmt.Fprintf(&text, " %s", d.Breaker)
	switch b.State {
	case "scheduled":
		fmt.Fprintf(&text, " %s", s.people.Now().Format("15:04"))
	case "running":
		fmt.Fprintf(&text, " %d", s.people.Now().Unix()/int64(runBeat/time.Second))
	}
	return text.String(), nil
}

// runBeat is how often the page of a running batch is shown anew although
// nothing was counted: its rate falls, its time passes.
const runBeat = 10 * time.Second

// batchNow calls a batch that is ordered for later what it is until then.
func (s *Server) batchNow(b board.Batch) board.Batch {
	if b.State == "running" && b.Ended() == 0 && when(b.DueAt).After(s.people.Now()) {
		b.State = "scheduled"
	}
	return b
}
