package api_test

import (
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/redrive-dlq/redrive/rbac"
)

// page opens a page of the console as a demo account.
func (b *bundle) page(t *testing.T, role rbac.Role, path string) string {
	t.Helper()
	form := url.Values{"email": {rbac.DemoEmail(role)}, "password": {rbac.DemoPassphrase}}
	r := httptest.NewRequest(http.MethodPost, "/login", strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	in := httptest.NewRecorder()
	b.server.ServeHTTP(in, r)
	if in.Code != http.StatusSeeOther {
		t.Fatalf("sign in: %d", in.Code)
	}
	r = httptest.NewRequest(http.MethodGet, path, nil)
	for _, c := range in.Result().Cookies() {
		r.AddCookie(c)
	}
	out := httptest.NewRecorder()
	b.server.ServeHTTP(out, r)
	if out.Code != http.StatusOK {
		t.Fatalf("%s: %d", path, out.Code)
	}
	return html.UnescapeString(out.Body.String())
}

// TestEveryDigitStandsOnThePage: what the API tells of a captured number, the
// page tells too.
func TestEveryDigitStandsOnThePage(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.capture(t, string(readCase(t, "04-numbers-beyond-float64")))
	page := b.page(t, rbac.Viewer, fmt.Sprint("/jobs/", id))
	for _, digits := range []string{"9223372036854775807", "9007199254740993", "3344556677889900123", "1.10", "-0.0", "1E3", "1e400",
		"0.1000000000000000055511151231257827", "12345678901234567890"} {
		if !strings.Contains(page, digits) {
			t.Errorf("the page lacks %s", digits)
		}
	}
}
