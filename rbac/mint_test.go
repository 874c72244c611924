package rbac_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/rbac"
)

func TestMintStepUp(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := t.Context()
	b.user(t, "kim@example.com", rbac.Grant{Role: rbac.OnCall}, rbac.Grant{Role: rbac.Approver, Environment: "staging"})
	_, kim := b.signIn(t, "kim@example.com")
	signedIn := b.clock.now()
	b.clock.advance(3 * time.Minute)
	secret, made, err := b.people.MintStepUp(ctx, kim, rbac.StepUpToken{Name: " replay script ", Roles: []rbac.Role{rbac.OnCall}, Environment: "production"})
	if err != nil {
		t.Fatal(err)
	}
	p, err := b.people.Bearer(ctx, secret)
	if err != nil {
		t.Fatal(err)
	}
	if p.UserID != kim.UserID || p.TokenID != made.ID || p.TokenName != "replay script" || !p.AuthenticatedAt.Equal(signedIn) {
		t.Errorf("wrong principal: %+v", p)
	}
	if !p.Can(rbac.RunBatch, "production", "") || p.Can(rbac.RunBatch, "staging", "") || p.Can(rbac.ApproveBatch, "staging", "") {
		t.Errorf("wrong rights: %+v", p.Grants)
	}
	b.clock.advance(50 * time.Minute)
	if err := b.people.RequireStepUp(p); err != nil {
		t.Errorf("53 minutes after the passphrase: %v", err)
	}
	if _, _, err := b.people.MintStepUp(ctx, p, rbac.StepUpToken{Name: "again"}); !problem.Is(err, problem.Forbidden) {
		t.Errorf("a token minted another: %v", err)
	}
	b.clock.advance(7 * time.Minute) // an hour after the passphrase, not after the minting
	if _, err := b.people.Bearer(ctx, secret); !problem.Is(err, problem.Unauthorized) {
		t.Errorf("an hour after the passphrase it still works: %v", err)
	}
	if err := b.people.RequireStepUp(p); !problem.Is(err, problem.StepUpMissing) {
		t.Errorf("an hour after the passphrase it counts as stepped up: %v", err)
	}
	if b.entries(t, "token.mint") != 1 {
		t.Error("the minting isn't in the log")
	}
	if n := b.count(t, `SELECT count(*) FROM redrive.audit_entries WHERE position($1 in body) > 0`, secret); n != 0 {
		t.Error("the secret is in the audit log")
	}
}

func TestMintStepUpRefuses(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.user(t, "kim@example.com", rbac.Grant{Role: rbac.Operator, Environment: "staging"})
	_, kim := b.signIn(t, "kim@example.com")
	for name, c := range map[string]struct {
		token rbac.StepUpToken
		code  problem.Code
	}{
		"no name":           {rbac.StepUpToken{}, problem.Invalid},
		"more than an hour": {rbac.StepUpToken{Name: "x", ExpiresIn: 61 * time.Minute}, problem.Invalid},
		"a role of others":  {rbac.StepUpToken{Name: "x", Roles: []rbac.Role{rbac.OnCall}}, problem.Invalid},
		"elsewhere":         {rbac.StepUpToken{Name: "x", Environment: "production"}, problem.Invalid},
	} {
		if _, _, err := b.people.MintStepUp(t.Context(), kim, c.token); !problem.Is(err, c.code) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, p := range map[string]*rbac.Principal{"nobody": nil, "the command line": b.root} {
		if _, _, err := b.people.MintStepUp(t.Context(), p, rbac.StepUpToken{Name: "x"}); !problem.Is(err, problem.Forbidden) {
			t.Errorf("%s: %v", name, err)
		}
	}
	b.clock.advance(rbac.StepUpFor)
	if _, _, err := b.people.MintStepUp(t.Context(), kim, rbac.StepUpToken{Name: "x"}); !problem.Is(err, problem.StepUpMissing) {
		t.Errorf("without a fresh passphrase: %v", err)
	}
	if n := b.count(t, `SELECT count(*) FROM redrive.tokens`); n != 0 {
		t.Errorf("%d tokens of refused requests", n)
	}
}

func TestAtMostFiveStepUpTokens(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.user(t, "kim@example.com")
	b.user(t, "lee@example.com")
	_, kim := b.signIn(t, "kim@example.com")
	_, lee := b.signIn(t, "lee@example.com")
	var made atomic.Int32
	var wg sync.WaitGroup
	for range 12 {
		wg.Go(func() {
			_, _, err := b.people.MintStepUp(t.Context(), kim, rbac.StepUpToken{Name: "script"})
			if err == nil {
				made.Add(1)
			} else if !problem.Is(err, problem.Conflict) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	own, err := b.people.StepUpTokens(t.Context(), kim)
	if err != nil || made.Load() != 5 || len(own) != 5 {
		t.Fatalf("minted %d, living %d, %v", made.Load(), len(own), err)
	}
	if err := b.people.RevokeStepUp(t.Context(), lee, own[0].ID); !problem.Is(err, problem.NotFound) {
		t.Errorf("somebody else's: %v", err)
	}
	if err := b.people.RevokeStepUp(t.Context(), kim, own[0].ID); err != nil {
		t.Fatal(err)
	}
	if err := b.people.RevokeStepUp(t.Context(), kim, own[0].ID); !problem.Is(err, problem.NotFound) {
		t.Errorf("twice: %v", err)
	}
	if _, _, err := b.people.MintStepUp(t.Context(), kim, rbac.StepUpToken{Name: "script"}); err != nil {
		t.Errorf("after one was revoked: %v", err)
	}
	if b.entries(t, "token.mint") != 6 || b.entries(t, "token.revoke") != 1 {
		t.Error("entries are missing")
	}
}
