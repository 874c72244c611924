package replay_test

import (
	"testing"
	"time"

	"github.com/redrive-dlq/redrive/dlq/jobtype"
	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/dlq/replay"
	"github.com/redrive-dlq/redrive/rbac"
)

func TestReviewKeepsTheSettings(t *testing.T) {
	t.Parallel()
	b := ordersSetup(t)
	id := b.planned(t, "send_welcome_email", 3)
	at := b.clock.Add(2 * time.Hour)
	o := b.reviewOrder(t, id)
	o.StartAt, o.RatePerMinute, o.Reason = at, 60, "  mailed by password=hunter2hunter2 "
	first, err := b.svc.Review(t.Context(), b.oncall, o)
	if err != nil {
		t.Fatal(err)
	}
	n := b.count(t, `
		SELECT count(*)
		FROM redrive.batches
		WHERE id = $1 AND state = 'planned' AND review_hash = $2 AND review_revision = 1 AND reviewed_by = 'oncall1@demo.test' AND start_at = $3
		  AND rate_per_minute = 60 AND canary = 2 AND reason LIKE 'mailed by%' AND reason NOT LIKE '%hunter2%' AND NOT accept_repeat`, id, first, at)
	if n != 1 || b.entries(t, "batch.review") != 1 {
		t.Error("the review isn't kept, or isn't in the log")
	}
	again, err := b.svc.Review(t.Context(), b.oncall, o)
	if err != nil || again == first {
		t.Errorf("two reviews share the hash %s: %v", again, err)
	}
	o.RatePerMinute, o.StartAt = 0, time.Time{}
	if _, err := b.svc.Review(t.Context(), b.oncall, o); err != nil {
		t.Fatal(err)
	}
	if n := b.count(t, `SELECT rate_per_minute FROM redrive.batches WHERE id = $1 AND start_after_s = 300 AND start_at IS NULL`, id); n != 6000 {
		t.Errorf("the type's limit became a rate of %d", n)
	}
}

func TestReviewRefuses(t *testing.T) {
	t.Parallel()
	b := ordersSetup(t)
	id, empty, twice := b.planned(t, "send_welcome_email", 3), b.planned(t, "send_welcome_email", 0), b.planned(t, "import_catalog", 2)
	scheduled := b.planned(t, "send_welcome_email", 2)
	b.confirmed(t, scheduled)
	for name, c := range map[string]struct {
		batch int64
		by    *rbac.Principal
		with  func(o *replay.ReviewOrder)
		code  problem.Code
		words string
	}{
		"no reason":           {id, b.oncall, func(o *replay.ReviewOrder) { o.Reason = " x " }, problem.Invalid, "reason"},
		"too fast":            {id, b.oncall, func(o *replay.ReviewOrder) { o.RatePerMinute = 6001 }, problem.Invalid, "6,000"},
		"backwards":           {id, b.oncall, func(o *replay.ReviewOrder) { o.RatePerMinute = -1 }, problem.Invalid, "rate"},
		"canary above all":    {id, b.oncall, func(o *replay.ReviewOrder) { o.Canary = 4 }, problem.Invalid, "0 to 3"},
		"canary below none":   {id, b.oncall, func(o *replay.ReviewOrder) { o.Canary = -1 }, problem.Invalid, "canary"},
		"start in the past":   {id, b.oncall, func(o *replay.ReviewOrder) { o.StartAt = b.clock }, problem.Invalid, "is over"},
		"start next year":     {id, b.oncall, func(o *replay.ReviewOrder) { o.StartAt = b.clock.AddDate(0, 0, 31) }, problem.Invalid, "30 days"},
		"delay of a year":     {id, b.oncall, func(o *replay.ReviewOrder) { o.StartAfter = 365 * 24 * time.Hour }, problem.Invalid, "30 days"},
		"negative delay":      {id, b.oncall, func(o *replay.ReviewOrder) { o.StartAfter = -time.Second }, problem.Invalid, "30 days"},
		"another plan":        {id, b.oncall, func(o *replay.ReviewOrder) { o.PlanHash = "f00" }, problem.Conflict, "changed since"},
		"nothing to replay":   {empty, b.oncall, nil, problem.Conflict, "nothing to replay"},
		"no explicit choice":  {twice, b.oncall, func(o *replay.ReviewOrder) { o.AcceptRepeat = false }, problem.Invalid, "twice"},
		"ordered already":     {scheduled, b.oncall, nil, problem.Conflict, "confirmed already"},
		"an operator":         {id, b.operator, nil, problem.Forbidden, "run_batch"},
		"another environment": {id, b.stranger, nil, problem.NotFound, "no batch"},
		"a batch of nobody":   {9999, b.oncall, func(o *replay.ReviewOrder) { o.Batch = 9999 }, problem.NotFound, "no batch"},
	} {
		o := replay.ReviewOrder{Batch: c.batch, Reason: "the bug is fixed", Canary: 0, AcceptRepeat: true}
		if c.batch != 9999 {
			o.PlanHash = b.planHash(t, c.batch)
		}
		if c.with != nil {
			c.with(&o)
		}
		b.refused(t, name, c.code, c.words, func() error {
			_, err := b.svc.Review(t.Context(), c.by, o)
			return err
		})
	}
	b.clock = b.clock.Add(time.Hour + time.Second)
	b.refused(t, "stale plan", problem.Conflict, "more than an hour old", func() error {
		_, err := b.svc.Review(t.Context(), b.oncall, b.reviewOrder(t, id))
		return err
	})
}

func TestRisk(t *testing.T) {
	t.Parallel()
	with := func(kinds ...string) *jobtype.Type {
		typ := &jobtype.Type{}
		for _, k := range kinds {
			typ.SideEffects = append(typ.SideEffects, jobtype.SideEffect{Kind: k, Text: "does " + k})
		}
		return typ
	}
	for want, got := range map[string]string{
		"may send 32 e-mails": replay.Risk(with("email"), 32),
		"may send 1 e-mail":   replay.Risk(with("email"), 1),
		"may send 12,345 e-mails and call 12,345 webhooks":                                     replay.Risk(with("email", "webhook"), 12345),
		"may move money 32 times (does money)":                                                 replay.Risk(with("money"), 32),
		"may move money once (does money), call 1 webhook and write outside once (does write)": replay.Risk(with("money", "webhook", "write"), 1),
		"changes nothing outside":                                                              replay.Risk(with("none"), 4),
		"may do anything: nobody declared what the type does":                                  replay.Risk(nil, 4),
	} {
		if got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	if got := replay.Phrase(12345, "charge_card", "production"); got != "replay 12345 charge_card in production" {
		t.Error(got)
	}
	d := replay.ReviewDefaults(&jobtype.Type{}, 4)
	if d.StartAfter != 5*time.Minute || d.Canary != 4 || d.RatePerMinute != jobtype.DefaultPerMinute {
		t.Errorf("defaults: %+v", d)
	}
}
