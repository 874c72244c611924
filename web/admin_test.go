package web

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/redrive-dlq/redrive/rbac"
)

const newPassphrase = "walnut harbour violin sky"

func TestAdministerPeople(t *testing.T) {
	t.Parallel()
	b := setup(t)
	cl := b.as(t, rbac.Admin)
	w := cl.post("/admin/users/new", "email", "kim@example.com", "role", "operator", "password", "short")
	if w.Code != http.StatusUnprocessableEntity || page(t, w).Find("#password-error").Length() != 1 || page(t, w).Find(`#email[value="kim@example.com"]`).Length() != 1 {
		t.Fatalf("a short passphrase: %d\n%s", w.Code, w.Body)
	}
	w = cl.post("/admin/users/new", "email", "kim@example.com", "name", "Kim <b>", "role", "operator", "environment", "staging", "password", newPassphrase)
	path := w.Header().Get("Location")
	if w.Code != http.StatusSeeOther || !strings.HasPrefix(path, "/admin/users/") {
		t.Fatalf("%d to %q\n%s", w.Code, path, w.Body)
	}
	doc := page(t, cl.get(path))
	if text := doc.Find("main").Text(); !strings.Contains(text, "operator in staging") || !strings.Contains(text, "Kim <b>") {
		t.Errorf("the person's page: %s", text)
	}
	kim := b.client()
	kim.post("/login", "email", "kim@example.com", "password", newPassphrase)
	if w := kim.get("/account"); w.Code != http.StatusOK {
		t.Fatalf("the new person: %d", w.Code)
	}
	if w := cl.post(path+"/grants", "role", "oncall"); w.Code != http.StatusSeeOther {
		t.Errorf("add: %d", w.Code)
	}
	if w := kim.get("/account"); w.Code != http.StatusSeeOther {
		t.Errorf("a session outlived a change of roles: %d", w.Code)
	}
	if w := cl.post(path+"/grants", "role", "oncall"); w.Code != http.StatusConflict || !strings.Contains(page(t, w).Find("[role=alert]").Text(), "already is oncall") {
		t.Errorf("twice: %d", w.Code)
	}
	if w := cl.post(path+"/grants", "role", "root"); w.Code != http.StatusUnprocessableEntity {
		t.Errorf("no role: %d", w.Code)
	}
	if w := cl.post(path+"/grants/remove", "role", "operator", "environment", "staging"); w.Code != http.StatusSeeOther {
		t.Errorf("remove: %d\n%s", w.Code, w.Body)
	}
	if w := cl.post(path+"/disable", "reason", " "); w.Code != http.StatusUnprocessableEntity {
		t.Errorf("without a reason: %d", w.Code)
	}
	if w := cl.post(path+"/disable", "reason", "left the company"); w.Code != http.StatusSeeOther {
		t.Errorf("disable: %d", w.Code)
	}
	if w := kim.post("/login", "email", "kim@example.com", "password", newPassphrase); w.Code != http.StatusUnauthorized {
		t.Errorf("a disabled person signs in: %d", w.Code)
	}
	if w := cl.post(path+"/enable", "reason", "came back"); w.Code != http.StatusSeeOther {
		t.Errorf("enable: %d", w.Code)
	}
	for _, id := range []string{"0", "x", "999999", "-1", "99999999999999999999"} {
		if w := cl.get("/admin/users/" + id); w.Code != http.StatusNotFound {
			t.Errorf("person %s: %d", id, w.Code)
		}
	}
	var n int
	err := b.pool.QueryRow(context.Background(), `
		SELECT count(*)
		FROM redrive.audit_entries
		WHERE actor = 'admin@demo.test' AND action IN ('user.create', 'grant.add', 'grant.remove', 'user.disable', 'user.enable')`).Scan(&n)
	if err != nil || n != 5 {
		t.Errorf("%d entries for 5 acts, %v", n, err)
	}
}

func TestAdministeringAsksForThePassphrase(t *testing.T) {
	t.Parallel()
	b := setup(t)
	cl := b.as(t, rbac.Admin)
	b.advance(6 * time.Minute)
	cl.header.Set("Referer", "http://console.test/admin/users/1")
	w := cl.post("/admin/users/1/grants", "role", "oncall")
	if w.Code != http.StatusForbidden || page(t, w).Find(`a[href="/account/confirm?next=%2Fadmin%2Fusers%2F1"]`).Length() != 1 {
		t.Errorf("%d\n%s", w.Code, w.Body)
	}
	if w := cl.get("/admin/tokens/new"); w.Code != http.StatusSeeOther || !strings.HasPrefix(w.Header().Get("Location"), "/account/confirm") {
		t.Errorf("%d", w.Code)
	}
}

