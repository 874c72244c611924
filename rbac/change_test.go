package rbac_test

import (
	"context"
	"testing"
	"time"

	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/rbac"
)

func TestChangePassphrase(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := context.Background()
	const next = "lantern copper meadow tin"
	id := b.user(t, "kim@example.com")
	x, p := b.signIn(t, "kim@example.com")
	other, _ := b.signIn(t, "kim@example.com")
	if _, err := b.people.ChangePassphrase(ctx, p, x, passphrase, "short"); !problem.Is(err, problem.Invalid) {
		t.Errorf("a short one: %v", err)
	}
	if _, err := b.people.ChangePassphrase(ctx, p, x, "guess", next); !problem.Is(err, problem.Unauthorized) {
		t.Errorf("a wrong old one: %v", err)
	}
	renewed, err := b.people.ChangePassphrase(ctx, p, x, passphrase, next)
	if err != nil {
		t.Fatal(err)
	}
	for x, want := range map[*rbac.Session]bool{x: false, other: false, renewed: true} {
		if got, _ := b.people.Store().Alive(ctx, x); got != want {
			t.Errorf("a session's life is %v, want %v", got, want)
		}
	}
	if _, err := b.people.SignIn(ctx, b.attempt("kim@example.com", passphrase)); !problem.Is(err, problem.Unauthorized) {
		t.Errorf("the old passphrase works: %v", err)
	}
	if _, err := b.people.SignIn(ctx, b.attempt("kim@example.com", next)); err != nil {
		t.Errorf("the new passphrase: %v", err)
	}
	if err := b.people.ResetPassphrase(ctx, p, id, passphrase); !problem.Is(err, problem.Forbidden) {
		t.Errorf("an operator resets: %v", err)
	}
	if err := b.people.ResetPassphrase(ctx, b.root, id, "kim@example.com"); !problem.Is(err, problem.Invalid) {
		t.Errorf("a reset to the address: %v", err)
	}
	if err := b.people.ResetPassphrase(ctx, b.root, id, passphrase); err != nil {
		t.Fatal(err)
	}
	if alive, _ := b.people.Store().Alive(ctx, renewed); alive {
		t.Error("a session outlived the reset")
	}
	b.clock.advance(time.Minute)
	b.signIn(t, "kim@example.com")
	if n := b.entries(t, "user.passphrase"); n != 2 {
		t.Errorf("%d entries", n)
	}
	if n := b.count(t, `SELECT count(*) FROM redrive.audit_entries WHERE body LIKE '%lantern%'`); n != 0 {
		t.Error("the passphrase is in the audit log")
	}
}
