package web

import (
	"bufio"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/redrive-dlq/redrive/rbac"
)

func TestFailuresShowNothingInternal(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for path, status := range map[string]int{"/odd/panic": 500, "/odd/sql": 500, "/odd/slow": 503, "/nowhere/" + canary: 404} {
		w := b.client().get(path)
		body := w.Body.String()
		if w.Code != status {
			t.Errorf("%s: %d, want %d", path, w.Code, status)
		}
		id := w.Header().Get("X-Request-Id")
		if !strings.Contains(body, id) || page(t, w).Find("h1").Text() == "" {
			t.Errorf("%s: no request id or heading on the page:\n%s", path, body)
		}
		for _, leak := range []string{canary, "secret_column", "SQLSTATE", "goroutine", "pgx", "panic"} {
			if strings.Contains(body, leak) {
				t.Errorf("%s shows %s", path, leak)
			}
		}
		if status >= 500 && !strings.Contains(b.log.String(), id) {
			t.Errorf("%s: the log doesn't know request %s", path, id)
		}
	}
	log := b.log.String()
	if !strings.Contains(log, "secret_column") || !strings.Contains(log, "goroutine") {
		t.Error("the causes are not in the log")
	}
	if strings.Contains(log, "password="+canary) {
		t.Error("a password is in the log")
	}
}

func TestABrokenDatabase(t *testing.T) {
	t.Parallel()
	b := setup(t)
	cl := b.as(t, rbac.Admin)
	b.pool.Close()
	for _, path := range []string{"/account", "/admin/users", "/login", "/readyz"} {
		w := cl.get(path)
		if w.Code != http.StatusServiceUnavailable || strings.Contains(w.Body.String(), "pool") {
			t.Errorf("%s: %d\n%s", path, w.Code, w.Body)
		}
	}
	if w := cl.post("/login", "email", "a@b.test", "password", "x"); w.Code != http.StatusServiceUnavailable {
		t.Errorf("sign-in: %d", w.Code)
	}
	w := b.bearer(rbac.DemoToken(rbac.Admin)).get("/api/v1/odd")
	if w.Code != http.StatusServiceUnavailable || w.Header().Get("Content-Type") != "application/problem+json" || w.Header().Get("Retry-After") == "" {
		t.Errorf("API: %d %v", w.Code, w.Header())
	}
	if w := cl.get("/healthz"); w.Code != http.StatusOK {
		t.Errorf("healthz: %d", w.Code)
	}
}

func TestProblemDetails(t *testing.T) {
	t.Parallel()
	b := setup(t)
	viewer := b.bearer(rbac.DemoToken(rbac.Viewer))
	for path, want := range map[string]map[string]any{
		"/api/v1/invalid": {"status": 422.0, "detail": "The job type is missing.", "field": "/items/0", "code": "invalid"},
		"/api/v1/nowhere": {"status": 404.0, "code": "not_found"},
	} {
		w := viewer.get(path)
		var got map[string]any
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		for k, v := range want {
			if got[k] != v {
				t.Errorf("%s: %s is %v, want %v", path, k, got[k], v)
			}
		}
		if got["request_id"] != w.Header().Get("X-Request-Id") || got["title"] == "" || got["type"] == "" || len(w.Result().Cookies()) != 0 {
			t.Errorf("%s: %v", path, got)
		}
	}
	if w := b.client().get("/api/v1/odd"); w.Header().Get("WWW-Authenticate") == "" {
		t.Error("401 without WWW-Authenticate")
	}
}

func TestBodyLimits(t *testing.T) {
	t.Parallel()
	b := setup(t)
	cl := b.as(t, rbac.Operator)
	w := cl.post("/odd/form", "reason", strings.Repeat("x", 2000))
	if w.Code != http.StatusRequestEntityTooLarge || !strings.Contains(w.Body.String(), "1000 bytes") {
		t.Errorf("announced: %d\n%s", w.Code, w.Body)
	}
	w = b.bearer(rbac.DemoIngestToken).do("POST", "/api/v1/odd", "application/json", strings.Repeat("x", 101))
	if w.Code != http.StatusRequestEntityTooLarge || !strings.Contains(w.Body.String(), "100 bytes") {
		t.Errorf("API: %d\n%s", w.Code, w.Body)
	}
	// A body that hides its length.
	r := httptest.NewRequest("POST", "/api/v1/odd", strings.NewReader(strings.Repeat("x", 101)))
	r.ContentLength = -1
	r.Header.Set("Authorization", "Bearer "+rbac.DemoIngestToken)
	rec := httptest.NewRecorder()
	b.server.ServeHTTP(rec, r)
	if rec.Code != http.StatusRequestEntityTooLarge || !strings.Contains(rec.Body.String(), "100 bytes") {
		t.Errorf("hidden length: %d\n%s", rec.Code, rec.Body)
	}
	if w = cl.do("POST", "/odd/form", "application/json", `{"reason":"x"}`); w.Code != http.StatusUnsupportedMediaType {
		t.Errorf("JSON to a form: %d", w.Code)
	}
	if w = cl.do("POST", "/odd/form", "application/x-www-form-urlencoded", "reason=%zz"); w.Code != http.StatusBadRequest {
		t.Errorf("a broken form: %d", w.Code)
	}
}

