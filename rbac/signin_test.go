package rbac_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/rbac"
)

func TestSignInWritesASessionAndItsEntry(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.user(t, "Kim@Example.com")
	x, p := b.signIn(t, " KIM@example.COM ")
	if p.Email != "kim@example.com" || !p.Can(rbac.Triage, "production", "charge_card") || p.Can(rbac.Administer, "", "") {
		t.Errorf("wrong principal: %+v", p)
	}
	if x.ID == "" || p.SessionID != x.ID || !p.SteppedUp(b.clock.now()) {
		t.Errorf("session not usable: %+v", x)
	}
	if n := b.entries(t, "session.sign_in"); n != 1 {
		t.Errorf("%d entries for one sign-in", n)
	}
	if n := b.count(t, `SELECT count(*) FROM redrive.sessions WHERE length(token_hash) = 32`); n != 1 {
		t.Errorf("%d sessions", n)
	}
}

func TestUnknownWrongAndDisabledLookTheSame(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.user(t, "kim@example.com")
	gone := b.user(t, "gone@example.com")
	if err := b.people.DisableUser(context.Background(), b.root, gone, "left"); err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, email := range []string{"kim@example.com", "nobody@example.com", "gone@example.com", "no address at all", ""} {
		pass := "wrong wrong wrong wrong"
		if email == "gone@example.com" {
			pass = passphrase
		}
		before := b.hasher.Calls()
		_, err := b.people.SignIn(context.Background(), b.attempt(email, pass))
		if !problem.Is(err, problem.Unauthorized) {
			t.Errorf("%s: %v", email, err)
			continue
		}
		texts = append(texts, err.Error())
		if n := b.hasher.Calls() - before; n != 1 {
			t.Errorf("%s cost %d hashes", email, n)
		}
	}
	for _, text := range texts {
		if text != texts[0] {
			t.Errorf("answers differ: %q and %q", text, texts[0])
		}
	}
	if n := b.count(t, `SELECT count(*) FROM redrive.audit_entries WHERE body LIKE '%nobody@%' OR body LIKE '%wrong wrong%'`); n != 0 {
		t.Error("what a stranger typed stands in the audit log")
	}
	if n := b.entries(t, "session.refused"); n != 5 {
		t.Errorf("%d entries for 5 refusals", n)
	}
}

func TestAccountThrottle(t *testing.T) {
	t.Parallel()
	for _, email := range []string{"kim@example.com", "nobody@example.com"} {
		t.Run(email, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.user(t, "kim@example.com")
			try := func(pass string) error {
				_, err := b.people.SignIn(context.Background(), b.attempt(email, pass))
				return err
			}
			for i := range 5 {
				if err := try("guess"); !problem.Is(err, problem.Unauthorized) {
					t.Fatalf("try %d: %v", i, err)
				}
			}
			calls := b.hasher.Calls()
			err := try(passphrase)
			var throttled *rbac.Throttled
			if !problem.Is(err, problem.TooMany) || !errors.As(err, &throttled) || throttled.After != 30*time.Second {
				t.Fatalf("not throttled: %v", err)
			}
			if !strings.Contains(err.Error(), "31 seconds") {
				t.Errorf("the message names no time: %v", err)
			}
			if b.hasher.Calls() != calls {
				t.Error("a throttled try was hashed")
			}
			for range 40 {
				_ = try("guess")
			}
			if n := b.entries(t, "session.refused"); n > 6 {
				t.Errorf("%d audit entries from a guesser", n)
			}
			b.clock.advance(31 * time.Second)
			err = try(passphrase)
			if email == "kim@example.com" && err != nil {
				t.Errorf("after the wait: %v", err)
			}
			if email != "kim@example.com" && !problem.Is(err, problem.Unauthorized) {
				t.Errorf("after the wait: %v", err)
			}
		})
	}
}

func TestASuccessClearsTheAccount(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.user(t, "kim@example.com")
	for range 3 {
		for range 4 {
			_, _ = b.people.SignIn(context.Background(), b.attempt("kim@example.com", "guess"))
		}
		b.signIn(t, "kim@example.com") // the fifth, right one
	}
	if n := b.count(t, `SELECT failures FROM redrive.login_failures WHERE subject = 'address:192.0.2.7'`); n != 12 {
		t.Errorf("the address has %d failures, want the 12 wrong ones", n)
	}
}

func TestAddressThrottle(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.user(t, "kim@example.com")
	from := func(ip, email, pass string) error {
		a := b.attempt(email, pass)
		a.IP = ip
		_, err := b.people.SignIn(context.Background(), a)
		return err
	}
	for i := range 30 {
		// Other addresses of the same /64 count together.
		if err := from("2001:db8::"+strconv.Itoa(i+1), "user"+strconv.Itoa(i)+"@example.com", "guess"); !problem.Is(err, problem.Unauthorized) {
			t.Fatalf("try %d: %v", i, err)
		}
	}
	if err := from("2001:db8::ffff", "kim@example.com", passphrase); !problem.Is(err, problem.TooMany) {
		t.Errorf("the address isn't blocked: %v", err)
	}
	if err := from("2001:db8:1::1", "kim@example.com", passphrase); err != nil {
		t.Errorf("another address is blocked: %v", err)
	}
}

func TestParallelGuessesAreCountedBeforeTheyAreChecked(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.user(t, "kim@example.com")
	var checked atomic.Int64
	var wg sync.WaitGroup
	for range 30 {
		wg.Go(func() {
			_, err := b.people.SignIn(context.Background(), b.attempt("kim@example.com", "guess"))
			if problem.Is(err, problem.Unauthorized) {
				checked.Add(1)
			}
		})
	}
	wg.Wait()
	if n := checked.Load(); n != 5 {
		t.Errorf("%d of 30 parallel guesses were checked, want 5", n)
	}
}

func TestStepUpMovesTheSession(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := context.Background()
	b.user(t, "kim@example.com")
	x, p := b.signIn(t, "kim@example.com")
	b.clock.advance(10 * time.Minute)
	if p.SteppedUp(b.clock.now()) {
		t.Fatal("a passphrase of 10 minutes ago counts as fresh")
	}
	if _, err := b.people.StepUp(ctx, p, x, "guess"); !problem.Is(err, problem.Unauthorized) {
		t.Errorf("wrong passphrase: %v", err)
	}
	renewed, err := b.people.StepUp(ctx, p, x, passphrase)
	if err != nil {
		t.Fatal(err)
	}
	store := b.people.Store()
	if alive, _ := store.Alive(ctx, x); alive {
		t.Error("the old id still works")
	}
	if alive, _ := store.Alive(ctx, renewed); !alive {
		t.Error("the new id doesn't work")
	}
	if !renewed.CreatedAt.Equal(x.CreatedAt) {
		t.Error("a step-up made the session younger")
	}
	if _, err := b.people.StepUp(ctx, p, x, passphrase); !problem.Is(err, problem.Unauthorized) {
		t.Errorf("an ended session stepped up: %v", err)
	}
}

func TestSessionsOfOnePersonAreBounded(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.user(t, "kim@example.com")
	for range 25 {
		b.clock.advance(time.Second)
		b.signIn(t, "kim@example.com")
	}
	if n := b.count(t, `SELECT count(*) FROM redrive.sessions`); n != 20 {
		t.Errorf("%d sessions, want 20", n)
	}
}
