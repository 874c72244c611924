package web

import (
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/redrive-dlq/redrive/rbac"
)

// TestOrdersAreLimited: one person's burst of orders ends in an answer that says
// when to go on; others and the brakes have nothing to do with it.
func TestOrdersAreLimited(t *testing.T) {
	t.Parallel()
	b := pageSetup(t)
	b.takeAll()
	cl := b.as(t, rbac.OnCall)
	for i := range orderBurst {
		if w := cl.post("/jobs/999999/replay", "version", "1.1", "reason", "a burst"); w.Code != http.StatusNotFound {
			t.Fatalf("order %d answers %d", i, w.Code)
		}
	}
	w := cl.post("/jobs/999999/replay", "version", "1.1", "reason", "a burst")
	if after, _ := strconv.Atoi(w.Header().Get("Retry-After")); w.Code != http.StatusTooManyRequests || after < 1 {
		t.Fatalf("after %d orders: %d, Retry-After %q", orderBurst, w.Code, w.Header().Get("Retry-After"))
	}
	if text := page(t, w).Find("main").Text(); !strings.Contains(text, "try again in") {
		t.Errorf("the page says %q", text)
	}
	for _, path := range []string{"/batches/new", "/batches/1/confirm"} {
		if w := cl.post(path, "reason", "more"); w.Code != http.StatusTooManyRequests {
			t.Errorf("POST %s answers %d beyond the limit", path, w.Code)
		}
	}
	if w := cl.get("/jobs"); w.Code != http.StatusOK {
		t.Errorf("reading answers %d", w.Code)
	}
	if w := cl.post("/batches/999999/pause", "reason", "stop it"); w.Code != http.StatusNotFound {
		t.Errorf("a brake answers %d", w.Code)
	}
	if w := b.as(t, rbac.Operator).post("/jobs/999999/replay", "version", "1.1", "reason", "mine"); w.Code != http.StatusNotFound {
		t.Errorf("another person's order answers %d", w.Code)
	}
	b.advance(2 * orderEvery)
	if w := cl.post("/jobs/999999/replay", "version", "1.1", "reason", "later"); w.Code != http.StatusNotFound {
		t.Errorf("a moment later it answers %d", w.Code)
	}
}

// TestWhatOrdersIsLimited: every route that plans or sends counts as an order.
func TestWhatOrdersIsLimited(t *testing.T) {
	t.Parallel()
	b := pageSetup(t)
	for _, r := range b.server.table() {
		orders := false
		for _, end := range []string{"/replay", "/batches/new", "/confirm", "/approve", "/plan-failed", "/judge", "/allow-old", "/batches/:id/fix"} {
			orders = orders || r.writes() && strings.HasSuffix(r.Path, end) && !strings.HasPrefix(r.Path, "/account")
		}
		if orders != (r.Policy.order && r.writes()) {
			t.Errorf("%s %s: counted as an order %t, want %t", r.Method, r.Path, r.Policy.order, orders)
		}
	}
}
