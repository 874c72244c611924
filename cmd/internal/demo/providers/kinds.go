package providers

import (
	"bytes"
	"encoding/json"
	"regexp"
)

// kind is one resource of one fake provider.
type kind struct {
	provider string // first part of the path
	resource string // second part
	prefix   string // of the ids it hands out
	keyField string // where the body carries the key, for providers without the header
	dedupes  bool   // the same key gives the same effect, as payment providers promise
	validate func(body map[string]any) *Refusal
}

// Refusal is an answer that certainly did nothing.
type Refusal struct {
	Status     int    `json:"-"`
	RetryAfter string `json:"-"`
	Code       string `json:"code"`
	Message    string `json:"message"`
}

// kinds are the providers. Only payments deduplicates: that mail does not is
// what makes a second sending visible.
var kinds = []kind{
	{provider: "mail", resource: "messages", prefix: "msg_", keyField: "send_id", validate: recipient},
	{provider: "payments", resource: "charges", prefix: "ch_", keyField: "key", dedupes: true, validate: charge},
	{provider: "payments", resource: "refunds", prefix: "re_", keyField: "key", dedupes: true, validate: amount},
	{provider: "crm", resource: "contacts", prefix: "con_", keyField: "key"},
	{provider: "invoices", resource: "documents", prefix: "inv_", keyField: "key"},
	{provider: "images", resource: "renditions", prefix: "img_", keyField: "key", validate: size},
	{provider: "webhooks", resource: "deliveries", prefix: "whd_", keyField: "key"},
	{provider: "catalog", resource: "imports", prefix: "imp_", keyField: "key"},
	{provider: "search", resource: "documents", prefix: "doc_", keyField: "key"},
}

// address is the shape a mail provider accepts: one @ and a dotted domain.
var address = regexp.MustCompile(`^[^@\s]+@[^@\s.]+(\.[^@\s.]+)+$`)

func recipient(body map[string]any) *Refusal {
	to, _ := body["to"].(string)
	if !address.MatchString(to) {
		return &Refusal{Status: 400, Code: "invalid_recipient", Message: "invalid recipient: " + to}
	}
	return nil
}

func amount(body map[string]any) *Refusal {
	n, ok := body["amount_cents"].(json.Number)
	if v, err := n.Int64(); !ok || err != nil || v <= 0 {
		return &Refusal{Status: 422, Code: "invalid_amount", Message: "amount_cents must be a positive whole number"}
	}
	return nil
}

// charge refuses the card token that payment providers reserve for declines.
func charge(body map[string]any) *Refusal {
	if body["card"] == "tok_declined" {
		return &Refusal{Status: 402, Code: "card_declined", Message: "the card was declined"}
	}
	return amount(body)
}

func size(body map[string]any) *Refusal {
	for _, side := range []string{"width", "height"} {
		n, ok := body[side].(json.Number)
		if v, err := n.Int64(); !ok || err != nil || v < 1 || v > 8000 {
			return &Refusal{Status: 422, Code: "invalid_size", Message: side + " must be from 1 to 8000 pixels"}
		}
	}
	return nil
}

// Check says how a provider would refuse a body, or nil when it wouldn't.
func Check(provider, resource string, body any) *Refusal {
	k, ok := find(provider, resource)
	if !ok || k.validate == nil {
		return nil
	}
	raw, err := json.Marshal(body)
	if err != nil {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var fields map[string]any
	if err := d.Decode(&fields); err != nil {
		return nil
	}
	return k.validate(fields)
}
