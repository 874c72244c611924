package sample_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/a-h/templ"
	"github.com/chromedp/chromedp"

	"github.com/redrive-dlq/redrive/static"
	"github.com/redrive-dlq/redrive/views/internal/sample"
	"github.com/redrive-dlq/redrive/views/job"
	"github.com/redrive-dlq/redrive/views/route"
)

// liveServer serves a job's page that changes at each event it sends.
func liveServer(t *testing.T) (url string, event chan struct{}) {
	t.Helper()
	event = make(chan struct{})
	var version atomic.Int64
	mux := http.NewServeMux()
	mux.Handle("/", sample.Handler())
	mux.HandleFunc("/live", func(w http.ResponseWriter, r *http.Request) {
		p := sample.Detail("")
		p.Page.Live = "/live/events"
		p.Summary = fmt.Sprintf("summary %d", version.Load())
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", sample.Policy("n"))
		_ = job.Detail(p).Render(templ.WithNonce(r.Context(), "n"), w)
	})
	mux.HandleFunc("/live/events", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = fmt.Fprint(w, ": hello\n\n")
		_ = http.NewResponseController(w).Flush()
		for {
			select {
			case <-r.Context().Done():
				return
			case <-event:
				version.Add(1)
				_, _ = fmt.Fprint(w, "data: changed\n\n")
				_ = http.NewResponseController(w).Flush()
			}
		}
	})
	server := httptest.NewServer(mux)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return server.URL, event
}

// truth waits until an expression is true on the page.
func truth(ctx context.Context, t *testing.T, what, expression string) {
	t.Helper()
	if _, err := chromedp.Run(ctx, chromedp.Poll[bool](expression)); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

func do(ctx context.Context, t *testing.T, steps ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	if err := chromedp.Do(ctx, steps...); err != nil {
		t.Fatal(err)
	}
}

func TestPageUpdatesByItself(t *testing.T) {
	t.Parallel()
	if !static.Built() {
		t.Skip("the styles and scripts are not built: run make build first")
	}
	ctx := browser(t)
	url, event := liveServer(t)
	do(ctx, t, chromedp.Navigate(url+"/live"))
	truth(ctx, t, "first", `document.querySelector(".first-line").textContent.includes("summary 0")`)
	do(ctx, t, chromedp.Click("#stack-1 > summary"), chromedp.SendKeys("#note-text", "half a note"))
	event <- struct{}{}
	// A text that is being typed is not swapped away.
	do(ctx, t, chromedp.Blur("#note-text"))
	event <- struct{}{}
	truth(ctx, t, "updated", `document.querySelector(".first-line").textContent.includes("summary 2")`)
	truth(ctx, t, "what was opened stays open", `document.querySelector("#stack-1").open`)
	truth(ctx, t, "what was typed stays", `document.querySelector("#note-text").value === "half a note"`)
	truth(ctx, t, "connected", `document.querySelector("#offline").hidden`)
}

func TestKeysAndTheme(t *testing.T) {
	t.Parallel()
	if !static.Built() {
		t.Skip("the styles and scripts are not built: run make build first")
	}
	ctx := browser(t)
	server := httptest.NewServer(sample.Handler())
	t.Cleanup(server.Close)
	do(ctx, t, chromedp.Navigate(server.URL+"/p/jobs"))
	do(ctx, t, chromedp.KeyEvent("/"))
	truth(ctx, t, "/ goes to the search box", `document.activeElement.matches("[data-search]")`)
	do(ctx, t, chromedp.KeyEvent("jk?"))
	truth(ctx, t, "keys are text in a field", `document.activeElement.value.endsWith("jk?")`)
	do(ctx, t, chromedp.Blur("[data-search]"), chromedp.KeyEvent("j"), chromedp.KeyEvent("j"), chromedp.KeyEvent("k"), chromedp.KeyEvent("j"))
	truth(ctx, t, "j and k move", `document.activeElement.getAttribute("href") === "/jobs/1001"`)
	do(ctx, t, chromedp.KeyEvent("?"))
	truth(ctx, t, "? opens the help", `document.querySelector("#help").matches(":popover-open")`)
	do(ctx, t, chromedp.KeyEvent("?"), chromedp.Click("[data-theme-switch]"))
	truth(ctx, t, "the theme is kept", `document.cookie.includes("theme=" + document.documentElement.dataset.theme)`)
	answer, err := chromedp.RunResponse(ctx, chromedp.KeyEvent("g"), chromedp.KeyEvent("b"))
	if err != nil {
		t.Fatal(err)
	}
	if want := server.URL + route.Batches; answer.URL != want {
		t.Errorf("g b goes to %s, want %s", answer.URL, want)
	}
}
