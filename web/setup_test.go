package web

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/PuerkitoBio/goquery"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/labstack/echo/v4"

	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/migrations/testdb"
	"github.com/redrive-dlq/redrive/rbac"
)

// canary is a secret that tests put where it must not come out of.
const canary = "canary-hunter2-4711"

type testBundle struct {
	pool   *pgxpool.Pool
	people *rbac.Service
	server *Server
	log    *syncBuffer
	mu     sync.Mutex
	at     time.Time
}

// syncBuffer is a log that requests write to in parallel.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}
func (s *syncBuffer) String() string { s.mu.Lock(); defer s.mu.Unlock(); return s.b.String() }

func (b *testBundle) now() time.Time { b.mu.Lock(); defer b.mu.Unlock(); return b.at }

func (b *testBundle) advance(d time.Duration) { b.mu.Lock(); defer b.mu.Unlock(); b.at = b.at.Add(d) }

// setup serves a demo with routes that misbehave, beside the real ones.
func setup(t *testing.T, change ...func(*Config)) *testBundle {
	t.Helper()
	b := &testBundle{pool: testdb.New(t), log: &syncBuffer{}, at: time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)}
	b.people = rbac.New(b.pool, b.now, rbac.NewHasher(2))
	ctx := context.Background()
	if err := pgx.BeginFunc(ctx, b.pool, func(tx pgx.Tx) error { return b.people.SeedDemo(ctx, tx) }); err != nil {
		t.Fatal(err)
	}
	config := Config{Pool: b.pool, People: b.people, Demo: true, Environments: []string{"production", "staging"},
		Logger: slog.New(slog.NewJSONHandler(b.log, &slog.HandlerOptions{Level: slog.LevelDebug})), Routes: oddRoutes(b)}
	for _, f := range change {
		f(&config)
	}
	server, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	b.server = server
	return b
}

type oddForm struct {
	Reason string   `form:"reason"`
	N      int      `form:"n"`
	Yes    bool     `form:"yes"`
	List   []string `form:"list"`
	Hidden string
}

func oddRoutes(b *testBundle) []Route {
	ok := func(c echo.Context) error { return c.String(http.StatusOK, "ok") }
	return []Route{
		{Method: "GET", Path: "/odd/panic", Name: "odd.panic", Audience: Browser, Policy: Public(), Handle: func(echo.Context) error { panic("password=" + canary) }},
		{Method: "GET", Path: "/odd/sql", Name: "odd.sql", Audience: Browser, Policy: Public(), Handle: func(c echo.Context) error {
			_, err := b.pool.Exec(c.Request().Context(), `SELECT secret_column FROM redrive.users WHERE name = 'password=`+canary+`'`)
			return err
		}},
		{Method: "GET", Path: "/odd/slow", Name: "odd.slow", Audience: Browser, Policy: Public(), Timeout: 50 * time.Millisecond, Handle: func(c echo.Context) error {
			_, err := b.pool.Exec(c.Request().Context(), `SELECT pg_sleep(5)`)
			return err
		}},
		{Method: "GET", Path: "/odd/reveal", Name: "odd.reveal", Audience: Browser, Policy: Needs(rbac.Reveal).WithStepUp(), Handle: ok},
		{Method: "POST", Path: "/odd/reveal", Name: "odd.reveal.submit", Audience: Browser, Policy: Needs(rbac.Reveal).WithStepUp(), Handle: ok},
		{Method: "POST", Path: "/odd/form", Name: "odd.form", Audience: Browser, Policy: Needs(rbac.Triage), BodyLimit: 1000, Handle: func(c echo.Context) error {
			form, err := bind[oddForm](c)
			if err != nil {
				return err
			}
			return c.JSON(http.StatusOK, form)
		}},
		{Method: "GET", Path: "/odd/events", Name: "odd.events", Audience: Browser, Policy: Needs(rbac.Read), Stream: true, Handle: func(c echo.Context) error {
			return b.server.stream(c, func(context.Context, *rbac.Principal) (string, error) { return b.now().String(), nil }, rbac.Read)
		}},
		{Method: "GET", Path: "/api/v1/odd", Name: "odd.api", Audience: API, Policy: Needs(rbac.Read), Handle: ok},
		{Method: "POST", Path: "/api/v1/odd", Name: "odd.api.submit", Audience: API, Policy: Needs(rbac.Capture), BodyLimit: 100, Handle: func(c echo.Context) error {
			if _, err := io.ReadAll(c.Request().Body); err != nil {
				return err
			}
			return c.String(http.StatusOK, "ok")
		}},
		{Method: "GET", Path: "/api/v1/invalid", Name: "odd.api.invalid", Audience: API, Policy: Needs(rbac.Read), Handle: func(echo.Context) error {
			return problem.At(problem.Invalid, "/items/0", "The job type is missing.")
		}},
	}
}

// client keeps cookies as a browser does; cookies are Secure, so that net/http's
// jar would not send them to a test server.
type client struct {
	b       *testBundle
	cookies map[string]string
	header  http.Header
}

func (b *testBundle) client() *client {
	return &client{b: b, cookies: map[string]string{}, header: http.Header{"Sec-Fetch-Site": {"same-origin"}}}
}

func (cl *client) do(method, target, contentType, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "http://console.test"+target, strings.NewReader(body))
	if body == "" {
		r = httptest.NewRequest(method, "http://console.test"+target, nil)
	}
	for k, v := range cl.header {
		r.Header[k] = v
	}
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	for k, v := range cl.cookies {
		r.AddCookie(&http.Cookie{Name: k, Value: v})
	}
	w := httptest.NewRecorder()
	cl.b.server.ServeHTTP(w, r)
	for _, c := range w.Result().Cookies() {
		if c.MaxAge < 0 {
			delete(cl.cookies, c.Name)
			continue
		}
		cl.cookies[c.Name] = c.Value
	}
	return w
}

func (cl *client) get(target string) *httptest.ResponseRecorder { return cl.do("GET", target, "", "") }

func (cl *client) post(target string, pairs ...string) *httptest.ResponseRecorder {
	form := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		form.Add(pairs[i], pairs[i+1])
	}
	return cl.do("POST", target, "application/x-www-form-urlencoded", form.Encode())
}

// as returns a client that is signed in as the demo account of the role.
func (b *testBundle) as(t *testing.T, role rbac.Role) *client {
	t.Helper()
	cl := b.client()
	w := cl.post("/login", "email", rbac.DemoEmail(role), "password", rbac.DemoPassphrase)
	if w.Code != http.StatusSeeOther || cl.cookies[rbac.CookieName] == "" {
		t.Fatalf("sign in as %s: %d\n%s", role, w.Code, w.Body)
	}
	return cl
}

func (b *testBundle) bearer(token string) *client {
	return &client{b: b, cookies: map[string]string{}, header: http.Header{"Authorization": {"Bearer " + token}}}
}

func page(t *testing.T, w *httptest.ResponseRecorder) *goquery.Document {
	t.Helper()
	doc, err := goquery.NewDocumentFromReader(bytes.NewReader(w.Body.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	return doc
}
