package web

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/redrive-dlq/redrive/dlq/board"
	"github.com/redrive-dlq/redrive/dlq/replay"
	"github.com/redrive-dlq/redrive/views/batches"
	"github.com/redrive-dlq/redrive/views/component"
	"github.com/redrive-dlq/redrive/views/route"
)

// looked says that a breakdown doesn't cover all of a large batch.
const looked = "Of the first 10,000; the totals are exact."

// batchFailures are the ways in which replays failed, most frequent first.
func (s *Server) batchFailures(c echo.Context, b board.Batch) ([]batches.Failure, string, error) {
	if b.Failed() == 0 {
		return nil, "", nil
	}
	found, more, err := board.Failures(c.Request().Context(), s.config.Pool, b.ID)
	if err != nil {
		return nil, "", err
	}
	var list []batches.Failure
	for _, f := range found {
		one := batches.Failure{Fingerprint: f.Fingerprint, Message: f.Template, Count: f.N, Same: f.Same && f.Fingerprint != ""}
		if f.Fingerprint != "" {
			one.Href = route.Group(f.Fingerprint)
			if one.Message == "" {
				one.Message = f.ErrorClass
			}
		} else {
			one.Href = toItems(route.Change(c.Request().URL, route.ParamOutcome, "failed", route.ParamVerdict, ""))
		}
		list = append(list, one)
	}
	if more {
		return list, looked, nil
	}
	return list, "", nil
}

// skipWords say why a replay that was confirmed did not leave.
var skipWords = map[string]string{
	"predecessor_failed":  "An earlier one of its entity failed",
	"changed":             "The job changed after it was confirmed",
	"job_gone":            "The job isn't stored any more",
	"not_accepted":        "The destination took no connection",
	"release_failed":      "It could not be handed over",
	replay.PayloadMissing: "The payload isn't stored any more",
}

// batchSkips say why replays were skipped.
func (s *Server) batchSkips(c echo.Context, b board.Batch) ([]batches.Reason, error) {
	if b.Tallies["skipped"] == 0 {
		return nil, nil
	}
	found, more, err := board.Reasons(c.Request().Context(), s.config.Pool, b.ID)
	if err != nil {
		return nil, err
	}
	var list []batches.Reason
	for _, r := range found {
		if r.Outcome != "skipped" {
			continue
		}
		one := batches.Reason{Word: skipWords[r.Code], Count: r.N, Href: route.BatchItems(formatID(b.ID), "skipped")}
		if one.Word == "" {
			one.Word = verdictWord(r.Code)
		}
		if detail := reasonText(r.Detail); detail != "" {
			one.Lift = "For example: " + detail
		}
		list = append(list, one)
	}
	if more && len(list) > 0 {
		list[len(list)-1].Lift += " " + looked
	}
	return list, nil
}

// batchBlocked says why the plan left jobs out, most first.
func batchBlocked(b board.Batch) []batches.Reason {
	var list []batches.Reason
	for _, name := range slices.Sorted(maps.Keys(b.Tallies)) {
		code, blocked := strings.CutPrefix(name, "plan.")
		if blocked && code != replay.Eligible {
			list = append(list, batches.Reason{Word: verdictWord(code), Lift: verdictLift(code), Count: b.Tallies[name], Href: route.BatchVerdict(formatID(b.ID), code)})
		}
	}
	slices.SortStableFunc(list, func(a, b batches.Reason) int { return b.Count - a.Count })
	return list
}

// verdictWord names a verdict.
func verdictWord(code string) string {
	if v, ok := replay.VerdictOf(code); ok {
		return v.Title
	}
	return component.Sentence(component.Cut(code, 40))
}

// verdictLift says what lifts it.
func verdictLift(code string) string {
	v, _ := replay.VerdictOf(code)
	return v.Lifts
}

// speedFigures say how fast replays leave and how long the rest takes.
func (s *Server) speedFigures(c echo.Context, b board.Batch) ([]batches.Figure, error) {
	rate, n := s.rateOf(b), left(b)
	most := "at most " + component.Count(rate) + " a minute"
	if each := perSecond(float64(rate) / 60); !strings.HasSuffix(each, "minute") {
		most = "at most " + each + " (" + component.Count(rate) + " a minute)"
	}
	now := batches.Figure{Label: "Leaving now", Value: "nothing", Note: most}
	if b.State == "running" || b.State == "paused" || b.State == "cancelling" {
		speed, err := board.Speed(c.Request().Context(), s.config.Pool, b.ID, rate, s.people.Now())
		if err != nil {
			return nil, err
		}
		if speed > 0 {
			now.Value = perSecond(speed)
		}
	}
	time := batches.Figure{Label: "Time left", Value: lasts(n, rate), Note: "at " + component.Count(rate) + " a minute, when nothing holds it back"}
	switch {
	case b.State == "cancelling":
		time.Value, time.Note = "–", "it is being cancelled"
	case b.State == "paused":
		time.Note = "at " + component.Count(rate) + " a minute, once it is resumed"
	case n == 0:
		time.Value, time.Note = "–", "all have left; outcomes are awaited"
	}
	return []batches.Figure{now, time}, nil
}

// perSecond is a speed: "1.9 a second", or for slow ones "6 a minute".
func perSecond(v float64) string {
	if v < 0.95 {
		return strconv.FormatFloat(v*60, 'f', 0, 64) + " a minute"
	}
	return strings.TrimSuffix(strconv.FormatFloat(v, 'f', 1, 64), ".0") + " a second"
}
