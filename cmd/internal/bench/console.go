package bench

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/cmd/internal/console"
	"github.com/redrive-dlq/redrive/dlq/jobtype"
	"github.com/redrive-dlq/redrive/rbac"
)

// catalogue of the console: what is captured, a large batch that nothing but
// the machine limits, and small ones that are due at a moment.
const catalogue = `
environments: [production]
types:
  send_invoice:
    side_effects: [{kind: email, text: sends one invoice}]
    idempotency: {by: key, scope: invoice}
    targets:
      production: {http: {url: "http://127.0.0.1:9/"}, outcome_within: 15m}
  plan_plain:
    side_effects: [{kind: write, text: writes a row}]
    idempotency: {by: key, scope: plan}
    rate: {per_minute: 600000, burst: 2000}
    batch: {approval_above: 10000000, canary: 10}
    targets:
      production: {http: {url: "SINK/bulk"}, outcome_within: 15m, concurrency: 2000}
  first:
    side_effects: [{kind: write, text: writes a row}]
    idempotency: {by: key, scope: plan}
    rate: {per_minute: 6000}
    batch: {approval_above: 10000000, canary: 10}
    targets:
      production: {http: {url: "SINK/first"}, outcome_within: 15m}
`

// sink is where replays go: it succeeds at once. It runs on the measured cores,
// too, which a real destination wouldn't.
type sink struct {
	mu       sync.Mutex
	arrivals map[string]time.Time // the first by path, since it was last forgotten
}

func (s *sink) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.arrivals[r.URL.Path]; !ok {
		s.arrivals[r.URL.Path] = now
	}
}

// forget begins anew for a path.
func (s *sink) forget(path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.arrivals, path)
}

// arrived is when the first came.
func (s *sink) arrived(path string) (time.Time, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at, ok := s.arrivals[path]
	return at, ok
}

// serveAnd runs a whole console on the store while f measures.
func (b *bench) serveAnd(ctx context.Context, f func(context.Context) error) error {
	people := rbac.New(b.pool, nil, rbac.NewHasher(2))
	if err := pgx.BeginFunc(ctx, b.pool, func(tx pgx.Tx) error { return people.SeedDemo(ctx, tx) }); err != nil {
		return err
	}
	var err error
	if b.person, err = b.onCall(ctx); err != nil {
		return err
	}
	to, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	b.sink = &sink{arrivals: map[string]time.Time{}}
	receiver := &http.Server{Handler: b.sink, ReadHeaderTimeout: time.Minute}
	go func() { _ = receiver.Serve(to) }() // it ends when it is closed
	defer func() { _ = receiver.Close() }()
	text := strings.ReplaceAll(catalogue, "SINK", "http://"+to.Addr().String())
	types, err := jobtype.Load(fstest.MapFS{"types.yaml": {Data: []byte(text)}}, "types.yaml")
	if err != nil {
		return err
	}
	if b.console, err = console.New(ctx, console.Config{Pool: b.pool, Catalogue: types, Demo: true, Log: b.Log}); err != nil {
		return err
	}
	defer b.console.Close()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	b.base = "http://" + listener.Addr().String()
	running, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- b.console.Run(running, listener) }()
	err = f(ctx)
	stop()
	if e := <-done; err == nil {
		err = e
	}
	return err
}

// signIn returns the session's cookie. The client keeps no jar: it would not
// send a Secure cookie over plain HTTP, as browsers do on loopback.
func (b *bench) signIn(ctx context.Context) (string, error) {
	form := url.Values{"email": {"operator@demo.test"}, "password": {"demo-only-passphrase"}}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, b.base+"/login", strings.NewReader(form.Encode()))
	if err != nil {
		return "", err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Origin", b.base)
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.Do(req)
	if err != nil {
		return "", err
	}
	_ = res.Body.Close() // only its cookie is wanted
	for _, c := range res.Cookies() {
		if strings.HasPrefix(c.Name, "__Host-") {
			return c.Name + "=" + c.Value, nil
		}
	}
	return "", fmt.Errorf("sign-in answered %d without a session", res.StatusCode)
}

// get fetches a page as the signed-in person and reads it whole.
func (b *bench) get(ctx context.Context, client *http.Client, path, cookie string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, b.base+path, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Cookie", cookie)
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }() // read whole below
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answered %d", path, res.StatusCode)
	}
	return nil
}

// onCall is the demo's person on call, who orders what is measured.
func (b *bench) onCall(ctx context.Context) (*rbac.Principal, error) {
	var id int64
	if err := b.pool.QueryRow(ctx, `SELECT id FROM redrive.users WHERE email = $1`, rbac.DemoEmail(rbac.OnCall)).Scan(&id); err != nil {
		return nil, fmt.Errorf("person on call: %w", err)
	}
	return rbac.PersonNow(ctx, b.pool, id)
}
