package acceptance

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/redrive-dlq/redrive/views/route"
)

// hand is a way to use the pages: with a pointer, with keys, without scripts.
type hand struct {
	*tab
	press  func(selector string)        // what leads to another page
	write  func(selector, text string)  // into a field that is empty or is replaced
	choose func(group, selector string) // one of a group of radios
	first  func(selector string)        // the first choice of a select
	unfold func(selector string)        // a part that opens
	at     func()                       // what is looked at on each page
}

// send submits the form of the page.
func (h hand) send() { h.t.Helper(); h.press(`main form[method=post] button[type=submit]`) }

// until reloads the page, as one does without scripts, until it has something.
func (h hand) until(selector string) {
	h.t.Helper()
	path := h.path()
	for deadline := time.Now().Add(patience); !h.offers(selector); time.Sleep(200 * time.Millisecond) {
		if time.Now().After(deadline) {
			h.t.Fatalf("waited in vain for %s\n%s", selector, h.here())
		}
		h.open(path)
	}
}

// refunds captures dead refunds of a tenant of its own: three may be replayed,
// and one was refused for its input.
func refunds(t *testing.T, d *demoProcess, tenant string) {
	t.Helper()
	for i, class := range []string{"ServiceUnavailable", "ServiceUnavailable", "ServiceUnavailable", "InvalidRequest"} {
		id := fmt.Sprintf("%s-%d", tenant, i)
		code := map[string]int{"ServiceUnavailable": 503, "InvalidRequest": 400}[class]
		// The payload's bytes are as River keeps them, so that its target can carry them.
		document := fmt.Sprintf(`{"job_type":"refund_payment","job_id":%[1]q,"idempotency_key":"refund:%[1]s","entity":"order:%[1]s","tenant":%[2]q,
			"payload":{"currency": "EUR", "order_id": %[1]q, "refund_key": "refund:%[1]s", "amount_cents": 100},"payload_version":1,
			"attempts":[{"at":%[3]q,"error_class":%[4]q,"message":"payments answered %[5]d","http_status":%[5]d,"side_effect":"none"}]}`,
			id, tenant, time.Now().Add(-time.Hour).UTC().Format(time.RFC3339), class, code)
		d.capture(t, []byte(document))
	}
}

// batchByHand takes refunds from the list of jobs to a report, over every page
// of a batch, and then holds a type and lets it go.
func (h hand) batchByHand(second hand, tenant, held string) {
	h.t.Helper()
	refunds(h.t, h.demo, tenant)
	h.open(route.JobsWhere(route.ParamQuery, "tenant:"+tenant, route.ParamEnvironment, "production"))
	h.at()
	h.press(`form[data-selecting] button[value="all"]`)
	h.says("4 jobs that match", "Planning sends nothing")
	h.at()
	h.write("#reason", "the payment provider is back")
	h.send()
	batch := h.path()[len(route.Batches)+1:]
	h.until("#verdicts")
	h.says("3 of 4 jobs of refund_payment can be replayed", "Invalid input")
	h.at()

	h.press("#fix")
	h.at()
	h.first("#kind")
	h.write("#ref", "payments 9.2")
	h.write("#reason", "it takes these orders now")
	h.send()
	h.until("#review")
	h.says("4 of 4 jobs of refund_payment can be replayed")

	h.press("#review")
	h.says("may move money 4 times", "if it is confirmed now")
	h.at()
	h.choose("when", `input[name=when][value=now]`)
	h.write("#rate", "2")
	h.write("#canary", "0")
	h.send()
	h.agree(batch)
	h.says("A second person has to approve it.")
	h.at()

	second.open(route.Batches)
	second.at()
	second.open(route.Batch(batch))
	second.press("#approve")
	second.agree(batch)

	h.open(route.Batch(batch))
	h.until("#pause")
	h.says("Leaving now", "at most 2 a minute")
	h.at()
	h.press("#pause")
	h.says("Paused by oncall@demo.test")
	h.at()
	h.press("#resume")
	h.at()
	h.send()
	h.press("#rate")
	h.says("A confirmed batch only gets slower")
	h.at()
	h.press(`main a[href="` + route.Batch(batch) + `"].btn`)
	h.press("#cancel")
	h.says("This stops")
	h.at()
	h.write("#reason", "enough of them for a test")
	h.send()
	h.until("#totals")
	h.says("All that was planned", "approver@demo.test")
	h.at()
	h.holdByHand(held)
}

// agree is the page that wants a phrase, for either person.
func (h hand) agree(batch string) {
	h.t.Helper()
	h.says("This may move money 4 times", "PRODUCTION")
	h.at()
	h.write("#phrase", "replay 4 refund_payment in production")
	h.send()
	if got := h.path(); got != route.Batch(batch) {
		h.t.Fatalf("agreeing leads to %s\n%s", got, h.here())
	}
}

