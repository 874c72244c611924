package replay_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/dlq/replay"
	"github.com/redrive-dlq/redrive/rbac"
)

const holdDestination = "http://127.0.0.1:1/x"

func TestHoldsArePlacedOnceAndLifted(t *testing.T) {
	t.Parallel()
	b := ordersSetup(t)
	ids := make([]int64, 10)
	var wg sync.WaitGroup
	for i := range ids { // everybody clicks
		wg.Go(func() {
			var err error
			if ids[i], err = b.svc.PlaceHold(context.Background(), b.operator, replay.Hold{Environment: "production", JobType: "charge_card"}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	id := ids[0]
	for _, other := range ids {
		if other != id || id == 0 {
			t.Fatalf("holds %v", ids)
		}
	}
	if b.entries(t, "hold.place") != 1 {
		t.Errorf("%d entries of one hold", b.entries(t, "hold.place"))
	}
	holds, err := b.svc.Holds(t.Context(), b.oncall)
	if err != nil || len(holds) != 1 || holds[0].JobType != "charge_card" || holds[0].PlacedBy != "operator3@demo.test" || holds[0].Reason != "" {
		t.Fatalf("%+v, %v", holds, err)
	}
	if err := b.svc.ExplainHold(t.Context(), b.second, id, "the provider charges twice"); err != nil {
		t.Fatal(err)
	}
	b.refused(t, "explained twice", problem.Conflict, "has its reason", func() error { return b.svc.ExplainHold(t.Context(), b.second, id, "another one") })
	b.refused(t, "lifted without a reason", problem.Invalid, "reason", func() error { return b.svc.LiftHold(t.Context(), b.second, id, "") })
	b.refused(t, "lifted by a viewer", problem.Forbidden, "hold_replays", func() error { return b.svc.LiftHold(t.Context(), principal(9, rbac.Viewer, ""), id, "a reason") })
	b.refused(t, "lifted from elsewhere", problem.NotFound, "no hold", func() error { return b.svc.LiftHold(t.Context(), b.stranger, id, "a reason") })
	b.refused(t, "lifted, nobody's", problem.NotFound, "no hold", func() error { return b.svc.LiftHold(t.Context(), b.second, 999, "a reason") })
	if err := b.svc.LiftHold(t.Context(), b.approver, id, "they fixed it"); err != nil {
		t.Fatal(err)
	}
	b.refused(t, "lifted twice", problem.Conflict, "lifted already", func() error { return b.svc.LiftHold(t.Context(), b.second, id, "a reason") })
	if holds, err := b.svc.Holds(t.Context(), b.oncall); err != nil || len(holds) != 0 {
		t.Errorf("%+v, %v", holds, err)
	}
	n := b.count(t, `SELECT count(*) FROM redrive.holds WHERE lifted_by = 'approver4@demo.test' AND lift_reason = 'they fixed it' AND reason = 'the provider charges twice'`)
	if n != 1 || b.entries(t, "hold.explain") != 1 || b.entries(t, "hold.lift") != 1 {
		t.Error("row and log don't say who explained and lifted it")
	}
	if again, err := b.svc.PlaceHold(t.Context(), b.oncall, replay.Hold{Environment: "production", JobType: "charge_card", Reason: "it came back"}); err != nil || again == id {
		t.Errorf("held again: %d, %v", again, err)
	}
}

func TestHoldRefuses(t *testing.T) {
	t.Parallel()
	b := ordersSetup(t)
	mails := &rbac.Principal{UserID: 8, Email: "mails@demo.test", Grants: []rbac.Grant{{Role: rbac.Operator, Environment: "production", JobType: "send_welcome_email"}}}
	for name, c := range map[string]struct {
		by    *rbac.Principal
		hold  replay.Hold
		code  problem.Code
		words string
	}{
		"a viewer":                 {principal(9, rbac.Viewer, ""), replay.Hold{Environment: "production"}, problem.Forbidden, "hold_replays"},
		"elsewhere":                {b.stranger, replay.Hold{Environment: "production"}, problem.Forbidden, "hold_replays"},
		"all, by one of a type":    {mails, replay.Hold{Environment: "production"}, problem.Forbidden, "single types"},
		"a destination, by one":    {mails, replay.Hold{Environment: "production", Destination: holdDestination}, problem.Forbidden, "single types"},
		"another's type":           {mails, replay.Hold{Environment: "production", JobType: "charge_card"}, problem.Forbidden, "hold_replays"},
		"no environment":           {b.oncall, replay.Hold{}, problem.Invalid, "environment"},
		"an unknown environment":   {b.oncall, replay.Hold{Environment: "prod"}, problem.Invalid, "environment"},
		"an unknown type":          {b.oncall, replay.Hold{Environment: "production", JobType: "charge_crad"}, problem.Invalid, "no type"},
		"an unknown destination":   {b.oncall, replay.Hold{Environment: "production", Destination: "http://x"}, problem.Invalid, "destination"},
		"a type and a destination": {b.oncall, replay.Hold{Environment: "production", JobType: "charge_card", Destination: holdDestination}, problem.Invalid, "not both"},
		"a reason that isn't one":  {b.oncall, replay.Hold{Environment: "production", Reason: "x"}, problem.Invalid, "reason"},
	} {
		b.refused(t, name, c.code, c.words, func() error {
			_, err := b.svc.PlaceHold(t.Context(), c.by, c.hold)
			return err
		})
	}
	if _, err := b.svc.PlaceHold(t.Context(), mails, replay.Hold{Environment: "production", JobType: "send_welcome_email"}); err != nil {
		t.Errorf("their own type: %v", err)
	}
}

func TestWhatAHoldCovers(t *testing.T) {
	t.Parallel()
	b := ordersSetup(t)
	for name, c := range map[string]struct {
		hold replay.Hold
		held string // of mail and card in production, and mail in staging
	}{
		"an environment":         {replay.Hold{Environment: "production"}, "yes yes no"},
		"a type":                 {replay.Hold{Environment: "production", JobType: "send_welcome_email"}, "yes no no"},
		"a destination":          {replay.Hold{Environment: "production", Destination: holdDestination}, "yes yes no"},
		"another environment":    {replay.Hold{Environment: "staging"}, "no no yes"},
		"a type, the other one":  {replay.Hold{Environment: "production", JobType: "charge_card"}, "no yes no"},
		"a destination, staging": {replay.Hold{Environment: "staging", Destination: holdDestination}, "no no yes"},
	} {
		id, err := b.svc.PlaceHold(t.Context(), b.oncall, c.hold)
		if err != nil {
			t.Fatal(err)
		}
		var held []string
		for _, of := range [][2]string{{"production", "send_welcome_email"}, {"production", "charge_card"}, {"staging", "send_welcome_email"}} {
			h, err := replay.HeldBy(t.Context(), b.pool, of[0], of[1], holdDestination)
			if err != nil || (h != nil && h.ID != id) {
				t.Fatalf("%+v, %v", h, err)
			}
			held = append(held, map[bool]string{true: "yes", false: "no"}[h != nil])
		}
		if got := strings.Join(held, " "); got != c.held {
			t.Errorf("%s: %s, want %s", name, got, c.held)
		}
		if err := b.svc.LiftHold(t.Context(), b.oncall, id, "next"); err != nil {
			t.Fatal(err)
		}
	}
}
