package acceptance

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// focus describes where the focus is: "here" at the element that is looked
// for, else empty, or the element whose focus can't be seen.
const focus = `(() => {
	const at = document.activeElement, style = getComputedStyle(at);
	const seen = (style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0) || style.boxShadow !== "none";
	if (!seen && at !== document.body) return at.outerHTML.slice(0, 120);
	return at.matches(%q) ? "here" : "";
})()`

// tabTo presses Tab until an element has the focus.
func (b *tab) tabTo(selector string) {
	b.t.Helper()
	for range 150 {
		b.do(chromedp.KeyEvent(kb.Tab))
		switch where := b.read(fmt.Sprintf(focus, selector)); where {
		case "here":
			return
		case "":
		default:
			b.t.Fatalf("%s: the focus can't be seen on %s", b.path(), where)
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

// press is one printable key as a keyboard sends it: its character comes with
// the key, so that a script that takes the key also takes the character.
func press(key string) chromedp.Action[chromedp.Void] {
	return func(ctx context.Context, t *chromedp.Target) (v chromedp.Void, err error) {
		for _, kind := range []input.DispatchKeyEventType{input.DispatchKeyEventTypeKeyDown, input.DispatchKeyEventTypeKeyUp} {
			params := input.DispatchKeyEventParams{Type: kind, Key: key}
			if kind == input.DispatchKeyEventTypeKeyDown {
				params.Text = key
			}
			if _, err = cdp.Call(ctx, t, input.DispatchKeyEvent, params); err != nil {
				return v, err
			}
		}
		return v, nil
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
	if status := b.lands("g j", press("g"), press("j")); status != 200 || !strings.HasPrefix(b.path(), "/jobs") {
		t.Fatalf("g j leads to %s, status %d", b.path(), status)
	}
	b.do(press("/"))
	if got := b.read(`document.activeElement.name`); got != "q" {
		t.Fatalf("/ leads to the field %q", got)
	}
	b.insert("type:resize_image category:invalid_input status:open")
	b.enter()
	b.do(press("j"), press("j"), press("k"))
	if got := b.read(`document.querySelector("[data-row]").contains(document.activeElement)`); got != "true" {
		t.Fatalf("j j k is not at the first row\n%s", b.here())
	}
	b.enter()
	job := b.path()

	b.tabTo(`[data-action="edit"]`)
	b.enter()
	b.tabTo("#edit-0")
	b.insert("1200")
	b.tabTo("#edit-1")
	b.insert("900")
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
	b.wait("the outcome", recovered)
}
