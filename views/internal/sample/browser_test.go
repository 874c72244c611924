package sample_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/redrive-dlq/redrive/static"
	"github.com/redrive-dlq/redrive/views/internal/sample"
)

// recorder keeps what the policy refused, from the first moment of a page.
const recorder = `window.violations = [];
document.addEventListener("securitypolicyviolation", (event) =>
  violations.push("policy: " + event.effectiveDirective + " " + event.blockedURI));`

// checks runs axe and looks for what a policy or a narrow window would spoil.
// It answers with one line for each problem.
const checks = `(async () => {
  const found = [];
  // The rules are about structure, the same at any look, but for contrast.
  const only = RULES.length ? { runOnly: RULES } : {};
  const result = await axe.run(document, { resultTypes: ["violations"], preload: false, ...only });
  for (const rule of result.violations)
    for (const node of rule.nodes)
      found.push(rule.id + ": " + node.target.join(" ") + ": " + node.failureSummary.split("\n")[1]);
  found.push(...violations);
  if (document.documentElement.scrollWidth > innerWidth)
    found.push("the page scrolls sideways: " + document.documentElement.scrollWidth + " > " + innerWidth);
  if (!document.documentElement.classList.contains("js")) found.push("the script did not run");
  return found;
})()`

// TestPagesInABrowser opens every sample, light and dark, wide and narrow.
func TestPagesInABrowser(t *testing.T) {
	t.Parallel()
	axe, err := os.ReadFile(filepath.Join("..", "..", "..", "static", "node_modules", "axe-core", "axe.min.js"))
	if err != nil || !static.Built() {
		t.Skip("the styles and scripts are not built: run make build first")
	}
	ctx := browser(t)
	mux := http.NewServeMux()
	mux.Handle("/", sample.Handler())
	mux.HandleFunc("/bad", bad)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	// A page with known mistakes first: a check that finds nothing there would
	// find nothing anywhere.
	mistakes := strings.Join(problems(ctx, t, server.URL+"/bad", string(axe), `[]`), "\n")
	for _, mistake := range []string{"label: #unlabelled", "policy: style-src-attr", "scrolls sideways", "script did not run"} {
		if !strings.Contains(mistakes, mistake) {
			t.Errorf("the checks do not see %q; they see:\n%s", mistake, mistakes)
		}
	}
	for _, look := range []struct {
		theme string
		width int64
		rules string
	}{{"light", 1440, `[]`}, {"dark", 1440, `["color-contrast"]`}, {"light", 390, `["target-size", "scrollable-region-focusable"]`}} {
		if err := chromedp.Do(ctx, chromedp.EmulateViewport(look.width, 900)); err != nil {
			t.Fatal(err)
		}
		for _, one := range sample.All(look.theme) {
			found := problems(ctx, t, server.URL+"/p/"+one.Name+"?theme="+look.theme, string(axe), look.rules)
			for _, problem := range found {
				t.Errorf("%s, %s, %d px: %s", one.Name, look.theme, look.width, problem)
			}
		}
	}
}

// bad is a page that breaks every rule that is checked here.
func bad(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", sample.Policy("none"))
	_, _ = io.WriteString(w, `<!DOCTYPE html><html lang="en"><title>Bad</title><main><h1 style="color: red">Bad</h1>`+
		`<input id="unlabelled"><pre>`+strings.Repeat("wide ", 1000)+`</pre></main></html>`)
}

func browser(t *testing.T) context.Context {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox)
	alloc, stopAlloc := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(stopAlloc)
	ctx, stop := chromedp.NewContext(alloc)
	t.Cleanup(stop)
	ctx, cancel := context.WithTimeout(ctx, 4*time.Minute)
	t.Cleanup(cancel)
	if err := chromedp.Do(ctx, chromedp.Navigate("about:blank")); err != nil {
		if strings.Contains(err.Error(), "executable file not found") {
			t.Skip("no Chromium is installed")
		}
		t.Fatal(err)
	}
	if _, err := chromedp.Call(ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: recorder}); err != nil {
		t.Fatal(err)
	}
	return ctx
}

func problems(ctx context.Context, t *testing.T, url, axe, rules string) []string {
	t.Helper()
	if err := chromedp.Do(ctx, chromedp.Navigate(url)); err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.Run(ctx, chromedp.Evaluate[any](axe+";null")); err != nil {
		t.Fatal(err)
	}
	found, err := chromedp.Run(ctx, chromedp.Evaluate[[]string](strings.ReplaceAll(checks, "RULES", rules), chromedp.EvalAwaitPromise))
	if err != nil {
		t.Fatal(err)
	}
	return found
}
