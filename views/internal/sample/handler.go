package sample

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"net/http"

	"github.com/a-h/templ"

	"github.com/redrive-dlq/redrive/static"
)

// Handler serves the samples under /p/, their names under /, and the bundle,
// with the console's content security policy.
func Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle(static.Prefix, static.Handler())
	mux.HandleFunc("GET /p/{name}", servePage)
	mux.HandleFunc("GET /{$}", serveIndex)
	return mux
}

// Policy is a content security policy as strict as the console's.
func Policy(nonce string) string {
	return "default-src 'none'; script-src 'nonce-" + nonce + "'; style-src 'self'; connect-src 'self'; " +
		"img-src 'self' data:; font-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
}

func serveIndex(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	for _, one := range All("") {
		fmt.Fprintf(w, "/p/%s?theme=dark\n", one.Name)
	}
}

func servePage(w http.ResponseWriter, r *http.Request) {
	for _, one := range All(r.URL.Query().Get("theme")) {
		if one.Name != r.PathValue("name") {
			continue
		}
		nonce := rand.Text()
		var out bytes.Buffer
		if err := one.View.Render(templ.WithNonce(r.Context(), nonce), &out); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", Policy(nonce))
		_, _ = w.Write(out.Bytes()) // a reader that went away is nobody's error
		return
	}
	http.NotFound(w, r)
}
