package api_test

import (
	"net/http"
	"strconv"
	"testing"

	"github.com/redrive-dlq/redrive/rbac"
)

// TestOrdersAreLimited: a script that orders one by one is told when to go on;
// steering a batch, above all stopping it, has no limit.
func TestOrdersAreLimited(t *testing.T) {
	t.Parallel()
	b := setup(t)
	token := b.stepped(t, rbac.OnCall)
	var last reply
	for range 2000 {
		if last = b.post(t, token, "/dead-jobs/999999/replay", `{"reason":"one by one"}`); last.status == http.StatusTooManyRequests {
			break
		}
	}
	refused(t, last, http.StatusTooManyRequests, "too_many")
	if after, err := strconv.Atoi(last.header.Get("Retry-After")); err != nil || after < 1 {
		t.Errorf("Retry-After: %q", last.header.Get("Retry-After"))
	}
	if r := b.post(t, token, "/batches/999999/pause", `{"reason":"stop it"}`); r.status != http.StatusNotFound {
		t.Errorf("a brake: %s", r)
	}
}
