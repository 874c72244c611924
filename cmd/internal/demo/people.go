package demo

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

var (
	firstNames = []string{"alex", "bianca", "chen", "dara", "emil", "fatima", "goran", "hana", "ines", "jonas", "kaya", "lena", "milo", "nora", "omar", "priya", "quinn", "rosa", "sami", "tove"}
	lastNames  = []string{"adler", "brandt", "costa", "diallo", "evans", "ferrari", "gupta", "hofer", "ito", "jansen", "kim", "lopez", "moreau", "novak", "okafor", "petrov"}
	domains    = []string{"example.com", "example.net", "example.org", "mail.example.com"}
	tenants    = []string{"acme", "globex", "initech", "umbra", "hooli", "stark", "wayne", "tyrell"}
)

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }

func email(r *rand.Rand) string {
	return pick(r, firstNames) + "." + pick(r, lastNames) + "@" + pick(r, domains)
}

// typo is an address as people mistype it and forms let through.
func typo(r *rand.Rand) string {
	if r.IntN(4) == 0 {
		return strings.Replace(email(r), "example.", "example..", 1)
	}
	return strings.Replace(email(r), "@", "@@", 1)
}

func hexID(r *rand.Rand) string { return fmt.Sprintf("%012x", r.Uint64()&0xffffffffffff) }

// makeTask builds the arguments of a type. n makes keys unique: it is part of
// every one of them.
func makeTask(r *rand.Rand, kind, n string) task {
	customer := int64(firstCustomer + r.IntN(customers))
	order := fmt.Sprintf("%d", 8000+r.IntN(900))
	cents := int64(500 + r.IntN(45_000))
	currency := pick(r, []string{"EUR", "EUR", "USD", "GBP"})
	switch kind {
	case "send_welcome_email":
		return sendWelcomeEmail{UserID: customer, ToEmail: email(r), TemplateID: "welcome_v3", SendID: "send_" + n}
	case "charge_card":
		return chargeCard{OrderID: order, CustomerID: customer, AmountCents: cents, Currency: currency, CardToken: "tok_" + hexID(r), ChargeKey: "charge:" + order + ":" + n}
	case "send_invoice":
		invoice := fmt.Sprintf("INV-2026-%05d", r.IntN(90_000)+1000)
		return sendInvoice{InvoiceID: invoice, CustomerID: customer, Recipient: email(r), AmountCents: cents, SendID: "invoice:" + invoice + ":" + n}
	case "sync_contact":
		return syncContact{ContactID: fmt.Sprintf("%d", customer), Revision: int64(r.IntN(40) + 1), SyncKey: "contact:" + n,
			Fields: map[string]string{"name": pick(r, firstNames) + " " + pick(r, lastNames), "email": email(r), "plan": pick(r, []string{"free", "team", "business"})}}
	case "resize_image":
		side := pick(r, []int{160, 320, 640, 1280})
		return resizeImage{ImageID: "img_" + hexID(r), Width: side, Height: side * 3 / 4, Source: "s3://uploads/" + hexID(r) + ".jpg", RenderKey: "render:" + n}
	case "deliver_webhook":
		event := pick(r, []string{"order.paid", "order.shipped", "invoice.created", "contact.updated"})
		return deliverWebhook{Event: event, EndpointID: fmt.Sprintf("ep_%03d", r.IntN(40)), URL: "https://hooks." + pick(r, tenants) + ".example.com/in",
			Body: []byte(fmt.Sprintf(`{"order_id":%q,"amount_cents":%d}`, order, cents)), DeliveryKey: "delivery:" + n}
	case "send_receipt":
		return sendReceipt{OrderID: order, ToEmail: email(r), AmountCents: cents, SendID: "receipt:" + order + ":" + n}
	case "refund_payment":
		return refundPayment{OrderID: order, AmountCents: cents, Currency: currency, RefundKey: "refund:" + order + ":" + n}
	case "import_catalog":
		supplier := fmt.Sprintf("sup_%02d", r.IntN(25))
		return importCatalog{SupplierID: supplier, SourceURL: "https://feeds.example.com/" + supplier + ".csv", Rows: 100 + r.IntN(9000), ImportKey: "import:" + n}
	default:
		return updateSearchIndex{DocumentID: "doc_" + hexID(r), Revision: int64(r.IntN(90) + 1), Title: "Guide to " + pick(r, lastNames), IndexKey: "index:" + n}
	}
}
