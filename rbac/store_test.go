package rbac_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/rbac"
)

// cookieOf saves the session and returns the cookie that a browser gets.
func cookieOf(t *testing.T, b *bundle, x *rbac.Session) *http.Cookie {
	t.Helper()
	r, w := httptest.NewRequest(http.MethodGet, "/", nil), httptest.NewRecorder()
	store := b.people.Store()
	sess, err := store.Get(r, rbac.CookieName)
	if err != nil {
		t.Fatal(err)
	}
	store.Adopt(sess, x)
	if err := sess.Save(r, w); err != nil {
		t.Fatal(err)
	}
	cookies := w.Result().Cookies()
	if len(cookies) != 1 {
		t.Fatalf("%d cookies", len(cookies))
	}
	return cookies[0]
}

func request(cookie *http.Cookie) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	if cookie != nil {
		r.AddCookie(cookie)
	}
	return r
}

func TestCookieAttributes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.user(t, "kim@example.com")
	x, _ := b.signIn(t, "kim@example.com")
	c := cookieOf(t, b, x)
	if c.Name != "__Host-redrive" || !c.Secure || !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.Path != "/" || c.Domain != "" || c.MaxAge != 0 {
		t.Errorf("unsafe cookie: %s", c.Raw)
	}
	if len(c.Value) != 43 {
		t.Errorf("the token has %d characters, want 43 (256 bits)", len(c.Value))
	}
	if n := b.count(t, `SELECT count(*) FROM redrive.sessions s WHERE s::text LIKE '%' || $1 || '%' OR encode(s.token_hash, 'escape') = $1`, c.Value); n != 0 {
		t.Error("the token itself is stored")
	}
}

func TestSessionValuesSurvive(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.user(t, "kim@example.com")
	x, _ := b.signIn(t, "kim@example.com")
	store, cookie := b.people.Store(), cookieOf(t, b, x)
	sess, err := store.New(request(cookie), rbac.CookieName)
	if err != nil || rbac.SessionOf(sess) == nil {
		t.Fatalf("no session: %v", err)
	}
	sess.AddFlash("done <b>")
	w := httptest.NewRecorder()
	if err := store.Save(request(cookie), w, sess); err != nil {
		t.Fatal(err)
	}
	if len(w.Result().Cookies()) != 0 {
		t.Error("the cookie was sent again without need")
	}
	sess, err = store.New(request(cookie), rbac.CookieName)
	if err != nil {
		t.Fatal(err)
	}
	if flashes := sess.Flashes(); len(flashes) != 1 || flashes[0] != "done <b>" {
		t.Errorf("flashes %v", flashes)
	}
	sess.Values["big"] = strings.Repeat("x", 10_000)
	if err := store.Save(request(cookie), httptest.NewRecorder(), sess); err == nil {
		t.Error("a session took 10 kB")
	}
	anonymous, err := store.New(request(nil), rbac.CookieName)
	if err != nil {
		t.Fatal(err)
	}
	anonymous.AddFlash("x")
	if err := store.Save(request(nil), httptest.NewRecorder(), anonymous); !problem.Is(err, problem.Unauthorized) {
		t.Errorf("a stranger's session was kept: %v", err)
	}
	if n := b.count(t, `SELECT count(*) FROM redrive.sessions`); n != 1 {
		t.Errorf("%d sessions", n)
	}
}

func TestIdleAndAbsoluteEnd(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.user(t, "kim@example.com")
	store := b.people.Store()
	alive := func(c *http.Cookie) bool {
		sess, err := store.New(request(c), rbac.CookieName)
		if err != nil {
			t.Fatal(err)
		}
		return rbac.SessionOf(sess) != nil
	}
	x, _ := b.signIn(t, "kim@example.com")
	idle := cookieOf(t, b, x)
	b.clock.advance(29 * time.Minute)
	if !alive(idle) {
		t.Fatal("ended before 30 idle minutes")
	}
	b.clock.advance(29 * time.Minute)
	if ok, _ := store.Alive(context.Background(), x); !ok { // a stream looks, without use
		t.Fatal("ended although it was used 29 minutes ago")
	}
	b.clock.advance(time.Minute)
	if alive(idle) {
		t.Error("alive after 30 idle minutes")
	}
	x, _ = b.signIn(t, "kim@example.com")
	busy := cookieOf(t, b, x)
	for range 11*60/20 + 2 {
		b.clock.advance(20 * time.Minute)
		if !alive(busy) {
			t.Fatalf("a busy session ended at %v", b.clock.now())
		}
	}
	b.clock.advance(20 * time.Minute)
	if alive(busy) {
		t.Error("alive after 12 hours")
	}
	if err := b.people.PurgeSessions(context.Background()); err != nil {
		t.Fatal(err)
	}
	if n := b.count(t, `SELECT count(*) FROM redrive.sessions`); n != 0 {
		t.Errorf("%d expired sessions left", n)
	}
}

func TestOddCookiesAreNobody(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, v := range []string{"", "x", strings.Repeat("A", 43), strings.Repeat("A", 5000), "ÿ", "'; DROP TABLE redrive.users"} {
		sess, err := b.people.Store().New(request(&http.Cookie{Name: rbac.CookieName, Value: v}), rbac.CookieName)
		if err != nil || rbac.SessionOf(sess) != nil {
			t.Errorf("cookie %q: %v", v, err)
		}
	}
}

func TestABrokenDatabaseIsNoSignOut(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.user(t, "kim@example.com")
	x, _ := b.signIn(t, "kim@example.com")
	cookie := cookieOf(t, b, x)
	b.pool.Close()
	if _, err := b.people.Store().New(request(cookie), rbac.CookieName); err == nil {
		t.Error("an unreachable database looks like nobody signed in")
	}
}

func TestOwnSessions(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := context.Background()
	b.user(t, "kim@example.com")
	b.user(t, "lee@example.com")
	one, p := b.signIn(t, "kim@example.com")
	two, _ := b.signIn(t, "kim@example.com")
	three, _ := b.signIn(t, "kim@example.com")
	other, _ := b.signIn(t, "lee@example.com")
	list, err := b.people.ListSessions(ctx, p)
	if err != nil || len(list) != 3 {
		t.Fatalf("%d sessions, %v", len(list), err)
	}
	for _, id := range []string{other.ID, "nonsense", ""} {
		if err := b.people.EndSession(ctx, p, id); !problem.Is(err, problem.NotFound) {
			t.Errorf("ended %q: %v", id, err)
		}
	}
	if err := b.people.EndSession(ctx, p, two.ID); err != nil {
		t.Fatal(err)
	}
	n, err := b.people.EndOtherSessions(ctx, p)
	if err != nil || n != 1 {
		t.Errorf("ended %d others, %v", n, err)
	}
	for x, want := range map[*rbac.Session]bool{one: true, two: false, three: false, other: true} {
		if got, _ := b.people.Store().Alive(ctx, x); got != want {
			t.Errorf("session of user %d alive: %v", x.UserID, got)
		}
	}
	if b.entries(t, "session.end") != 1 || b.entries(t, "session.end_others") != 1 {
		t.Error("entries are missing")
	}
}