func TestForms(t *testing.T) {
	t.Parallel()
	b := setup(t)
	cl := b.as(t, rbac.Operator)
	w := cl.post("/odd/form?reason=from-the-address&n=9", "reason", "line\r\ntwo", "n", "42", "yes", "on", "list", "a", "list", "b",
		"Hidden", "taken", "hidden", "taken", "role", "admin", "_method", "DELETE")
	var got oddForm
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
		t.Fatalf("%d %s: %v", w.Code, w.Body, err)
	}
	if got.Reason != "line\ntwo" || got.N != 42 || !got.Yes || strings.Join(got.List, ",") != "a,b" || got.Hidden != "" {
		t.Errorf("%+v", got)
	}
	if w = cl.post("/odd/form?n=7"); !strings.Contains(w.Body.String(), `"N":0`) {
		t.Errorf("the address was read: %s", w.Body)
	}
	for _, n := range []string{"x", "1e3", "99999999999999999999", "0x10"} {
		if w = cl.post("/odd/form", "n", n); w.Code != http.StatusUnprocessableEntity {
			t.Errorf("n=%s: %d", n, w.Code)
		}
	}
	if w = cl.post("/odd/form", "reason", "a\x00b"); w.Code != http.StatusUnprocessableEntity {
		t.Errorf("NUL: %d", w.Code)
	}
	if w = cl.do("PUT", "/odd/form", "", ""); w.Code != http.StatusMethodNotAllowed {
		t.Errorf("PUT: %d", w.Code)
	}
}

func TestHostsAndTLS(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *Config) { c.Hosts, c.TLS = []string{"127.0.0.1", "localhost"}, true })
	w := b.client().get("/login") // console.test
	if w.Code != http.StatusMisdirectedRequest {
		t.Errorf("a foreign name: %d", w.Code)
	}
	for _, host := range []string{"localhost:8080", "127.0.0.1", "LOCALHOST"} {
		r := httptest.NewRequest("GET", "/login", nil)
		r.Host = host
		rec := httptest.NewRecorder()
		b.server.ServeHTTP(rec, r)
		if rec.Code != http.StatusOK || rec.Header().Get("Strict-Transport-Security") == "" {
			t.Errorf("%s: %d", host, rec.Code)
		}
	}
}

func TestLogsHoldNoQuery(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.client().get("/login?q=" + canary)
	b.bearer("secret-token-" + canary).get("/api/v1/odd")
	if strings.Contains(b.log.String(), canary) {
		t.Errorf("the log holds a query or a token:\n%s", b.log)
	}
}

func TestCompression(t *testing.T) {
	t.Parallel()
	b := setup(t)
	cl := b.as(t, rbac.Admin)
	cl.header.Set("Accept-Encoding", "gzip")
	w := cl.get("/admin/users")
	if w.Header().Get("Content-Encoding") != "gzip" || w.Code != http.StatusOK {
		t.Errorf("not compressed: %d %v", w.Code, w.Header())
	}
	w = cl.get("/odd/panic")
	if w.Code != http.StatusInternalServerError || w.Header().Get("Content-Encoding") != "" || !strings.Contains(w.Body.String(), "<h1>") {
		t.Errorf("an error page: %d %v", w.Code, w.Header())
	}
}

// A stream tells of changes, and ends when its person is shut out or the server
// stops; over a real connection, with the server's timeouts.
func TestStreams(t *testing.T) {
	t.Parallel()
	b := setup(t)
	cl := b.as(t, rbac.Viewer)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	stopped := make(chan error, 1)
	go func() { stopped <- b.server.Serve(ctx, listener) }()
	open := func() (*http.Response, *bufio.Scanner) {
		r, _ := http.NewRequest("GET", "http://"+listener.Addr().String()+"/odd/events", nil)
		r.AddCookie(&http.Cookie{Name: rbac.CookieName, Value: cl.cookies[rbac.CookieName]})
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		return resp, bufio.NewScanner(resp.Body)
	}
	resp, lines := open()
	defer resp.Body.Close()
	if resp.Header.Get("Content-Type") != "text/event-stream" || !lines.Scan() {
		t.Fatalf("no stream: %d %v", resp.StatusCode, resp.Header)
	}
	b.advance(time.Minute)
	changed := false
	for !changed && lines.Scan() {
		changed = lines.Text() == "event: change"
	}
	if !changed {
		t.Fatal("no event for a change")
	}
	other, otherLines := open()
	defer other.Body.Close()
	user, err := b.people.FindUser(context.Background(), rbac.DemoEmail(rbac.Viewer))
	if err != nil {
		t.Fatal(err)
	}
	if err := b.people.DisableUser(context.Background(), rbac.CommandLine("test"), user.ID, "left"); err != nil {
		t.Fatal(err)
	}
	ended := make(chan bool)
	go func() {
		for lines.Scan() || otherLines.Scan() {
			continue
		}
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(20 * time.Second):
		t.Fatal("the streams outlive their person")
	}
	stop()
	if err := <-stopped; err != nil {
		t.Errorf("stop: %v", err)
	}
}

func TestReadyz(t *testing.T) {
	t.Parallel()
	b := setup(t)
	if w := b.client().get("/readyz"); w.Code != http.StatusOK {
		t.Errorf("%d", w.Code)
	}
	if w := b.client().do("HEAD", "/healthz", "", ""); w.Code != http.StatusOK {
		t.Errorf("HEAD: %d", w.Code)
	}
	b.server.Drain()
	if w := b.client().get("/readyz"); w.Code != http.StatusServiceUnavailable {
		t.Errorf("while stopping: %d", w.Code)
	}
}
