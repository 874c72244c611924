package httptarget_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// TestRefusedConnectionsOpenTheBreaker: while nobody listens at a destination its
// replays keep their place instead of ending skipped, and go on once it is back.
func TestRefusedConnectionsOpenTheBreaker(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	_ = l.Close() // nobody listens there now
	b := setup(t, "http://"+address)
	now := time.Now()
	b.svc.Now = func() time.Time { return now }
	job, replayID := b.released(t, "1", []byte("x"))
	breaker := func() (s string) {
		t.Helper()
		if err := b.pool.QueryRow(t.Context(), `SELECT breaker FROM redrive.destinations`).Scan(&s); err != nil {
			t.Fatal(err)
		}
		return s
	}
	round := func() (n int) {
		t.Helper()
		n, err := b.svc.ReleaseDue(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for _, id := range []string{"2", "3", "4"} { // three try a half open breaker, one waits
		b.order(t, b.job(t, id, []byte("x")))
	}
	for range 5 {
		if s := breaker(); s != "closed" {
			t.Fatalf("the breaker is %s before five refusals", s)
		}
		if err := b.deliver(t, replayID); err == nil {
			t.Fatal("a refused connection isn't tried again")
		}
		now = now.Add(2 * time.Second)
	}
	if n := round(); n != 0 || breaker() != "open" {
		t.Fatalf("%d left, the breaker is %s", n, breaker())
	}
	if err := b.deliver(t, replayID); err != nil {
		t.Fatal(err)
	}
	if s := b.see(t, job, replayID); s != "pending  replaying none 1 unknown" {
		t.Fatalf("what is out isn't taken back: %s", s)
	}

	for range 3 { // half open, nobody there, open again for longer
		now = now.Add(2 * time.Minute)
		before := len(b.handed)
		if n := round(); n != 3 || breaker() != "half_open" {
			t.Fatalf("%d left to try it, the breaker is %s", n, breaker())
		}
		for _, id := range b.handed[before:] {
			if err := b.deliver(t, id); err == nil {
				t.Fatal("a refused connection isn't tried again")
			}
		}
		now = now.Add(2 * time.Second)
		if n := round(); n != 0 || breaker() != "open" {
			t.Fatalf("%d left after nobody was there, the breaker is %s", n, breaker())
		}
		for _, id := range b.handed[before:] {
			if err := b.deliver(t, id); err != nil {
				t.Fatal(err)
			}
		}
	}

	l, err = net.Listen("tcp", address)
	if err != nil {
		t.Skip("somebody else took the address: ", err)
	}
	back := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	_ = back.Listener.Close()
	back.Listener = l
	back.Start()
	defer back.Close()
	now = now.Add(10 * time.Minute)
	before := len(b.handed)
	round()
	for _, id := range b.handed[before:] {
		if err := b.deliver(t, id); err != nil {
			t.Fatal(err)
		}
	}
	now = now.Add(time.Second)
	if round(); breaker() != "closed" {
		t.Fatalf("the breaker is %s after one came through", breaker())
	}
	if s := b.see(t, job, replayID); s != "ended succeeded http_200 recovered done 1 unknown" {
		t.Fatal(s)
	}
}
