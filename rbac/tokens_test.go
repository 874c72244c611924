package rbac_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/rbac"
)

func TestMintUseRevoke(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := context.Background()
	id := b.user(t, "kim@example.com", rbac.Grant{Role: rbac.OnCall}, rbac.Grant{Role: rbac.Operator, Environment: "staging"})
	secret, token, err := b.people.MintToken(ctx, b.root, rbac.NewToken{Name: "ci", OwnerID: id,
		Roles: []rbac.Role{rbac.OnCall}, Environment: "staging", ExpiresIn: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(secret, rbac.TokenPrefix) || len(secret) < 40 {
		t.Errorf("odd token of %d characters", len(secret))
	}
	p, err := b.people.Bearer(ctx, secret)
	if err != nil {
		t.Fatal(err)
	}
	if p.TokenID != token || !p.Can(rbac.RunBatch, "staging", "") || p.Can(rbac.RunBatch, "production", "") || p.Can(rbac.Capture, "staging", "") {
		t.Errorf("wrong rights: %+v", p)
	}
	if p.SteppedUp(b.clock.now()) {
		t.Error("a token counts as stepped up")
	}
	if a := p.Actor(); a.Kind != "token" || !strings.Contains(a.Name, "ci of kim@example.com") {
		t.Errorf("actor %+v", a)
	}
	// The owner's rights bound the token's, at once.
	if err := b.people.RemoveGrant(ctx, b.root, id, rbac.Grant{Role: rbac.OnCall}, "rota"); err != nil {
		t.Fatal(err)
	}
	if p, err = b.people.Bearer(ctx, secret); err != nil || len(p.Grants) != 0 || p.Can(rbac.Read, "", "") {
		t.Errorf("more than the owner: %+v, %v", p, err)
	}
	b.clock.advance(time.Hour)
	if _, err = b.people.Bearer(ctx, secret); !problem.Is(err, problem.Unauthorized) {
		t.Errorf("an expired token works: %v", err)
	}
	if n := b.count(t, `SELECT count(*) FROM redrive.tokens WHERE encode(token_hash, 'escape') LIKE '%rdt%'`); n != 0 {
		t.Error("the secret is stored")
	}
	if n := b.count(t, `SELECT count(*) FROM redrive.audit_entries WHERE position($1 in body) > 0`, secret); n != 0 {
		t.Error("the secret is in the audit log")
	}
}

func TestRevokedTokensStop(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := context.Background()
	id := b.user(t, "kim@example.com")
	secret, token, err := b.people.MintToken(ctx, b.root, rbac.NewToken{Name: "in", OwnerID: id, Capture: true,
		Sources: []string{"app"}, DefaultEnvironment: "production"})
	if err != nil {
		t.Fatal(err)
	}
	p, err := b.people.Bearer(ctx, secret)
	if err != nil {
		t.Fatal(err)
	}
	if !p.CaptureOnly || p.Can(rbac.Read, "", "") || !p.Can(rbac.Capture, "staging", "") || !p.MayWriteSource("app") || p.MayWriteSource("river") {
		t.Errorf("wrong rights of a capture token: %+v", p)
	}
	if p.CaptureEnvironment() != "production" {
		t.Errorf("default environment %q", p.CaptureEnvironment())
	}
	if err := b.people.RevokeToken(ctx, b.root, token, "leaked"); err != nil {
		t.Fatal(err)
	}
	if _, err := b.people.Bearer(ctx, secret); !problem.Is(err, problem.Unauthorized) {
		t.Errorf("a revoked token works: %v", err)
	}
	if err := b.people.RevokeToken(ctx, b.root, token, ""); !problem.Is(err, problem.Conflict) {
		t.Errorf("twice: %v", err)
	}
	if b.entries(t, "token.mint") != 1 || b.entries(t, "token.revoke") != 1 {
		t.Error("entries are missing")
	}
}

func TestMintRefuses(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.user(t, "kim@example.com", rbac.Grant{Role: rbac.Viewer})
	cases := map[string]rbac.NewToken{
		"no name":       {OwnerID: id, Roles: []rbac.Role{rbac.Viewer}},
		"no right":      {Name: "x", OwnerID: id},
		"more than own": {Name: "x", OwnerID: id, Roles: []rbac.Role{rbac.Admin}},
		"no source":     {Name: "x", OwnerID: id, Capture: true},
		"for ever":      {Name: "x", OwnerID: id, Roles: []rbac.Role{rbac.Viewer}, ExpiresIn: 10 * rbac.MaxTokenLife},
		"outside":       {Name: "x", OwnerID: id, Capture: true, Sources: []string{"a"}, Environment: "staging", DefaultEnvironment: "production"},
	}
	for name, n := range cases {
		if _, _, err := b.people.MintToken(context.Background(), b.root, n); !problem.Is(err, problem.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, _, err := b.people.MintToken(context.Background(), b.root, rbac.NewToken{Name: "x", OwnerID: 999, Roles: []rbac.Role{rbac.Viewer}}); !problem.Is(err, problem.NotFound) {
		t.Errorf("nobody's token: %v", err)
	}
}

func TestSeedDemo(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := context.Background()
	b.seedDemo(t)
	b.seedDemo(t) // a second start changes nothing
	if n := b.count(t, `SELECT count(*) FROM redrive.users`); n != 6 {
		t.Errorf("%d users", n)
	}
	if n := b.count(t, `SELECT count(*) FROM redrive.tokens`); n != 7 {
		t.Errorf("%d tokens", n)
	}
	for _, role := range rbac.AllRoles() {
		x, err := b.people.SignIn(ctx, b.attempt(rbac.DemoEmail(role), rbac.DemoPassphrase))
		if err != nil {
			t.Fatalf("%s: %v", role, err)
		}
		person, err := b.people.Person(ctx, x)
		if err != nil {
			t.Fatal(err)
		}
		token, err := b.people.Bearer(ctx, rbac.DemoToken(role))
		if err != nil {
			t.Fatalf("token of %s: %v", role, err)
		}
		for _, p := range []*rbac.Principal{person, token} {
			if len(p.Grants) != 1 || p.Grants[0].Role != role || p.Can(rbac.Capture, "", "") {
				t.Errorf("%s: %+v", role, p)
			}
		}
	}
	p, err := b.people.Bearer(ctx, rbac.DemoIngestToken)
	if err != nil || !p.CaptureOnly || !p.Can(rbac.Capture, "staging", "") || p.CaptureEnvironment() != "production" || !p.MayWriteSource("ingest") {
		t.Errorf("ingest: %+v, %v", p, err)
	}
}

func TestBearerToken(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]string{
		"Bearer abc": "abc", "bearer  abc ": "abc", "Basic abc": "", "Bearer": "", "": "", "abc": "",
	} {
		if got := rbac.BearerToken(header); got != want {
			t.Errorf("BearerToken(%q) = %q", header, got)
		}
	}
}
