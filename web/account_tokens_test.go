package web

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/rbac"
)

// A person mints a token for scripts after the passphrase, sees it once, and
// stops it.
func TestMintOwnToken(t *testing.T) {
	t.Parallel()
	b := setup(t)
	cl := b.as(t, rbac.OnCall)
	const path = "/account/tokens/new"
	b.advance(6 * time.Minute)
	if w := cl.get(path); w.Code != http.StatusSeeOther || !strings.HasPrefix(w.Header().Get("Location"), "/account/confirm") {
		t.Errorf("without the passphrase: %d to %q", w.Code, w.Header().Get("Location"))
	}
	if w := cl.post(path, "name", "script", "minutes", "60"); w.Code != http.StatusForbidden || b.tokensMinted(t) != 0 {
		t.Errorf("minted without the passphrase: %d", w.Code)
	}
	cl = b.as(t, rbac.OnCall)
	for field, bad := range map[string][]string{
		"name":    {"name", " ", "minutes", "60"},
		"minutes": {"name", "script", "minutes", "61"},
	} {
		w := cl.post(path, bad...)
		if w.Code != http.StatusUnprocessableEntity || page(t, w).Find("[role=alert]").Length() == 0 || b.tokensMinted(t) != 0 {
			t.Errorf("a wrong %s: %d", field, w.Code)
		}
	}
	if w := cl.post(path, "name", "script", "minutes", "5", "role", "admin"); w.Code == http.StatusOK || b.tokensMinted(t) != 0 {
		t.Errorf("a role that isn't one's own: %d", w.Code)
	}
	w := cl.post(path, "name", "replay script", "minutes", "30", "role", "oncall")
	secret := page(t, w).Find("[data-copy]").AttrOr("data-copy", "")
	if w.Code != http.StatusOK || !strings.HasPrefix(secret, rbac.TokenPrefix) {
		t.Fatalf("minting: %d, %q", w.Code, secret)
	}
	p, err := b.people.Bearer(t.Context(), secret)
	if err != nil || p.Email != "oncall@demo.test" || b.people.RequireStepUp(p) != nil {
		t.Errorf("the token acts as %+v: %v", p, err)
	}
	doc := cl.get("/account")
	if body := doc.Body.String(); strings.Contains(body, secret) || !strings.Contains(body, "replay script") {
		t.Error("the account page shows the secret, or not the token")
	}
	action, _ := page(t, doc).Find(`form[action^="/account/tokens/"]`).Attr("action")
	if w := b.as(t, rbac.Operator).post(action); w.Code != http.StatusNotFound {
		t.Errorf("somebody else's token: %d", w.Code)
	}
	if w := cl.post(action); w.Code != http.StatusSeeOther {
		t.Errorf("revoking %q: %d", action, w.Code)
	}
	if _, err := b.people.Bearer(t.Context(), secret); !problem.Is(err, problem.Unauthorized) {
		t.Errorf("a revoked token: %v", err)
	}
}

func (b *testBundle) tokensMinted(t *testing.T) int {
	t.Helper()
	return query[int](t, b, `SELECT count(*) FROM redrive.tokens WHERE stepped_up_at IS NOT NULL`)
}
