package web

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/redrive-dlq/redrive/rbac"
)

func TestSignInPage(t *testing.T) {
	t.Parallel()
	b := setup(t)
	w := b.client().get("/login?next=/jobs/7?a=b")
	doc := page(t, w)
	if w.Code != http.StatusOK || doc.Find(`input[name=email][type=email]`).Length() != 1 || doc.Find(`input[name=password][type=password]`).Length() != 1 {
		t.Fatalf("%d\n%s", w.Code, w.Body)
	}
	if n := doc.Find(`[data-demo-account]`).Length(); n != 6 {
		t.Errorf("%d demo accounts", n)
	}
	if doc.Find(`input[name=next][value="/jobs/7?a=b"]`).Length() == 0 {
		t.Error("the page to go on to is lost")
	}
	nonce, _ := doc.Find("script").Attr("nonce")
	if nonce == "" || !strings.Contains(w.Header().Get("Content-Security-Policy"), "'nonce-"+nonce+"'") {
		t.Errorf("nonce %q isn't the policy's", nonce)
	}
	if doc.Find("[style], style").Length() != 0 || doc.Find("script:not([src])").Length() != 0 {
		t.Error("inline style or script")
	}
	if w := setup(t, func(c *Config) { c.Demo = false }).client().get("/login"); strings.Contains(w.Body.String(), rbac.DemoPassphrase) {
		t.Error("the demo's passphrase is offered outside the demo")
	}
}

func TestSignInRefusals(t *testing.T) {
	t.Parallel()
	b := setup(t)
	cl := b.client()
	var bodies []string
	for _, email := range []string{rbac.DemoEmail(rbac.Admin), "nobody@demo.test"} {
		w := cl.post("/login", "email", email, "password", canary, "next", "/jobs")
		if w.Code != http.StatusUnauthorized || len(cl.cookies) != 0 || strings.Contains(w.Body.String(), canary) {
			t.Errorf("%s: %d, cookies %v", email, w.Code, cl.cookies)
		}
		bodies = append(bodies, page(t, w).Find("[role=alert]").Text())
	}
	if bodies[0] != bodies[1] || bodies[0] == "" {
		t.Errorf("answers differ: %q, %q", bodies[0], bodies[1])
	}
	for range 6 {
		cl.post("/login", "email", "nobody@demo.test", "password", canary)
	}
	w := cl.post("/login", "email", "nobody@demo.test", "password", canary)
	if w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") == "" || !strings.Contains(page(t, w).Find("[role=alert]").Text(), "Try again in") {
		t.Errorf("not throttled: %d\n%s", w.Code, w.Body)
	}
	if strings.Contains(b.log.String(), canary) {
		t.Error("a passphrase is in the log")
	}
}

func TestSpoofedAddressesAreNotTrusted(t *testing.T) {
	t.Parallel()
	b := setup(t)
	cl := b.client()
	cl.header.Set("X-Forwarded-For", "203.0.113.9")
	cl.header.Set("X-Real-Ip", "203.0.113.9")
	cl.header.Set("Forwarded", "for=203.0.113.9")
	cl.post("/login", "email", rbac.DemoEmail(rbac.Viewer), "password", rbac.DemoPassphrase)
	var ip string
	if err := b.pool.QueryRow(context.Background(), `SELECT ip FROM redrive.sessions`).Scan(&ip); err != nil || ip != "192.0.2.1" {
		t.Errorf("the session is from %q, %v", ip, err)
	}
}

func TestSignInMakesANewSession(t *testing.T) {
	t.Parallel()
	b := setup(t)
	cl := b.as(t, rbac.Viewer)
	planted := cl.cookies[rbac.CookieName]
	w := cl.post("/login", "email", rbac.DemoEmail(rbac.Admin), "password", rbac.DemoPassphrase)
	if w.Code != http.StatusSeeOther || cl.cookies[rbac.CookieName] == planted {
		t.Fatalf("the planted session id stays: %d", w.Code)
	}
	raw := w.Header().Get("Set-Cookie")
	for _, part := range []string{"__Host-redrive=", "Path=/", "HttpOnly", "Secure", "SameSite=Lax"} {
		if !strings.Contains(raw, part) {
			t.Errorf("cookie lacks %s: %s", part, raw)
		}
	}
	if strings.Contains(raw, "Domain") {
		t.Errorf("cookie names a domain: %s", raw)
	}
	thief := b.client()
	thief.cookies[rbac.CookieName] = planted
	if w := thief.get("/account"); w.Code != http.StatusSeeOther {
		t.Errorf("the old session works: %d", w.Code)
	}
	stranger := b.client()
	stranger.cookies[rbac.CookieName] = strings.Repeat("A", 43)
	stranger.post("/login", "email", rbac.DemoEmail(rbac.Admin), "password", rbac.DemoPassphrase)
	if v := stranger.cookies[rbac.CookieName]; v == "" || v == strings.Repeat("A", 43) {
		t.Errorf("an id chosen by the client was taken: %q", v)
	}
}

