package web

import (
	"maps"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/redrive-dlq/redrive/dlq/board"
	"github.com/redrive-dlq/redrive/dlq/replay"
	"github.com/redrive-dlq/redrive/views/batches"
	"github.com/redrive-dlq/redrive/views/component"
)

// batchItems are the replays of a batch.
func (s *Server) batchItems(c echo.Context, b board.Batch) (batches.Items, error) {
	replays, err := board.Replays(c.Request().Context(), s.config.Pool, b.ID)
	items := batches.Items{}
	for _, r := range replays {
		items.Rows = append(items.Rows, batchItem(r))
	}
	return items, err
}

// batchBlocked says why the plan left jobs out, most first.
func batchBlocked(b board.Batch) []batches.Reason {
	var list []batches.Reason
	for _, name := range slices.Sorted(maps.Keys(b.Tallies)) {
		code, blocked := strings.CutPrefix(name, "plan.")
		if !blocked || code == replay.Eligible {
			continue
		}
		list = append(list, batches.Reason{Word: component.Sentence(code), Count: b.Tallies[name]})
	}
	slices.SortStableFunc(list, func(a, b batches.Reason) int { return b.Count - a.Count })
	return list
}

func (s *Server) batchFailures(c echo.Context, b board.Batch) ([]batches.Failure, string, error) {
	return nil, "", nil
}

func (s *Server) batchSkips(c echo.Context, b board.Batch) ([]batches.Reason, error) { return nil, nil }

// speedFigures say how fast replays leave and how long the rest takes.
func (s *Server) speedFigures(c echo.Context, b board.Batch) ([]batches.Figure, error) {
	return nil, nil
}
