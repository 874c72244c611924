package web

import (
	"strconv"

	"github.com/labstack/echo/v4"

	"github.com/redrive-dlq/redrive/dlq/board"
	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/dlq/redact"
	"github.com/redrive-dlq/redrive/dlq/replay"
	"github.com/redrive-dlq/redrive/views/batches"
	"github.com/redrive-dlq/redrive/views/component"
	"github.com/redrive-dlq/redrive/views/route"
)

// itemTabs are where replays stand, as the items of a batch are filtered.
var itemTabs = []struct{ tally, word string }{
	{"failed", "Failed"}, {"unconfirmed", "Unconfirmed"}, {"skipped", "Skipped"}, {"released", "Out"}, {"ready", "Next to leave"}, {"pending", "Waiting"},
	{"succeeded", "Succeeded"}, {"already_done", "Already done"}, {"cancelled", "Cancelled"},
}

// batchItems are a page of the replays of a batch, by where they stand or by
// the plan's verdict. Errors: Invalid.
func (s *Server) batchItems(c echo.Context, b board.Batch) (batches.Items, error) {
	q := board.ItemQuery{State: c.QueryParam(route.ParamOutcome), Verdict: c.QueryParam(route.ParamVerdict), Cursor: c.QueryParam(route.ParamCursor)}
	if _, known := replay.VerdictOf(q.Verdict); q.Verdict != "" && !known {
		return batches.Items{}, problem.At(problem.Invalid, route.ParamVerdict, "There is no verdict of this name.")
	}
	found, err := board.Items(c.Request().Context(), s.config.Pool, b.ID, q)
	if err != nil {
		return batches.Items{}, err
	}
	items := batches.Items{Tabs: batchTabsOf(c, b, q), Pages: component.Pages{Next: toItems(turnTo(c, found.Next)), Prev: toItems(turnTo(c, found.Prev))}}
	if found.Prev != "" {
		items.Pages.First = toItems(route.Change(c.Request().URL))
	}
	for _, r := range found.Rows {
		items.Rows = append(items.Rows, batchItem(r))
	}
	return items, nil
}

func toItems(href string) string {
	if href == "" {
		return ""
	}
	return href + "#items"
}

// batchTabsOf are the tabs of what the batch has, and the one in force.
func batchTabsOf(c echo.Context, b board.Batch, q board.ItemQuery) []batches.Tab {
	to := func(outcome, verdict string) string {
		return toItems(route.Change(c.Request().URL, route.ParamOutcome, outcome, route.ParamVerdict, verdict))
	}
	tabs := []batches.Tab{{Word: "All", Href: to("", ""), Count: b.Planned, Current: q.State == "" && q.Verdict == ""}}
	for _, one := range itemTabs {
		if n := b.Tallies[one.tally]; n > 0 || q.State == one.tally {
			tabs = append(tabs, batches.Tab{Word: one.word, Href: to(one.tally, ""), Count: n, Current: q.State == one.tally})
		}
	}
	if q.Verdict != "" {
		tabs = append(tabs, batches.Tab{Word: "Plan: " + verdictWord(q.Verdict), Href: to("", q.Verdict), Count: b.Verdicts[q.Verdict], Current: true})
	}
	return tabs
}

func batchItem(r board.Replay) batches.Item {
	item := batches.Item{JobID: strconv.FormatInt(r.DeadJobID, 10), Label: r.JobID, State: r.State, Result: redact.Readable(r.EffectID),
		Sent: when(r.ReleasedAt), Ended: when(r.OutcomeAt), Version: r.PayloadVersion, Canary: r.Wave == 0, Why: redact.Readable(r.OutcomeDetail)}
	switch {
	case r.Outcome != "":
		item.State = r.Outcome
	case r.State == "planned" && r.Verdict != replay.Eligible:
		item.State = "blocked"
	}
	if item.Why == "" {
		item.Why = redact.Readable(r.VerdictDetail)
	}
	if r.Behind && r.State == "pending" {
		item.Why = "waits until an earlier replay of its entity, key or job has ended"
	}
	if r.NextGeneration > 0 {
		item.Next = "open again, generation " + strconv.Itoa(r.NextGeneration)
	}
	if r.Late > 0 {
		item.Next = component.Plural(r.Late, "later word", "later words") + " kept as an attempt"
	}
	return item
}