// holdByHand holds a type where no other test replays it, says why, and lifts.
func (h hand) holdByHand(jobType string) {
	h.t.Helper()
	h.open(route.Types)
	h.unfold(`tr:has(a[href="` + route.Type(jobType) + `"]) summary`)
	h.press(`form:has(input[value="` + jobType + `"]):has(input[value="development"]) button`)
	h.open(route.Type(jobType))
	h.says("Held", "oncall@demo.test")
	h.at()
	h.open(route.Holds)
	h.at()
	row := `.hold-row[data-what="All replays of ` + jobType + ` in development"]`
	h.press(row + ` a[href$="/explain"]`)
	h.at()
	h.write("#reason", "looking at "+jobType)
	h.send()
	h.press(row + ` a[href$="/lift"]`)
	h.at()
	h.write("#reason", "it is fine")
	h.send()
	if strings.Contains(h.main(), "looking at "+jobType) {
		h.t.Errorf("the hold is still in force\n%s", h.here())
	}
}

// pointer uses a page as most people do.
func pointer(b *tab, at func()) hand {
	return hand{
		tab: b, at: at, write: b.fill,
		press: func(selector string) {
			b.t.Helper()
			if status := b.follow(selector); status != http.StatusOK {
				b.t.Fatalf("%s leads to status %d\n%s", selector, status, b.here())
			}
		},
		choose: func(_, selector string) { b.do(chromedp.Click(chromedp.CSS(selector), chromedp.NodeVisible)) },
		first: func(selector string) {
			b.read(fmt.Sprintf(`document.querySelector(%q).selectedIndex = 1`, selector))
		},
		unfold: func(selector string) { b.do(chromedp.Click(chromedp.CSS(selector), chromedp.NodeVisible)) },
	}
}

// keys uses a page with nothing but the keyboard; the focus is always seen.
func keys(b *tab) hand {
	return hand{
		tab: b, at: func() {},
		press: func(selector string) { b.t.Helper(); b.tabTo(selector); b.enter() },
		write: func(selector, text string) {
			b.t.Helper()
			b.tabTo(selector)
			b.do(chromedp.KeyEvent("a", chromedp.KeyModifiers(2))) // Control: what stands there is replaced
			b.insert(text)
		},
		choose: func(group, selector string) {
			b.t.Helper()
			b.tabTo(fmt.Sprintf("input[name=%s]:checked", group))
			for range 5 {
				if b.read(fmt.Sprintf(`document.querySelector(%q).checked`, selector)) == "true" {
					return
				}
				b.do(chromedp.KeyEvent(kb.ArrowDown))
			}
			b.t.Fatalf("the arrow keys never choose %s\n%s", selector, b.here())
		},
		first: func(selector string) { // by the letter it begins with
			b.t.Helper()
			b.tabTo(selector)
			b.do(chromedp.KeyEvent("A"))
			if b.read(fmt.Sprintf(`document.querySelector(%q).selectedIndex`, selector)) != "1" {
				b.t.Fatalf("a letter doesn't choose in %s\n%s", selector, b.here())
			}
		},
		unfold: func(selector string) { b.t.Helper(); b.tabTo(selector); b.do(chromedp.KeyEvent(kb.Enter)) },
	}
}

// TestBatchPagesAreAccessible lets axe look at every page that a batch goes
// through, and at holds, in both themes and two widths.
func TestBatchPagesAreAccessible(t *testing.T) {
	t.Parallel()
	script := axeScript(t)
	looking := func(b *tab) hand { return pointer(b, func() { b.t.Helper(); b.axe(script) }) }
	first, second := newTab(t), newTab(t)
	first.signIn("oncall")
	second.signIn("approver")
	looking(first).batchByHand(looking(second), "axe", "import_catalog")
}

// TestBatchByKeyboardAlone orders, approves and stops a batch without a
// pointing device.
func TestBatchByKeyboardAlone(t *testing.T) {
	t.Parallel()
	first, second := newTab(t), newTab(t)
	first.signIn("oncall")
	second.signIn("approver")
	keys(first).batchByHand(keys(second), "keyboard", "sync_contact")
}

// TestBatchWithoutScript does so in a browser that runs no scripts.
func TestBatchWithoutScript(t *testing.T) {
	t.Parallel()
	first, second := newTab(t), newTab(t)
	for b, role := range map[*tab]string{first: "oncall", second: "approver"} {
		if _, err := chromedp.Call(b.ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true}); err != nil {
			t.Fatal(err)
		}
		b.signIn(role)
	}
	pointer(first, func() {}).batchByHand(pointer(second, func() {}), "noscript", "resize_image")
}
