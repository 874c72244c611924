package demo

import (
	"math/rand/v2"

	"github.com/redrive-dlq/redrive/cmd/internal/demo/providers"
)

// scenario is one way in which a job fails.
type scenario struct {
	kind  string
	share int // of the background noise
	// fault is what the provider answers; empty Mode means that the payload
	// itself is refused.
	fault providers.Fault
	spoil func(*rand.Rand, task) task // makes the payload wrong
	// lasting faults outlive the death: a replay meets them again.
	lasting bool
	// panics: the worker itself broke; only in the history.
	panics bool
}

func answers(status int, code, message string) providers.Fault {
	return providers.Fault{Mode: providers.Answer, Status: status, Code: code, Message: message}
}

func throttled() providers.Fault {
	f := answers(429, "rate_limited", "too many requests for this account")
	f.RetryAfter = "3"
	return f
}

var (
	overload  = answers(503, "unavailable", "temporarily overloaded")
	rotated   = answers(401, "invalid_api_key", "the api key was rotated")
	noContact = answers(404, "not_found", "contact does not exist")
)

var scenarios = []scenario{
	{kind: "send_welcome_email", share: 14, spoil: mistypeAddress},
	{kind: "send_welcome_email", share: 8, fault: overload},
	{kind: "send_welcome_email", share: 4, fault: throttled()},
	{kind: "send_receipt", share: 6, fault: overload},
	{kind: "send_receipt", share: 4, spoil: mistypeAddress},
	{kind: "charge_card", share: 6, fault: overload},
	{kind: "charge_card", share: 5, spoil: declineCard},
	{kind: "charge_card", share: 2, fault: providers.Fault{Mode: providers.HangAfter}},
	{kind: "send_invoice", share: 6, fault: overload},
	{kind: "send_invoice", share: 3, fault: providers.Fault{Mode: providers.Hang}},
	{kind: "sync_contact", share: 8, fault: noContact, lasting: true},
	{kind: "sync_contact", share: 4, fault: throttled()},
	{kind: "sync_contact", share: 2, fault: rotated},
	{kind: "resize_image", share: 5, spoil: hugeImage},
	{kind: "resize_image", share: 4, fault: overload},
	{kind: "deliver_webhook", share: 6, fault: answers(500, "internal", "the endpoint answered with an error page")},
	{kind: "deliver_webhook", share: 5, fault: answers(410, "gone", "the endpoint was removed"), lasting: true},
	{kind: "refund_payment", share: 3, fault: overload},
	{kind: "refund_payment", share: 1, fault: throttled()},
	{kind: "import_catalog", share: 4, panics: true},
	{kind: "import_catalog", share: 3, fault: answers(422, "invalid_feed", "column price is missing"), lasting: true},
	{kind: "update_search_index", share: 6, fault: overload},
	{kind: "update_search_index", share: 3, fault: answers(409, "version_conflict", "a newer revision is indexed already"), lasting: true},
}

func mistypeAddress(r *rand.Rand, t task) task {
	switch a := t.(type) {
	case sendWelcomeEmail:
		a.ToEmail = typo(r)
		return a
	case sendReceipt:
		a.ToEmail = typo(r)
		return a
	}
	return t
}

func declineCard(_ *rand.Rand, t task) task {
	if a, ok := t.(chargeCard); ok {
		a.CardToken = "tok_declined"
		return a
	}
	return t
}

func hugeImage(_ *rand.Rand, t task) task {
	if a, ok := t.(resizeImage); ok {
		a.Width, a.Height = 12_000, 9_000
		return a
	}
	return t
}

// draw picks a scenario of the background noise by its share.
func draw(r *rand.Rand, allowed func(scenario) bool) scenario {
	total := 0
	for _, s := range scenarios {
		if allowed(s) {
			total += s.share
		}
	}
	n := r.IntN(total)
	for _, s := range scenarios {
		if !allowed(s) {
			continue
		}
		if n < s.share {
			return s
		}
		n -= s.share
	}
	panic("unreachable: shares add up to total")
}

// failure is what the worker reports when the scenario happens to a payload.
func (s scenario) failure(t task) *failure {
	e := t.effect()
	switch {
	case s.spoil != nil:
		if no := providers.Check(e.Provider, e.Resource, e.Body); no != nil {
			return refused(e.Provider, no.Status, no.Code, no.Message, "").of(e)
		}
	case s.fault.Mode == providers.Answer:
		return refused(e.Provider, s.fault.Status, s.fault.Code, s.fault.Message, s.fault.RetryAfter).of(e)
	case s.fault.Mode != "":
		return transport(e.Provider, nil).of(e)
	}
	return &failure{Class: "runtime.boundsError", Message: "index out of range [12] with length 12", Code: "panic"}
}
