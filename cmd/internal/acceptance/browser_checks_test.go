package acceptance

import (
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

// TestTheTabNotesWhatMustNotHappen opens a page with every mistake: a check
// that finds nothing there would find nothing anywhere.
func TestTheTabNotesWhatMustNotHappen(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		w.Header().Set("Content-Security-Policy", "style-src 'none'")
		_, _ = io.WriteString(w, `<!DOCTYPE html><title>Bad</title><h1 style="color: red">Bad</h1><img src="/missing.png">
			<script>alert("hello"); planted()</script>`)
	}))
	t.Cleanup(server.Close)
	b := newTab(t)
	b.visit(server.URL + "/")
	b.mu.Lock()
	defer b.mu.Unlock()
	noted := strings.Join(slices.Sorted(maps.Keys(b.bad)), "\n")
	for _, want := range []string{"policy: style-src-attr", `a dialog opened: alert "hello"`, "a script failed", "missing.png answers 404", "a page asks for http://"} {
		if !strings.Contains(noted, want) {
			t.Errorf("the tab does not note %q; it notes:\n%s", want, noted)
		}
	}
	clear(b.bad)
}
