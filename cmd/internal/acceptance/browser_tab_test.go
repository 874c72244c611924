package acceptance

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

const (
	// patience bounds every wait for a page; a busy machine needs it.
	patience = 40 * time.Second
	// tabLife bounds a whole test.
	tabLife = 4 * time.Minute
)

// theBrowser is one Chromium for all tests; each tab has cookies of its own.
var theBrowser struct {
	sync.Once
	ctx  context.Context
	stop func()
	err  error
}

func startBrowser() {
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		// Containers have no namespaces for the sandbox, and the pages are ours.
		chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true),
		chromedp.Flag("disable-component-update", true),
		chromedp.WSURLReadTimeout(60*time.Second),
	)
	if path := os.Getenv("CHROME"); path != "" {
		options = append(options, chromedp.ExecPath(path))
	}
	alloc, stopAlloc := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, stop := chromedp.NewContext(alloc)
	theBrowser.ctx, theBrowser.stop = ctx, func() { stop(); stopAlloc() }
	theBrowser.err = chromedp.Do(ctx, chromedp.Navigate("about:blank"))
	if theBrowser.err != nil && strings.Contains(theBrowser.err.Error(), "executable file not found") {
		theBrowser.err = fmt.Errorf("%w\nthe browser tests need Chromium or Chrome (scripts/setup browser installs it); the others: go test -short ./...", theBrowser.err)
	}
}

func stopBrowser() {
	if theBrowser.stop != nil {
		theBrowser.stop()
	}
}

// tab is one browser tab at the demo, signed in as nobody at first. It notes
// everything that must not happen on any page.
type tab struct {
	t    *testing.T
	ctx  context.Context
	demo *demoProcess
	mu   sync.Mutex
	bad  map[string]int // what, and how often; guarded by mu
}

// watchPolicy tells the console what the content policy refused, from the first
// moment of a page on, so that nothing is missed between two pages.
const watchPolicy = `document.addEventListener("securitypolicyviolation", (event) =>
	console.error("policy: " + event.effectiveDirective + " " + event.blockedURI + " " + event.sample));`

func newTab(t *testing.T) *tab {
	t.Helper()
	d := demoWorld(t)
	theBrowser.Do(startBrowser)
	if theBrowser.err != nil {
		t.Fatal(theBrowser.err)
	}
	ctx, stop := chromedp.NewContext(theBrowser.ctx, chromedp.WithNewBrowserContext())
	t.Cleanup(stop)
	ctx, cancel := context.WithTimeout(ctx, tabLife)
	t.Cleanup(cancel)
	b := &tab{t: t, ctx: ctx, demo: d, bad: map[string]int{}}
	if err := chromedp.Listen(ctx, b.note); err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.Call(ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: watchPolicy}); err != nil {
		t.Fatal(err)
	}
	b.do(chromedp.EmulateViewport(1440, 900))
	t.Cleanup(b.clean)
	return b
}

// note runs on the goroutine that reads the browser's messages.
func (b *tab) note(event any) {
	switch e := event.(type) {
	case *page.EventJavascriptDialogOpening:
		b.blame("a dialog opened: %s %q", e.Type, e.Message)
		go func() { // the page stands still until it is closed; no other command may run here
			_, _ = chromedp.Call(b.ctx, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{})
		}()
	case *runtime.EventExceptionThrown:
		b.blame("a script failed: %s", e.ExceptionDetails.Text)
	case *runtime.EventConsoleAPICalled:
		if e.Type == "error" || e.Type == "warning" {
			var words []string
			for _, arg := range e.Args {
				words = append(words, string(arg.Value))
			}
			b.blame("the console says: %s", strings.Join(words, " "))
		}
	case *log.EventEntryAdded:
		// The network source repeats answers such as 403, which tests look at themselves.
		if e.Entry.Level == "error" && e.Entry.Source != "network" {
			b.blame("the browser says: %s %s", e.Entry.Source, e.Entry.Text)
		}
	case *network.EventResponseReceived:
		// Tests fetch what must be refused, and look at the answer themselves.
		if e.Type != "Document" && e.Response.Status >= 400 && (e.Type != "Fetch" || e.Response.Status >= 500) {
			b.blame("%s %s answers %v", e.Type, e.Response.URL, e.Response.Status)
		}
	case *network.EventRequestWillBeSent:
		// The browser's own icons, of a date field for one, are data.
		if u := e.Request.URL; !strings.HasPrefix(u, b.demo.base+"/") && !strings.HasPrefix(u, "data:image/svg+xml") {
			b.blame("a page asks for %.200s", u)
		}
	}
}

func (b *tab) blame(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.bad[fmt.Sprintf(format, args...)]++
}

// clean reports what happened that must not.
func (b *tab) clean() {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for what, times := range b.bad {
		b.t.Errorf("in the browser, %d times: %s", times, what)
	}
	clear(b.bad)
}

// do runs steps and fails the test when one does not work.
func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		b.t.Fatalf("%v\n%s", err, b.here())
	}
}

