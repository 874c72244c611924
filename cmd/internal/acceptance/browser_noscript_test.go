package acceptance

import (
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/redrive-dlq/redrive/cmd/internal/demo"
	"github.com/redrive-dlq/redrive/views/route"
)

// TestWithoutScript corrects and replays a job in a browser that runs none;
// the outcome is there on reload.
func TestWithoutScript(t *testing.T) {
	t.Parallel()
	b := newTab(t)
	if _, err := chromedp.Call(b.ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true}); err != nil {
		t.Fatal(err)
	}
	b.signIn("operator")
	if b.read(`document.documentElement.classList.contains("js")`) == "true" {
		t.Fatal("a script ran")
	}
	found := b.demo.find(t, "type:send_welcome_email category:invalid_input status:open env:production -key:"+demo.ArticleSendID)[0]
	job := route.Job(jobPath(found))
	b.open(job)
	b.says("A replay is blocked")
	b.follow(`[data-action="edit"]`)
	// A refusal keeps what was typed.
	b.fill("#edit-0", "still@@wrong.example.com")
	b.fill("#reason", "typed without scripts")
	b.follow(`main form button[type=submit]`)
	if got := b.read(`document.querySelector("#reason").value`); got != "typed without scripts" || !b.offers("#edit-0[aria-invalid=true]") {
		t.Errorf("a wrong value is not refused at its place; the reason is %q\n%s", got, b.here())
	}
	b.fill("#edit-0", "right@example.com")
	b.follow(`main form button[type=submit]`)
	b.says("Version 1 and the new version 2")
	b.follow(`main form button[type=submit]`)
	b.follow(`[data-action="replay"]`)
	b.fill("#reason", "replayed without scripts")
	b.follow(`main form button[type=submit]`)
	for deadline := time.Now().Add(patience); b.read(recovered) != "true"; time.Sleep(200 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not recovered\n%s", b.here())
		}
		b.open(job)
	}
}
