package demo

import (
	"encoding/json"

	"github.com/riverqueue/river"
)

// effect is what one job does at a provider.
type effect struct {
	Provider string // first part of the provider's path
	Resource string // second part
	Key      string // names the effect in the real world
	Entity   string // whose order matters
	// ProviderDedupes: the provider itself refuses a second effect of one key,
	// so that the worker may simply ask again after a timeout.
	ProviderDedupes bool
	Body            any // sent as JSON
}

// task is the arguments of a job, and what they ask for.
type task interface {
	river.JobArgs
	effect() effect
}

type sendWelcomeEmail struct {
	UserID     int64  `json:"user_id"`
	ToEmail    string `json:"to_email"`
	TemplateID string `json:"template_id"`
	SendID     string `json:"send_id"` // the idempotency key
}

func (sendWelcomeEmail) Kind() string { return "send_welcome_email" }
func (a sendWelcomeEmail) effect() effect {
	return effect{
		Provider: "mail", Resource: "messages", Key: a.SendID, Entity: entity("customer", a.UserID),
		Body: map[string]any{"to": a.ToEmail, "template": a.TemplateID, "send_id": a.SendID},
	}
}

type chargeCard struct {
	OrderID     string `json:"order_id"`
	CustomerID  int64  `json:"customer_id"`
	AmountCents int64  `json:"amount_cents"`
	Currency    string `json:"currency"`
	CardToken   string `json:"card_token"`
	ChargeKey   string `json:"charge_key"`
}

func (chargeCard) Kind() string { return "charge_card" }
func (a chargeCard) effect() effect {
	return effect{
		Provider: "payments", Resource: "charges", Key: a.ChargeKey, Entity: "order:" + a.OrderID, ProviderDedupes: true,
		Body: map[string]any{"amount_cents": a.AmountCents, "currency": a.Currency, "order": a.OrderID, "card": a.CardToken},
	}
}

type sendInvoice struct {
	InvoiceID   string `json:"invoice_id"`
	CustomerID  int64  `json:"customer_id"`
	Recipient   string `json:"recipient"`
	AmountCents int64  `json:"amount_cents"`
	SendID      string `json:"send_id"`
}

func (sendInvoice) Kind() string { return "send_invoice" }
func (a sendInvoice) effect() effect {
	return effect{
		Provider: "invoices", Resource: "documents", Key: a.SendID, Entity: "invoice:" + a.InvoiceID,
		Body: map[string]any{"invoice": a.InvoiceID, "recipient": a.Recipient, "amount_cents": a.AmountCents},
	}
}

type syncContact struct {
	ContactID string            `json:"contact_id"`
	Revision  int64             `json:"revision"`
	Fields    map[string]string `json:"fields"`
	SyncKey   string            `json:"sync_key"`
}

func (syncContact) Kind() string { return "sync_contact" }
func (a syncContact) effect() effect {
	return effect{
		Provider: "crm", Resource: "contacts", Key: a.SyncKey, Entity: "contact:" + a.ContactID,
		Body: map[string]any{"contact": a.ContactID, "revision": a.Revision, "fields": a.Fields},
	}
}

type resizeImage struct {
	ImageID   string `json:"image_id"`
	Width     int    `json:"width"`
	Height    int    `json:"height"`
	Source    string `json:"source"`
	RenderKey string `json:"render_key"`
}

func (resizeImage) Kind() string { return "resize_image" }
func (a resizeImage) effect() effect {
	return effect{
		Provider: "images", Resource: "renditions", Key: a.RenderKey, Entity: "image:" + a.ImageID,
		Body: map[string]any{"image": a.ImageID, "width": a.Width, "height": a.Height},
	}
}

type deliverWebhook struct {
	Event       string          `json:"event"`
	EndpointID  string          `json:"endpoint_id"`
	URL         string          `json:"url"`
	Body        json.RawMessage `json:"body"`
	DeliveryKey string          `json:"delivery_key"`
}

func (deliverWebhook) Kind() string { return "deliver_webhook" }
func (a deliverWebhook) effect() effect {
	return effect{
		Provider: "webhooks", Resource: "deliveries", Key: a.DeliveryKey, Entity: "endpoint:" + a.EndpointID,
		Body: map[string]any{"endpoint": a.EndpointID, "event": a.Event, "body": a.Body},
	}
}

type sendReceipt struct {
	OrderID     string `json:"order_id"`
	ToEmail     string `json:"to_email"`
	AmountCents int64  `json:"amount_cents"`
	SendID      string `json:"send_id"`
}

func (sendReceipt) Kind() string { return "send_receipt" }
func (a sendReceipt) effect() effect {
	return effect{
		Provider: "mail", Resource: "messages", Key: a.SendID, Entity: "order:" + a.OrderID,
		Body: map[string]any{"to": a.ToEmail, "template": "receipt", "send_id": a.SendID},
	}
}

type refundPayment struct {
	OrderID     string `json:"order_id"`
	AmountCents int64  `json:"amount_cents"`
	Currency    string `json:"currency"`
	RefundKey   string `json:"refund_key"`
}

func (refundPayment) Kind() string { return "refund_payment" }
func (a refundPayment) effect() effect {
	return effect{
		Provider: "payments", Resource: "refunds", Key: a.RefundKey, Entity: "order:" + a.OrderID, ProviderDedupes: true,
		Body: map[string]any{"amount_cents": a.AmountCents, "currency": a.Currency, "order": a.OrderID},
	}
}

type importCatalog struct {
	SupplierID string `json:"supplier_id"`
	SourceURL  string `json:"source_url"`
	Rows       int    `json:"rows"`
	ImportKey  string `json:"import_key"`
}

func (importCatalog) Kind() string { return "import_catalog" }
func (a importCatalog) effect() effect {
	return effect{
		Provider: "catalog", Resource: "imports", Key: a.ImportKey, Entity: "supplier:" + a.SupplierID,
		Body: map[string]any{"supplier": a.SupplierID, "rows": a.Rows},
	}
}

type updateSearchIndex struct {
	DocumentID string `json:"document_id"`
	Revision   int64  `json:"revision"`
	Title      string `json:"title"`
	IndexKey   string `json:"index_key"`
}

func (updateSearchIndex) Kind() string { return "update_search_index" }
func (a updateSearchIndex) effect() effect {
	return effect{
		Provider: "search", Resource: "documents", Key: a.IndexKey, Entity: "document:" + a.DocumentID,
		Body: map[string]any{"document": a.DocumentID, "revision": a.Revision},
	}
}
