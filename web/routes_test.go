package web

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/rbac"
)

// target fills a route's parameters with something that exists nowhere.
func target(r Route) string {
	return strings.NewReplacer(":id", "999999999", ":fingerprint", "nothing", "*", "x").Replace(r.Path)
}

// without returns a role that lacks one of the permissions, "" when every role
// holds them all.
func without(perms []rbac.Permission) rbac.Role {
	for _, role := range rbac.AllRoles() {
		for _, p := range perms {
			if !role.Allows(p) {
				return role
			}
		}
	}
	return ""
}

// Every route of the table answers right without a session, without the
// permission, and to another site; and carries the security headers.
func TestEveryRoute(t *testing.T) {
	t.Parallel()
	b := setup(t)
	clients := map[rbac.Role]*client{}
	for _, role := range rbac.AllRoles() {
		clients[role] = b.as(t, role)
	}
	declared := map[string]bool{}
	for _, r := range b.server.Routes() {
		declared[r.Method+" "+r.Path] = true
		if r.Method == http.MethodGet && !r.Stream {
			declared["HEAD "+r.Path] = true
		}
		t.Run(r.Name, func(t *testing.T) {
			checkStranger(t, b, r)
			checkPermission(t, b, clients, r)
			checkCrossSite(t, b, clients[rbac.Admin], r)
		})
	}
	for _, r := range b.server.echo.Routes() {
		if !declared[r.Method+" "+r.Path] {
			t.Errorf("%s %s stands at the router but not in the table", r.Method, r.Path)
		}
	}
}

func checkStranger(t *testing.T, b *testBundle, r Route) {
	t.Helper()
	stranger := b.client()
	if r.Audience == API {
		stranger = b.bearer("nobody's")
	}
	if r.Policy.kind == kindPublic {
		if w := stranger.do(r.Method, target(r), formType(r), ""); w.Code == http.StatusUnauthorized && r.Name != "login.submit" {
			t.Errorf("a public route asks for a session: %d", w.Code)
		}
		return
	}
	w := stranger.do(r.Method, target(r), formType(r), "")
	checkHeaders(t, w.Header())
	switch {
	case r.Audience == Browser && r.Method == http.MethodGet:
		if w.Code != http.StatusSeeOther || !strings.HasPrefix(w.Header().Get("Location"), "/login") {
			t.Errorf("without a session: %d to %q", w.Code, w.Header().Get("Location"))
		}
	case w.Code != http.StatusUnauthorized:
		t.Errorf("without a session: %d", w.Code)
	}
	if r.Audience == API && w.Header().Get("Content-Type") != "application/problem+json" {
		t.Errorf("an API error is %s", w.Header().Get("Content-Type"))
	}
}

func checkPermission(t *testing.T, b *testBundle, clients map[rbac.Role]*client, r Route) {
	t.Helper()
	role := without(r.Policy.perms)
	if r.Policy.kind != kindNeeds || role == "" {
		return
	}
	cl := clients[role]
	if r.Audience == API {
		cl = b.bearer(rbac.DemoToken(role))
	}
	if w := cl.do(r.Method, target(r), formType(r), ""); w.Code != http.StatusForbidden {
		t.Errorf("as %s: %d, want 403", role, w.Code)
	}
}

func checkCrossSite(t *testing.T, b *testBundle, admin *client, r Route) {
	t.Helper()
	if !r.writes() {
		return
	}
	for _, header := range []http.Header{
		{"Sec-Fetch-Site": {"cross-site"}}, {"Sec-Fetch-Site": {"same-site"}}, {"Origin": {"https://evil.test"}}, {"Origin": {"null"}}, {},
	} {
		if r.Audience == API && len(header) == 0 {
			continue
		}
		cl := &client{b: b, cookies: admin.cookies, header: header}
		if w := cl.do(r.Method, target(r), formType(r), ""); w.Code != http.StatusForbidden {
			t.Errorf("with %v: %d, want 403", header, w.Code)
		}
	}
}

func formType(r Route) string {
	if r.writes() && r.Audience == Browser {
		return "application/x-www-form-urlencoded"
	}
	return ""
}

