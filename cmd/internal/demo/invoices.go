package demo

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/redrive-dlq/redrive/cmd/internal/demo/providers"
)

// InvoiceRun is the event that all jobs of the month-end invoice run share: by
// event:InvoiceRun a person finds the whole incident.
const InvoiceRun = "evt_invoice_run_0042"

// runTenants are the tenants of the invoice run.
var runTenants = []string{"acme", "globex", "hooli", "initech", "stark", "umbra"}

// refusedAddress was a mistake of the renderer's maker: plus addresses are
// addresses. It is mended, so that a declared fix is true.
var refusedAddress = answers(400, "address_refused", "plus addresses are not accepted")

// invoiceRun is one incident with every kind of job that a batch meets: the
// renderer went down in the middle of the run. Most can simply be sent again;
// the others each need something else first.
var invoiceRun = func() []func(*rand.Rand, time.Time) pastJob {
	var jobs []func(*rand.Rand, time.Time) pastJob
	add := func(n int, change func(i int, a *sendInvoice) (scenario, func(*pastJob))) {
		for range n {
			jobs = append(jobs, invoiceJob(len(jobs), change))
		}
	}
	down := scenario{fault: overload}
	add(40, func(i int, a *sendInvoice) (scenario, func(*pastJob)) {
		if i%10 == 9 { // the corrected invoice that followed: it must arrive second
			before := runInvoice(i - 1)
			a.InvoiceID, a.CustomerID = before.InvoiceID, before.CustomerID
		}
		return down, nil
	})
	add(4, func(i int, a *sendInvoice) (scenario, func(*pastJob)) {
		a.Recipient = fmt.Sprintf("accounts+run%d@example.com", i)
		return scenario{fault: refusedAddress}, nil
	})
	add(3, func(int, *sendInvoice) (scenario, func(*pastJob)) {
		return down, func(j *pastJob) { j.ledger, j.happened = "done", true }
	})
	add(3, func(i int, _ *sendInvoice) (scenario, func(*pastJob)) {
		if i%2 == 0 {
			return scenario{fault: providers.Fault{Mode: providers.HangAfter}}, nil
		}
		return scenario{fault: providers.Fault{Mode: providers.Hang}}, nil
	})
	add(2, func(i int, a *sendInvoice) (scenario, func(*pastJob)) { // enqueued twice, by two clicks
		*a = runInvoice(i - 50)
		return down, nil
	})
	add(2, func(_ int, a *sendInvoice) (scenario, func(*pastJob)) {
		a.Recipient = "accounts at example.com"
		return down, func(j *pastJob) { j.mistyped = true }
	})
	add(3, func(i int, a *sendInvoice) (scenario, func(*pastJob)) {
		a.CustomerID = deletedCustomer + int64(i)
		return down, nil
	})
	return jobs
}()

// runInvoice is the i-th invoice of the run, as it should have been sent.
func runInvoice(i int) sendInvoice {
	return sendInvoice{
		InvoiceID: fmt.Sprintf("INV-2026-R%04d", i), CustomerID: runCustomer + int64(i), Recipient: fmt.Sprintf("accounts%d@example.com", i),
		AmountCents: 1000 + int64(i)*137, SendID: fmt.Sprintf("invoice:run42:%04d", i),
	}
}

// invoiceJob is the i-th job of the run: late in the evening, each a little
// after the one before.
func invoiceJob(i int, change func(int, *sendInvoice) (scenario, func(*pastJob))) func(*rand.Rand, time.Time) pastJob {
	return func(r *rand.Rand, anchor time.Time) pastJob {
		a := runInvoice(i)
		s, then := change(i, &a)
		j := pastJob{environment: "production", died: anchor.Add(-11*time.Hour + time.Duration(i)*37*time.Second)}
		j.facts = jobFacts{Tenant: runTenants[int(a.CustomerID)%len(runTenants)], Event: InvoiceRun, PayloadVersion: 1}
		j.args = a
		j.fill(r, s)
		if then != nil {
			then(&j)
		}
		return j
	}
}
