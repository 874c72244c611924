package acceptance

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// focusShown tells that the element with the focus looks like it.
const focusShown = `(() => {
	const style = getComputedStyle(document.activeElement);
	return (style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0) || style.boxShadow !== "none";
})()`

// tabTo presses Tab until an element has the focus.
func (b *tab) tabTo(selector string) {
	b.t.Helper()
	for range 150 {
		b.do(chromedp.KeyEvent(kb.Tab))
		if b.read(focusShown) != "true" && b.read(`document.activeElement === document.body`) != "true" {
			b.t.Errorf("%s: the focus can't be seen on %s", b.path(), b.read(`document.activeElement.outerHTML.slice(0, 120)`))
		}
		if b.read(fmt.Sprintf(`document.activeElement.matches(%q)`, selector)) == "true" {
			return
		}
	}
	b.t.Fatalf("Tab never reaches %s\n%s", selector, b.here())
}

// enter presses Enter and waits for the page that this leads to.
func (b *tab) enter() {
	b.t.Helper()
	if status := b.lands("Enter", chromedp.KeyEvent(kb.Enter)); status != 200 {
		b.t.Fatalf("Enter leads to status %d\n%s", status, b.here())
	}
}

// keys presses keys one after the other.
func (b *tab) keys(keys ...string) {
	b.t.Helper()
	for _, key := range keys {
		b.do(chromedp.KeyEvent(key))
	}
}

// TestKeyboardAlone corrects and replays a job without a pointing device.
func TestKeyboardAlone(t *testing.T) {
	t.Parallel()
	b := newTab(t)
	b.open("/login")
	b.tabTo("#email")
	b.insert("oncall@demo.test")
	b.tabTo("#password")
	b.insert("demo-only-passphrase")
	b.enter()

	// No single key changes anything; g and a letter go, / searches.
	b.wait("the script", `document.documentElement.classList.contains("js")`)
	if status := b.lands("g j", chromedp.KeyEvent("g"), chromedp.KeyEvent("j")); status != 200 || !strings.HasPrefix(b.path(), "/jobs") {
		t.Fatalf("g j leads to %s, status %d", b.path(), status)
	}
	b.keys("/")
	if got := b.read(`document.activeElement.name`); got != "q" {
		t.Fatalf("/ leads to the field %q", got)
	}
	b.insert("type:send_receipt category:invalid_input status:open")
	b.enter()
	b.keys("j", "j", "k")
	if got := b.read(`document.querySelector("[data-row]").contains(document.activeElement)`); got != "true" {
		t.Fatalf("j j k is not at the first row\n%s", b.here())
	}
	b.enter()
	job := b.path()

	b.tabTo(`[data-action="edit"]`)
	b.enter()
	b.tabTo("#edit-0")
	b.insert("lena.hofer@example.com")
	b.tabTo("#reason")
	b.insert("typed with the keyboard")
	b.tabTo("main form button[type=submit]")
	b.enter()
	b.says("Version 1 and the new version 2")
	b.tabTo("main form button[type=submit]")
	b.enter()
	b.tabTo(`[data-action="replay"]`)
	b.enter()
	b.tabTo("#reason")
	b.insert("replayed with the keyboard")
	b.tabTo("main form button[type=submit]")
	b.enter()
	if got := b.path(); !strings.HasPrefix(got, job) {
		t.Fatalf("the replay leads to %s", got)
	}
	b.wait("the outcome", `document.querySelector("main").innerText.includes("Recovered")`)
}
