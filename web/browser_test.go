package web

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/redrive-dlq/redrive/rbac"
	"github.com/redrive-dlq/redrive/static"
)

// A real browser keeps the __Host- cookie on plain loopback, sends what the
// origin check asks for, hides the cookie from scripts and finds nothing that
// the content policy refuses.
func TestSignInInABrowser(t *testing.T) {
	t.Parallel()
	if !static.Built() {
		t.Skip("the styles and scripts are not built: run make build first")
	}
	b := setup(t, func(c *Config) { c.Hosts = []string{"127.0.0.1"} })
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	serving, stopServing := context.WithCancel(context.Background())
	stopped := make(chan error, 1)
	go func() { stopped <- b.server.Serve(serving, listener) }()
	t.Cleanup(func() {
		stopServing()
		if err := <-stopped; err != nil {
			t.Errorf("stop: %v", err)
		}
	})
	base := "http://" + listener.Addr().String()
	ctx := browser(t)
	visit := func(path, want string) {
		t.Helper()
		if err := chromedp.Do(ctx, chromedp.Navigate(base+path)); err != nil {
			t.Fatal(err)
		}
		at(ctx, t, base, want)
	}
	press := func(script, want string) {
		t.Helper()
		if _, err := chromedp.RunResponse(ctx, chromedp.Evaluate[chromedp.Void](script)); err != nil {
			t.Fatal(err)
		}
		at(ctx, t, base, want)
	}
	visit("/account", "/login?next=%2Faccount")
	press(`document.querySelector("[name=email]").value = "auditor@demo.test";
		document.querySelector("[name=password]").value = "not the passphrase";
		document.querySelector("form.panel button").click()`, "/login")
	if text := read(ctx, t, `document.querySelector("[role=alert]").innerText`); !strings.Contains(text, "is wrong") {
		t.Errorf("refused with %q", text)
	}
	press(`document.querySelector("[data-demo-account=auditor]").click()`, "/account")
	if text := read(ctx, t, `document.cookie`); strings.Contains(text, rbac.CookieName) {
		t.Errorf("a script reads the cookie: %s", text)
	}
	for _, path := range []string{"/account", "/account/confirm", "/admin/users", "/nowhere"} {
		visit(path, path)
		if text := read(ctx, t, `document.querySelector("header").textContent`); !strings.Contains(text, "auditor@demo.test") {
			t.Errorf("%s doesn't know who is signed in: %q", path, text)
		}
	}
	if text := read(ctx, t, `document.querySelector("h1").innerText`); text != "There is nothing here" {
		t.Errorf("not found is headed %q", text)
	}
	press(`document.querySelector("form[action='/logout'] button").click()`, "/login")
	visit("/account", "/login?next=%2Faccount")
}

// at checks where the browser is, and that the page there broke no policy.
func at(ctx context.Context, t *testing.T, base, want string) {
	t.Helper()
	location, err := chromedp.Run(ctx, chromedp.Location())
	if err != nil || location != base+want {
		t.Fatalf("at %s, want %s (%v)", location, want, err)
	}
	violations := read(ctx, t, `(() => {
		const o = new ReportingObserver(() => {}, { types: ["csp-violation"], buffered: true });
		o.observe();
		return o.takeRecords().map(r => r.body.effectiveDirective + " " + r.body.blockedURL).join(", ");
	})()`)
	if violations != "" {
		t.Errorf("%s breaks the content policy: %s", want, violations)
	}
}

func read(ctx context.Context, t *testing.T, script string) string {
	t.Helper()
	text, err := chromedp.Run(ctx, chromedp.Evaluate[string](script))
	if err != nil {
		t.Fatal(err)
	}
	return text
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
	return ctx
}
