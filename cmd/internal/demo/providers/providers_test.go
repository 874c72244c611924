package providers_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/redrive-dlq/redrive/cmd/internal/demo/providers"
	"github.com/redrive-dlq/redrive/migrations/testdb"
)

type bundle struct {
	t   *testing.T
	url string
}

func setup(t *testing.T) bundle {
	t.Helper()
	pool := testdb.New(t)
	if err := providers.Migrate(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	s, err := providers.Start(pool, "127.0.0.1:0", slog.New(slog.NewTextHandler(io.Discard, nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := s.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	return bundle{t, s.URL()}
}

// post sends a request; status 0 means that no answer came within 300 ms.
func (b bundle) post(path, key, body string) (status int, answer map[string]any, header http.Header) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), 10*time.Second)
	if path == "/payments/charges" && key == "hangs" {
		cancel()
		ctx, cancel = context.WithTimeout(b.t.Context(), 300*time.Millisecond)
	}
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, b.url+path, bytes.NewBufferString(body))
	if err != nil {
		b.t.Fatal(err)
	}
	req.Header.Set("Idempotency-Key", key)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, nil
	}
	defer func() { _ = res.Body.Close() }()
	if err := json.NewDecoder(res.Body).Decode(&answer); err != nil {
		b.t.Fatal(err)
	}
	return res.StatusCode, answer, res.Header
}

func (b bundle) effects(query string) []providers.Effect {
	b.t.Helper()
	res, err := http.Get(b.url + query)
	if err != nil {
		b.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	var list struct{ Items []providers.Effect }
	if err := json.NewDecoder(res.Body).Decode(&list); err != nil {
		b.t.Fatal(err)
	}
	return list.Items
}

func TestMailRefusesMalformedRecipientsAndShowsDoubles(t *testing.T) {
	t.Parallel()
	b := setup(t)
	status, answer, _ := b.post("/mail/messages", "", `{"to":"alex@@example.com","send_id":"s1"}`)
	if status != 400 || answer["error"].(map[string]any)["code"] != "invalid_recipient" {
		t.Fatalf("got %d %v", status, answer)
	}
	if got := b.effects("/mail/messages?send_id=s1"); len(got) != 0 {
		t.Fatalf("a refused message was recorded: %+v", got)
	}
	for range 2 {
		if status, answer, _ = b.post("/mail/messages", "", `{"to":"alex@example.com","send_id":"s1"}`); status != 201 || answer["id"] == "" {
			t.Fatalf("got %d %v", status, answer)
		}
	}
	if got := b.effects("/mail/messages?send_id=s1"); len(got) != 2 || got[0].ID == got[1].ID {
		t.Fatalf("two sendings must be two rows, got %+v", got)
	}
}

func TestPaymentsHonourTheKeyUnderConcurrency(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ids := make([]any, 20)
	var wg sync.WaitGroup
	for i := range ids {
		wg.Go(func() {
			_, answer, _ := b.post("/payments/charges", "k1", `{"amount_cents":1200}`)
			ids[i] = answer["id"]
		})
	}
	wg.Wait()
	for _, id := range ids {
		if id == nil || id != ids[0] {
			t.Fatalf("one key gave several charges: %v", ids)
		}
	}
	got := b.effects("/payments/charges?key=k1")
	if len(got) != 1 || got[0].Requests != 20 || got[0].Environment != "production" {
		t.Fatalf("got %+v", got)
	}
	// Refunds of the same key are something else, and no key means no deduplication.
	b.post("/payments/refunds", "k1", `{"amount_cents":1200}`)
	b.post("/payments/charges", "", `{"amount_cents":1}`)
	b.post("/payments/charges", "", `{"amount_cents":1}`)
	if got := b.effects("/effects?provider=payments"); len(got) != 4 {
		t.Fatalf("want 4 effects, got %+v", got)
	}
	if status, _, _ := b.post("/payments/charges", "k2", `{"amount_cents":0}`); status != 422 {
		t.Fatalf("a charge of nothing was answered %d", status)
	}
}

func TestFaultsAreUsedUp(t *testing.T) {
	t.Parallel()
	b := setup(t)
	plant := func(body string, want int) {
		t.Helper()
		if status, answer, _ := b.post("/faults", "", body); status != want {
			t.Fatalf("plant: %d %v", status, answer)
		}
	}
	plant(`{"environment":"production","provider":"crm","key":"c1","mode":"answer","status":429,"retry_after":"7","code":"rate_limited","message":"slow down","remaining":2}`, 201)
	plant(`{"environment":"production","provider":"crm","key":"c1","mode":"answer","status":200,"remaining":2}`, 422)
	for i, want := range []int{429, 429, 201} {
		status, _, header := b.post("/crm/contacts", "c1", `{}`)
		if status != want || (want == 429) != (header.Get("Retry-After") == "7") {
			t.Fatalf("request %d: %d %v", i, status, header)
		}
	}
	plant(`{"environment":"production","provider":"payments","key":"hangs","mode":"hang_after","remaining":1}`, 201)
	plant(`{"environment":"production","provider":"payments","key":"hangs","mode":"hang","remaining":1}`, 201)
	for _, want := range []int{0, 0, 201} { // charged without an answer, nothing, the same charge again
		if status, _, _ := b.post("/payments/charges", "hangs", `{"amount_cents":5}`); status != want {
			t.Fatalf("got %d, want %d", status, want)
		}
	}
	if got := b.effects("/payments/charges?key=hangs"); len(got) != 1 || got[0].Requests != 2 {
		t.Fatalf("got %+v", got)
	}
}

// An outage is of one provider in one environment, and ends when it is told to.
func TestOutagesBeginAfterSomeRequestsAndEnd(t *testing.T) {
	t.Parallel()
	b := setup(t)
	body := `{"invoice":"i1"}`
	want := func(path string, status int) {
		t.Helper()
		if got, answer, _ := b.post(path, "k", body); got != status {
			t.Errorf("%s: %d %v, want %d", path, got, answer, status)
		}
	}
	if status, _, _ := b.post("/outages", "", `{"environment":"production","provider":"nobody"}`); status != 422 {
		t.Errorf("a provider that isn't there: %d", status)
	}
	if status, _, _ := b.post("/outages", "", `{"environment":"production","provider":"invoices","after":2}`); status != 200 {
		t.Fatalf("the switch: %d", status)
	}
	want("/invoices/documents", 201)
	want("/invoices/documents", 201)
	want("/invoices/documents", 503)
	want("/crm/contacts", 201)
	if n := len(b.effects("/effects?provider=invoices")); n != 2 {
		t.Errorf("%d effects, want 2: what is down does nothing", n)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, b.url+"/outages", bytes.NewBufferString(`{"environment":"production","provider":"invoices"}`))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // ending what is over does no harm
		res, err := http.DefaultClient.Do(req.Clone(t.Context()))
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		req.Body = io.NopCloser(bytes.NewBufferString(`{"environment":"production","provider":"invoices"}`))
	}
	want("/invoices/documents", 201)
}

func TestStartRefusesOtherAddresses(t *testing.T) {
	t.Parallel()
	for _, addr := range []string{"0.0.0.0:0", ":0", "example.com:80", "nonsense"} {
		if s, err := providers.Start(nil, addr, slog.Default()); err == nil {
			_ = s.Stop(t.Context())
			t.Errorf("listened on %s", addr)
		}
	}
}