func checkHeaders(t *testing.T, h http.Header) {
	t.Helper()
	csp := h.Get("Content-Security-Policy")
	for _, part := range []string{"default-src 'none'", "script-src 'nonce-", "style-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'self'"} {
		if !strings.Contains(csp, part) {
			t.Errorf("the policy lacks %s: %s", part, csp)
		}
	}
	if strings.Contains(csp, "unsafe") {
		t.Errorf("the policy is unsafe: %s", csp)
	}
	for name, want := range map[string]string{"X-Content-Type-Options": "nosniff", "Referrer-Policy": "same-origin",
		"Cross-Origin-Opener-Policy": "same-origin", "Cache-Control": "no-store", "Access-Control-Allow-Origin": "", "Strict-Transport-Security": ""} {
		if got := h.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if h.Get("X-Request-Id") == "" {
		t.Error("no request id")
	}
}

// Who may is let in: the guard doesn't refuse everything.
func TestPermittedRolesComeIn(t *testing.T) {
	t.Parallel()
	b := setup(t)
	admin, oncall := b.as(t, rbac.Admin), b.as(t, rbac.OnCall)
	for path, cl := range map[string]*client{"/account": oncall, "/admin/users": admin, "/admin/tokens": admin, "/odd/reveal": oncall,
		"/api/v1/odd": b.bearer(rbac.DemoToken(rbac.Viewer))} {
		if w := cl.get(path); w.Code != http.StatusOK {
			t.Errorf("%s: %d\n%s", path, w.Code, w.Body)
		}
	}
	if w := b.bearer(rbac.DemoIngestToken).do("POST", "/api/v1/odd", "application/json", "{}"); w.Code != http.StatusOK {
		t.Errorf("ingest: %d", w.Code)
	}
	if w := b.bearer(rbac.DemoIngestToken).get("/api/v1/odd"); w.Code != http.StatusForbidden {
		t.Errorf("a capture token reads: %d", w.Code)
	}
	// A session is nothing to the API, a token nothing to pages.
	if w := admin.get("/api/v1/odd"); w.Code != http.StatusUnauthorized {
		t.Errorf("a session opens the API: %d", w.Code)
	}
	if w := b.bearer(rbac.DemoToken(rbac.Admin)).get("/admin/users"); w.Code != http.StatusSeeOther {
		t.Errorf("a token opens a page: %d", w.Code)
	}
}

func TestStepUp(t *testing.T) {
	t.Parallel()
	b := setup(t)
	cl := b.as(t, rbac.OnCall)
	b.advance(6 * time.Minute)
	w := cl.get("/odd/reveal?a=1")
	if w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/account/confirm?next=%2Fodd%2Freveal%3Fa%3D1" {
		t.Fatalf("%d to %q", w.Code, w.Header().Get("Location"))
	}
	w = cl.post("/odd/reveal")
	if w.Code != http.StatusForbidden || page(t, w).Find(`a[href="/account/confirm?next=%2Fodd%2Freveal"]`).Length() != 1 {
		t.Errorf("a form without step-up: %d\n%s", w.Code, w.Body)
	}
	if w = cl.get("/account/confirm?next=/odd/reveal"); w.Code != http.StatusOK || page(t, w).Find(`input[name=next][value="/odd/reveal"]`).Length() != 1 {
		t.Errorf("the page: %d\n%s", w.Code, w.Body)
	}
	if w = cl.post("/account/confirm", "password", "wrong", "next", "/odd/reveal"); w.Code != http.StatusUnauthorized {
		t.Errorf("a wrong passphrase: %d", w.Code)
	}
	old := cl.cookies[rbac.CookieName]
	w = cl.post("/account/confirm", "password", rbac.DemoPassphrase, "next", "/odd/reveal")
	if w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/odd/reveal" || cl.cookies[rbac.CookieName] == old {
		t.Fatalf("%d to %q", w.Code, w.Header().Get("Location"))
	}
	if w = cl.post("/odd/reveal"); w.Code != http.StatusOK {
		t.Errorf("after the step-up: %d", w.Code)
	}
	cl.cookies[rbac.CookieName] = old
	if w = cl.get("/account"); w.Code != http.StatusSeeOther {
		t.Errorf("the old cookie works: %d", w.Code)
	}
}

func TestTableMistakesKeepTheServerFromStarting(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ok := func(c echo.Context) error { return nil }
	good := Route{Method: "GET", Path: "/x", Name: "x", Audience: Browser, Policy: Public(), Handle: ok}
	cases := map[string]func(r *Route){
		"no policy":       func(r *Route) { r.Policy = Policy{} },
		"no permission":   func(r *Route) { r.Policy = Needs() },
		"no audience":     func(r *Route) { r.Audience = 0 },
		"no name":         func(r *Route) { r.Name = "" },
		"no handler":      func(r *Route) { r.Handle = nil },
		"name twice":      func(r *Route) { r.Name = "login" },
		"path twice":      func(r *Route) { r.Path = "/login" },
		"API elsewhere":   func(r *Route) { r.Audience = API },
		"page in the API": func(r *Route) { r.Path = "/api/v1/x" },
		"streaming POST":  func(r *Route) { r.Method, r.Stream = "POST", true },
	}
	for name, edit := range cases {
		r := good
		edit(&r)
		if _, err := New(Config{Pool: b.pool, People: b.people, Routes: []Route{r}}); err == nil {
			t.Errorf("%s: the server starts", name)
		}
	}
	if _, err := New(Config{Pool: b.pool, People: b.people, Routes: []Route{good}}); err != nil {
		t.Errorf("a good route: %v", err)
	}
}

func TestEveryCodeHasAStatus(t *testing.T) {
	t.Parallel()
	codes := []problem.Code{problem.Invalid, problem.Malformed, problem.TooLarge, problem.Unsupported, problem.Unauthorized, problem.Forbidden,
		problem.NotFound, problem.Conflict, problem.TooMany, problem.Unavailable, problem.Internal, problem.StepUpMissing}
	for _, code := range codes {
		if titles[statuses[code]] == "" {
			t.Errorf("%s has status %d and title %q", code, statuses[code], titles[statuses[code]])
		}
	}
}