// open goes to a path and returns the answer's status.
func (b *tab) open(path string) int {
	b.t.Helper()
	return b.visit(b.demo.base + path)
}

// visit goes to an address and returns the answer's status.
func (b *tab) visit(address string) int {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	res, err := chromedp.Run(ctx, chromedp.NavigateResponse(address))
	if err != nil {
		b.t.Fatalf("open %s: %v", address, err)
	}
	return int(res.Status)
}

// follow clicks what leads to another page and returns that page's status.
func (b *tab) follow(selector string) int {
	b.t.Helper()
	return b.lands("click "+selector, chromedp.Click(chromedp.CSS(selector), chromedp.NodeVisible))
}

// gone is what the browser says of an element that a live page has taken away
// between finding it and clicking it: nothing was clicked then.
const gone = "Could not find node with given id"

// lands does what leads to another page and returns that page's status.
func (b *tab) lands(what string, steps ...chromedp.Action[chromedp.Void]) int {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	res, err := chromedp.RunResponse(ctx, steps...)
	for err != nil && strings.Contains(err.Error(), gone) && ctx.Err() == nil {
		res, err = chromedp.RunResponse(ctx, steps...)
	}
	if err != nil {
		b.t.Fatalf("%s: %v\n%s", what, err, b.here())
	}
	return int(res.Status)
}

// fill types a text in place of what stands in a field.
func (b *tab) fill(selector, text string) {
	b.t.Helper()
	b.do(chromedp.Click(chromedp.CSS(selector), chromedp.NodeVisible))
	b.read(`document.activeElement.select(), ""`)
	b.insert(text)
}

// insert types a text where the cursor is.
func (b *tab) insert(text string) {
	b.t.Helper()
	if _, err := chromedp.Call(b.ctx, input.InsertText, input.InsertTextParams{Text: text}); err != nil {
		b.t.Fatal(err)
	}
}

// read evaluates an expression to a text.
func (b *tab) read(expression string) string {
	b.t.Helper()
	text, err := chromedp.Run(b.ctx, chromedp.Evaluate[string]("String("+expression+")"))
	if err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
	return text
}

// wait goes on as soon as a condition of the page holds.
func (b *tab) wait(what, condition string) {
	b.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		// An error is the moment between two pages.
		holds, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool]("Boolean("+condition+")"))
		if err == nil && holds {
			return
		}
		if time.Now().After(deadline) || b.ctx.Err() != nil {
			b.t.Fatalf("waited in vain for %s (%v)\n%s", what, err, b.here())
		}
	}
}

// says fails the test unless the main part of the page holds each text.
func (b *tab) says(texts ...string) {
	b.t.Helper()
	got := b.main()
	for _, text := range texts {
		if !strings.Contains(got, text) {
			b.t.Errorf("the page does not say %q\n%s", text, b.here())
		}
	}
}

// main is the text of the page's main part, as a person sees it.
func (b *tab) main() string {
	b.t.Helper()
	return b.read(`document.querySelector("main")?.innerText ?? document.body.innerText`)
}

// path is where the browser is.
func (b *tab) path() string {
	b.t.Helper()
	return b.read(`location.pathname + location.search`)
}

// offers tells whether the page has such an element.
func (b *tab) offers(selector string) bool {
	b.t.Helper()
	return b.read(fmt.Sprintf(`document.querySelector(%q) !== null`, selector)) == "true"
}

// here describes the page for a failure's message.
func (b *tab) here() string {
	text, err := chromedp.Run(b.ctx, chromedp.Evaluate[string](
		`location.href + "\n" + (document.querySelector("main") ?? document.body).innerText.slice(0, 3000)`))
	if err != nil {
		return "the page can't be read: " + err.Error()
	}
	return "--- " + text + "\n---"
}

// signIn signs in with a form of its own, as a person types.
func (b *tab) signIn(role string) {
	b.t.Helper()
	b.open("/login")
	b.fill("#email", role+"@demo.test")
	b.fill("#password", "demo-only-passphrase")
	if status := b.follow("form.panel button[type=submit]"); status != 200 {
		b.t.Fatalf("signing in as %s answers %d\n%s", role, status, b.here())
	}
	if who := b.read(`document.querySelector("header").textContent`); !strings.Contains(who, role+"@demo.test") {
		b.t.Fatalf("not signed in as %s\n%s", role, b.here())
	}
}

// post sends a form from the page and returns the answer's status.
func (b *tab) post(path string, fields url.Values) int {
	b.t.Helper()
	status, err := chromedp.Run(b.ctx, chromedp.Evaluate[int](fmt.Sprintf(
		`fetch(%q, { method: "POST", body: new URLSearchParams(%q) }).then((answer) => answer.status)`, path, fields.Encode()), chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatalf("post to %s: %v", path, err)
	}
	return status
}

// prefers sets what the system prefers, light or dark.
func (b *tab) prefers(theme string) {
	b.t.Helper()
	if _, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}},
	}); err != nil {
		b.t.Fatal(err)
	}
}
