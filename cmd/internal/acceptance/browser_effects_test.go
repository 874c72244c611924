package acceptance

import (
	"net/http"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/redrive-dlq/redrive/views/route"
)

// openKey opens the page of the one production job of a key.
func (b *tab) openKey(key string) {
	b.t.Helper()
	b.open(route.Job(jobPath(b.demo.find(b.t, "env:production status:open key:"+key)[0])))
}

// settle says how an unknown effect ended: happened, with the provider's id, or not.
func (b *tab) settle(ended, id string) {
	b.t.Helper()
	if b.offers(`[data-action="replay"]`) {
		b.t.Errorf("a replay is offered although nobody knows the effect\n%s", b.here())
	}
	b.follow(`[data-action="settle"]`)
	b.do(chromedp.Click(chromedp.CSS(`input[name="ended"][value="` + ended + `"]`)))
	if id != "" {
		b.fill("#effect-id", id)
	}
	b.fill("#reason", "looked it up at the provider")
	b.follow(`main form button[type=submit]`)
}

// replayNow confirms a single replay.
func (b *tab) replayNow(reason string) {
	b.t.Helper()
	b.follow(`[data-action="replay"]`)
	b.fill("#reason", reason)
	b.follow(`main form button[type=submit]`)
	b.wait("the outcome", recovered)
}

// replayMoney takes one job that moves money to a plan, a review, a confirmation
// and a second person.
func (b *tab) replayMoney(reason string, second *tab) {
	b.t.Helper()
	job := b.path()
	b.follow(`[data-action="replay"]`)
	b.says("may move money", "second person")
	b.follow(`main a[href^="` + route.NewBatch + `"]`)
	b.fill("#reason", reason)
	b.follow(`main form[method=post] button[type=submit]`)
	batch := b.path()
	b.wait("the plan", `document.querySelector("#verdicts") !== null`)
	b.follow("#review")
	b.read(`document.querySelector("input[name=when][value=now]").click(), ""`)
	b.follow(`main form[method=post] button[type=submit]`)
	for _, who := range []*tab{b, second} {
		if who == second {
			who.open(batch)
			who.follow("#approve")
		}
		who.says("move money once")
		who.fill("#phrase", who.read(`document.querySelector("#the-phrase").innerText`))
		if status := who.follow(`main form[method=post] button[type=submit]`); status != http.StatusOK {
			b.t.Fatalf("answered %d\n%s", status, who.here())
		}
	}
	b.open(job)
	b.wait("the outcome", recovered)
}

// TestUnknownChargesAreSettledFirst: one charge happened and one did not; the
// demo's provider knows which, and a person tells. Neither is made twice.
func TestUnknownChargesAreSettledFirst(t *testing.T) {
	t.Parallel()
	b := newTab(t)
	b.signIn("oncall")
	const happened, not = "charge:8834:a1", "charge:8836:c3"

	before := b.demo.effects(t, "payments/charges", "production", happened)
	if len(before) != 1 || len(b.demo.effects(t, "payments/charges", "production", not)) != 0 {
		t.Fatalf("the demo's story is another: %+v", before)
	}
	b.openKey(happened)
	b.settle("happened", before[0].ID)
	b.says("Resolved", before[0].ID)
	if b.offers(`[data-action="replay"]`) {
		t.Error("a charge that happened may be replayed")
	}
	b.openKey(not)
	b.settle("not", "")
	approver := newTab(t)
	approver.signIn("approver")
	b.replayMoney("it did not happen, so it may now", approver)

	for _, key := range []string{happened, not} {
		if made := b.demo.effects(t, "payments/charges", "production", key); len(made) != 1 || made[0].Requests != 1 {
			t.Errorf("%s: the card was charged %d times: %+v", key, len(made), made)
		}
	}
}

// TestTwoJobsOfOneKeyHaveOneEffect replays one of two jobs that share a key;
// the other ends with it, by itself on an open page.
func TestTwoJobsOfOneKeyHaveOneEffect(t *testing.T) {
	t.Parallel()
	const key = "receipt:8821:shared"
	b, other := newTab(t), newTab(t)
	b.signIn("operator")
	other.signIn("viewer")
	await(t, "both jobs", func() bool { return len(b.demo.find(t, "env:production status:open key:"+key)) == 2 })
	jobs := b.demo.find(t, "env:production status:open key:"+key)
	other.open(route.Job(jobPath(jobs[1])))
	b.open(route.Job(jobPath(jobs[0])))
	b.replayNow("the provider is back")
	other.wait("the end of the other job", `!document.querySelector(".page-head").innerText.includes("Open")`)
	if sent := b.demo.effects(t, "mail/messages", "production", key); len(sent) != 1 || sent[0].Requests != 1 {
		t.Fatalf("%d mails for one key: %+v", len(sent), sent)
	}
	b.open(route.Job(jobPath(jobs[1])))
	if b.offers(`[data-action="replay"]`) {
		t.Errorf("the other job may still be replayed\n%s", b.here())
	}
}
