package rbac_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/rbac"
)

func TestCreateUserRefuses(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.user(t, "kim@example.com", rbac.Grant{Role: rbac.Admin})
	_, admin := b.signIn(t, "kim@example.com")
	b.user(t, "viewer@example.com", rbac.Grant{Role: rbac.Viewer})
	_, viewer := b.signIn(t, "viewer@example.com")
	ok := rbac.NewUser{Email: "new@example.com", Passphrase: passphrase, Grants: []rbac.Grant{{Role: rbac.Viewer}}}
	cases := map[string]struct {
		p    *rbac.Principal
		edit func(*rbac.NewUser)
		code problem.Code
	}{
		"no principal": {nil, func(*rbac.NewUser) {}, problem.Unauthorized},
		"viewer":       {viewer, func(*rbac.NewUser) {}, problem.Forbidden},
		"taken":        {admin, func(n *rbac.NewUser) { n.Email = "KIM@example.com" }, problem.Conflict},
		"no address":   {admin, func(n *rbac.NewUser) { n.Email = "kim" }, problem.Invalid},
		"display name": {admin, func(n *rbac.NewUser) { n.Email = "Kim <k@example.com>" }, problem.Invalid},
		"short":        {admin, func(n *rbac.NewUser) { n.Passphrase = "short" }, problem.Invalid},
		"no role":      {admin, func(n *rbac.NewUser) { n.Grants = nil }, problem.Invalid},
		"odd role":     {admin, func(n *rbac.NewUser) { n.Grants = []rbac.Grant{{Role: "root"}} }, problem.Invalid},
		"nul":          {admin, func(n *rbac.NewUser) { n.Name = "a\x00" }, problem.Invalid},
	}
	for name, c := range cases {
		n := ok
		c.edit(&n)
		if _, err := b.people.CreateUser(context.Background(), c.p, n); problem.CodeOf(err) != c.code {
			t.Errorf("%s: %v, want %s", name, err, c.code)
		}
	}
	b.clock.advance(6 * time.Minute)
	if _, err := b.people.CreateUser(context.Background(), admin, ok); !problem.Is(err, problem.StepUpMissing) {
		t.Errorf("without step-up: %v", err)
	}
	if n := b.count(t, `SELECT count(*) FROM redrive.users`); n != 2 {
		t.Errorf("%d users", n)
	}
	if n := b.entries(t, "user.create"); n != 2 {
		t.Errorf("%d entries for 2 users", n)
	}
}

func TestARevokedRoleCountsAtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := context.Background()
	id := b.user(t, "kim@example.com", rbac.Grant{Role: rbac.OnCall}, rbac.Grant{Role: rbac.Operator, Environment: "staging"})
	x, p := b.signIn(t, "kim@example.com")
	if !p.Can(rbac.RunBatch, "production", "") {
		t.Fatal("on-call may not run batches")
	}
	if err := b.people.RemoveGrant(ctx, b.root, id, rbac.Grant{Role: rbac.OnCall}, "left the rota"); err != nil {
		t.Fatal(err)
	}
	p, err := b.people.Person(ctx, x)
	if err != nil {
		t.Fatal(err)
	}
	if p.Can(rbac.RunBatch, "production", "") || p.Can(rbac.Triage, "production", "") || !p.Can(rbac.Triage, "staging", "") {
		t.Errorf("old rights stay: %+v", p.Grants)
	}
	if alive, _ := b.people.Store().Alive(ctx, x); alive {
		t.Error("the session outlived a change of roles")
	}
	if err := b.people.RemoveGrant(ctx, b.root, id, rbac.Grant{Role: rbac.OnCall}, ""); !problem.Is(err, problem.NotFound) {
		t.Errorf("twice: %v", err)
	}
	if n := b.entries(t, "grant.remove"); n != 1 {
		t.Errorf("%d entries", n)
	}
}

func TestDisabling(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := context.Background()
	b.user(t, "boss@example.com", rbac.Grant{Role: rbac.Admin})
	id := b.user(t, "kim@example.com")
	x, p := b.signIn(t, "kim@example.com")
	if err := b.people.DisableUser(ctx, p, id, ""); !problem.Is(err, problem.Forbidden) {
		t.Errorf("an operator disables: %v", err)
	}
	secret, _, err := b.people.MintToken(ctx, b.root, rbac.NewToken{Name: "ci", OwnerID: id, Roles: []rbac.Role{rbac.Operator}})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.people.DisableUser(ctx, b.root, id, "left"); err != nil {
		t.Fatal(err)
	}
	if p, err := b.people.Person(ctx, x); p != nil || err != nil {
		t.Errorf("a disabled person is somebody: %v, %v", p, err)
	}
	if _, err := b.people.Bearer(ctx, secret); !problem.Is(err, problem.Unauthorized) {
		t.Errorf("their token works: %v", err)
	}
	if n := b.count(t, `SELECT count(*) FROM redrive.sessions WHERE user_id = $1`, id); n != 0 {
		t.Errorf("%d sessions left", n)
	}
	if err := b.people.EnableUser(ctx, b.root, id, "came back"); err != nil {
		t.Fatal(err)
	}
	b.signIn(t, "kim@example.com")
}

func TestTheLastAdministratorStays(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := context.Background()
	one := b.user(t, "one@example.com", rbac.Grant{Role: rbac.Admin})
	two := b.user(t, "two@example.com", rbac.Grant{Role: rbac.Admin})
	errs := make([]error, 2)
	var wg sync.WaitGroup
	for i, id := range []int64{one, two} {
		wg.Go(func() { errs[i] = b.people.DisableUser(ctx, b.root, id, "both at once") })
	}
	wg.Wait()
	if (errs[0] == nil) == (errs[1] == nil) {
		t.Errorf("want exactly one to be refused: %v, %v", errs[0], errs[1])
	}
	left := one
	if errs[0] == nil {
		left = two
	}
	if err := b.people.RemoveGrant(ctx, b.root, left, rbac.Grant{Role: rbac.Admin}, ""); !problem.Is(err, problem.Conflict) {
		t.Errorf("the last administrator went: %v", err)
	}
}

func TestListUsers(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := context.Background()
	b.user(t, "b@example.com", rbac.Grant{Role: rbac.Admin})
	b.user(t, "a@example.com", rbac.Grant{Role: rbac.OnCall, Environment: "staging", JobType: "charge_card"})
	b.signIn(t, "a@example.com")
	users, err := b.people.ListUsers(ctx, b.root, 10)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, u := range users {
		got = append(got, u.Email, u.Grants[0].String())
	}
	want := []string{"a@example.com", "oncall for charge_card in staging", "b@example.com", "admin"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if users[0].Sessions != 1 || users[0].LastSeenAt == nil || users[1].Sessions != 0 {
		t.Errorf("sessions miscounted: %+v", users)
	}
	if _, err := b.people.ListUsers(ctx, &rbac.Principal{Grants: []rbac.Grant{{Role: rbac.Auditor}}}, 10); !problem.Is(err, problem.Forbidden) {
		t.Errorf("an auditor lists users: %v", err)
	}
}
