package web

import (
	"bufio"
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/redrive-dlq/redrive/rbac"
)

// follow opens an event stream over a real connection.
func (cl *client) follow(ctx context.Context, t *testing.T, base, path string) *bufio.Scanner {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, base+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.AddCookie(&http.Cookie{Name: rbac.CookieName, Value: cl.cookies[rbac.CookieName]})
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("%s: %d %v", path, resp.StatusCode, resp.Header)
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Scan() // retry: it has begun, so what follows is a change
	return lines
}

func changed(lines *bufio.Scanner) bool {
	for lines.Scan() {
		if lines.Text() == "event: change" {
			return true
		}
	}
	return false
}

func TestEventsTellOfEachChangeAndEndWithTheScope(t *testing.T) {
	t.Parallel()
	b := pageSetup(t)
	id := b.capture(t, welcome(t, nil))[0]
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	served := httptest.NewServer(b.server)
	t.Cleanup(served.Close)
	cl := b.grant(t, rbac.Grant{Role: rbac.Viewer, Environment: "production"})
	job := cl.follow(ctx, t, served.URL, "/jobs/"+id+"/events")
	for _, change := range []string{
		`INSERT INTO redrive.notes (dead_job_id, author, body) SELECT id, 'x', 'y' FROM redrive.dead_jobs`,
		`UPDATE redrive.dead_jobs SET status = 'replaying', updated_at = now()`,
	} {
		exec(t, b, change)
		if !changed(job) {
			t.Fatalf("nothing told of %s", change)
		}
	}
	batch := b.order(t, id, "succeeded", "")
	if !changed(job) {
		t.Fatal("nothing told of the outcome")
	}
	events := cl.follow(ctx, t, served.URL, "/batches/"+batch+"/events")
	exec(t, b, `UPDATE redrive.batches SET state = 'cancelled'`)
	if !changed(events) {
		t.Fatal("nothing told of the batch")
	}
	// Moved to another environment, the person may no longer look.
	exec(t, b, `UPDATE redrive.grants SET environment = 'staging' WHERE environment = 'production'`)
	if changed(job) || changed(events) || ctx.Err() != nil {
		t.Error("a stream outlives its reader's scope")
	}
}