func TestSignOut(t *testing.T) {
	t.Parallel()
	b := setup(t)
	cl := b.as(t, rbac.Operator)
	kept := cl.cookies[rbac.CookieName]
	if w := cl.get("/logout"); w.Code == http.StatusSeeOther && w.Header().Get("Location") == "/login" {
		t.Errorf("GET signs out: %d", w.Code)
	}
	if w := cl.post("/logout"); w.Code != http.StatusSeeOther || cl.cookies[rbac.CookieName] != "" {
		t.Errorf("%d, %v", w.Code, cl.cookies)
	}
	cl.cookies[rbac.CookieName] = kept
	if w := cl.get("/account"); w.Code != http.StatusSeeOther {
		t.Errorf("the cookie works after signing out: %d", w.Code)
	}
}

func TestSessionsEnd(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := context.Background()
	cl := b.as(t, rbac.Operator)
	if w := cl.get("/account"); w.Code != http.StatusOK {
		t.Fatalf("%d", w.Code)
	}
	user, err := b.people.FindUser(ctx, rbac.DemoEmail(rbac.Operator))
	if err != nil {
		t.Fatal(err)
	}
	if err := b.people.DisableUser(ctx, rbac.CommandLine("test"), user.ID, "left"); err != nil {
		t.Fatal(err)
	}
	if w := cl.get("/account"); w.Code != http.StatusSeeOther {
		t.Errorf("a disabled person reads: %d", w.Code)
	}
	idle := b.as(t, rbac.Viewer)
	b.advance(30 * time.Minute)
	if w := idle.get("/account"); w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/login?next=%2Faccount" {
		t.Errorf("idle for 30 minutes: %d", w.Code)
	}
}

func TestAccountPage(t *testing.T) {
	t.Parallel()
	b := setup(t)
	cl, other := b.as(t, rbac.Viewer), b.as(t, rbac.Viewer)
	doc := page(t, cl.get("/account"))
	forms := doc.Find(`form[action^="/account/sessions/"][action$="/end"]`)
	if forms.Length() != 1 {
		t.Fatalf("%d sessions to end", forms.Length())
	}
	action, _ := forms.Attr("action")
	if w := b.as(t, rbac.Admin).post(action); w.Code != http.StatusNotFound {
		t.Errorf("somebody else ends it: %d", w.Code)
	}
	if w := cl.post(action); w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/account" {
		t.Errorf("%d", w.Code)
	}
	doc = page(t, cl.get("/account"))
	if !strings.Contains(doc.Find("main").Text(), "The session has ended.") {
		t.Error("no message after ending a session")
	}
	if strings.Contains(page(t, cl.get("/account")).Find("main").Text(), "The session has ended.") {
		t.Error("the message stays")
	}
	if w := other.get("/account"); w.Code != http.StatusSeeOther {
		t.Errorf("the ended session reads: %d", w.Code)
	}
	if doc.Find(`nav a[href="/admin/users"], nav a[href="/audit"]`).Length() != 0 {
		t.Error("a viewer is offered admin pages")
	}
}

func TestAdminPages(t *testing.T) {
	t.Parallel()
	b := setup(t)
	cl := b.as(t, rbac.Admin)
	if text := page(t, cl.get("/admin/users")).Find("main").Text(); !strings.Contains(text, "oncall@demo.test") {
		t.Errorf("users: %s", text)
	}
	text := page(t, cl.get("/admin/tokens")).Find("main").Text()
	if !strings.Contains(text, "demo-ingest-token") || !strings.Contains(text, "source ingest") {
		t.Errorf("tokens: %s", text)
	}
}

func TestNextIsALocalPath(t *testing.T) {
	t.Parallel()
	b := setup(t)
	good := map[string]string{
		"/jobs": "/jobs", "/jobs?q=type%3Aa&env=staging": "/jobs?q=type%3Aa&env=staging", "/": "/", "/jobs/7#payload": "/jobs/7",
	}
	for next, want := range good {
		if got := localPath(next); got != want {
			t.Errorf("localPath(%q) = %q, want %q", next, got, want)
		}
	}
	bad := []string{"", "//e.test", "/\\e.test", "/%09/e.test", "/\t/e.test", "/%5ce.test", "https://e.test", "javascript:alert(1)", "e.test",
		"\\\\e.test", "/%2f/e.test", "///e.test", "/\n/e.test", "/login", "/logout", "/x%00", "//user@e.test", "/%0d%0aSet-Cookie:x", strings.Repeat("/a", 2000)}
	for _, next := range bad {
		if got := localPath(next); got != "/" {
			t.Errorf("localPath(%q) = %q", next, got)
		}
		w := b.client().post("/login", "email", rbac.DemoEmail(rbac.Viewer), "password", rbac.DemoPassphrase, "next", next)
		if got := w.Header().Get("Location"); w.Code == http.StatusSeeOther && got != "/" {
			t.Errorf("next=%q leads to %q", next, got)
		}
	}
}

func FuzzLocalPath(f *testing.F) {
	for _, seed := range []string{"/", "//e", "/\\e", "/%09/e", "/jobs?x=//e"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, next string) {
		base, _ := url.Parse("https://console.test/login")
		u, err := base.Parse(localPath(next))
		if err != nil || u.Host != "console.test" || u.Scheme != "https" {
			t.Errorf("%q leads to %v, %v", next, u, err)
		}
	})
}