func TestAdministerTokens(t *testing.T) {
	t.Parallel()
	b := setup(t)
	cl := b.as(t, rbac.Admin)
	owner, ok := page(t, cl.get("/admin/tokens/new")).Find("#owner option:contains('oncall@')").Attr("value")
	if !ok {
		t.Fatal("no owner to choose")
	}
	for _, bad := range [][]string{
		{"name", "x", "role", "viewer", "days", "1"},
		{"name", "x", "owner", owner, "role", "oncall", "days", "0"},
		{"name", "x", "owner", owner, "role", "admin", "days", "1"},
		{"name", "x", "owner", owner, "capture", "yes", "days", "1"},
		{"name", "x", "owner", "424242", "role", "viewer", "days", "1"},
	} {
		if w := cl.post("/admin/tokens/new", bad...); w.Code != http.StatusUnprocessableEntity || page(t, w).Find("[role=alert]").Length() != 1 {
			t.Errorf("%v: %d", bad, w.Code)
		}
	}
	w := cl.post("/admin/tokens/new", "name", "nightly", "owner", owner, "role", "oncall", "environment", "staging", "capture", "yes", "sources", "app, cron", "days", "7")
	var secret string
	for _, word := range strings.FieldsFunc(w.Body.String(), func(r rune) bool { return r == '<' || r == '>' || r == '"' }) {
		if strings.HasPrefix(word, rbac.TokenPrefix) {
			secret = word
		}
	}
	if w.Code != http.StatusOK || secret == "" {
		t.Fatalf("no token: %d\n%s", w.Code, w.Body)
	}
	if w := b.bearer(secret).get("/api/v1/odd"); w.Code != http.StatusOK {
		t.Errorf("the token reads: %d", w.Code)
	}
	doc := page(t, cl.get("/admin/tokens"))
	if strings.Contains(doc.Text(), secret) || strings.Contains(b.log.String(), secret) {
		t.Error("the secret is shown again")
	}
	path, _ := doc.Find("tr:contains('nightly') a[href$='/revoke']").Attr("href")
	if w := cl.get(path); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "nightly") {
		t.Fatalf("%s: %d", path, w.Code)
	}
	if w := cl.post(path); w.Code != http.StatusUnprocessableEntity {
		t.Errorf("without a reason: %d", w.Code)
	}
	if w := cl.post(path, "reason", "leaked in a log"); w.Code != http.StatusSeeOther {
		t.Errorf("revoke: %d", w.Code)
	}
	if w := b.bearer(secret).get("/api/v1/odd"); w.Code != http.StatusUnauthorized {
		t.Errorf("a revoked token reads: %d", w.Code)
	}
	if w := cl.post(path, "reason", "again"); w.Code != http.StatusConflict {
		t.Errorf("twice: %d", w.Code)
	}
}

func TestChangeOwnPassphrase(t *testing.T) {
	t.Parallel()
	b := setup(t)
	cl, other := b.as(t, rbac.Viewer), b.as(t, rbac.Viewer)
	for status, pair := range map[int][2]string{http.StatusUnauthorized: {"wrong", newPassphrase}, http.StatusUnprocessableEntity: {rbac.DemoPassphrase, "short"}} {
		if w := cl.post("/account/passphrase", "password", pair[0], "new_password", pair[1]); w.Code != status || strings.Contains(w.Body.String(), newPassphrase) {
			t.Errorf("want %d, got %d", status, w.Code)
		}
	}
	w := cl.post("/account/passphrase", "password", rbac.DemoPassphrase, "new_password", newPassphrase)
	if w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/account" {
		t.Fatalf("%d\n%s", w.Code, w.Body)
	}
	if w := cl.get("/account"); w.Code != http.StatusOK {
		t.Errorf("the own session ended: %d", w.Code)
	}
	if w := other.get("/account"); w.Code != http.StatusSeeOther {
		t.Errorf("the other session lives: %d", w.Code)
	}
}
