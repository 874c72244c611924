package dlq

import (
	"errors"
	"strings"
	"testing"
)

// TestEditKeepsTheKey: a worker that takes its key from its arguments would do
// the effect again under another one.
func TestEditKeepsTheKey(t *testing.T) {
	t.Parallel()
	b := setup(t)
	doc := job("k", 1, 1)
	doc.Payload, doc.IdempotencyKey = []byte(`{"to": "send-7", "n": 1}`), "send-7"
	id := b.one(t, doc).ID
	_, err := b.editor(t).Save(t.Context(), operator, id, EditOrder{Version: 1, Generation: 1, Reason: "another key", Values: map[string]string{"/to": "a@example.com"}})
	var refused *EditRefused
	if !errors.As(err, &refused) || !strings.Contains(err.Error(), "idempotency key") {
		t.Fatalf("the key was edited: %v", err)
	}
	if n := get[int](t, b, `SELECT count(*) FROM redrive.payloads`); n != 1 {
		t.Fatalf("%d versions", n)
	}
}
