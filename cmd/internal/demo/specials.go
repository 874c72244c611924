package demo

import (
	"math/rand/v2"
	"time"

	"github.com/redrive-dlq/redrive/cmd/internal/demo/providers"
)

// specials are the jobs of the history that each tell a story of their own;
// they are always there, whatever the number of jobs.
var specials = append([]func(*rand.Rand, time.Time) pastJob{
	articleJob,
	stagingTwin,
	sharedKey("receipt:8821:shared", 5*time.Hour),
	sharedKey("receipt:8821:shared", 4*time.Hour),
	keyDone,
	unknownCharge("charge:8834:a1", 9*time.Hour, true),
	unknownCharge("charge:8835:b2", 31*time.Hour, true),
	unknownCharge("charge:8836:c3", 50*time.Hour, false),
	unknownMail,
}, invoiceRun...)

// articleJob is the welcome e-mail to a mistyped address: three attempts in
// ten minutes, each refused alike, then given up as not retryable. No message
// was ever sent.
func articleJob(r *rand.Rand, anchor time.Time) pastJob {
	j := pastJob{
		environment: "production", died: anchor.Add(-2*time.Hour - 40*time.Minute),
		args:  sendWelcomeEmail{UserID: 4217, ToEmail: ArticleEmail, TemplateID: "welcome_v3", SendID: ArticleSendID},
		facts: jobFacts{Tenant: "acme", Event: "evt_signup_4217", PayloadVersion: 1},
	}
	j.fill(r, scenario{spoil: mistypeAddress})
	j.attempts, j.spread = 3, 10*time.Minute
	return j
}

// stagingTwin has the article's key in another environment: neither blocks the other.
func stagingTwin(r *rand.Rand, anchor time.Time) pastJob {
	j := pastJob{
		environment: "staging", died: anchor.Add(-26 * time.Hour),
		args:  sendWelcomeEmail{UserID: 4217, ToEmail: "sam@@example.com", TemplateID: "welcome_v3", SendID: ArticleSendID},
		facts: jobFacts{Tenant: "acme", Event: "evt_signup_4217", PayloadVersion: 1},
	}
	j.fill(r, scenario{spoil: mistypeAddress})
	return j
}

// sharedKey gives two jobs one key: a replay of one settles the other.
func sharedKey(key string, ago time.Duration) func(*rand.Rand, time.Time) pastJob {
	return func(r *rand.Rand, anchor time.Time) pastJob {
		j := pastJob{
			environment: "production", died: anchor.Add(-ago),
			args:  sendReceipt{OrderID: "8821", ToEmail: "lena.hofer@example.com", AmountCents: 4990, SendID: key},
			facts: jobFacts{Tenant: "globex", Event: "evt_order_8821", PayloadVersion: 1},
		}
		j.fill(r, scenario{fault: overload})
		return j
	}
}

// keyDone died although another job of its key had done the effect before.
func keyDone(r *rand.Rand, anchor time.Time) pastJob {
	j := pastJob{
		environment: "production", died: anchor.Add(-20 * time.Hour),
		args:  sendReceipt{OrderID: "8790", ToEmail: "omar.kim@example.net", AmountCents: 1250, SendID: "receipt:8790:done"},
		facts: jobFacts{Tenant: "hooli", Event: "evt_order_8790", PayloadVersion: 1},
	}
	j.fill(r, scenario{fault: overload})
	j.ledger, j.happened = "done", true
	return j
}

// unknownCharge timed out: the money may or may not have moved.
func unknownCharge(key string, ago time.Duration, happened bool) func(*rand.Rand, time.Time) pastJob {
	return func(r *rand.Rand, anchor time.Time) pastJob {
		j := pastJob{
			environment: "production", died: anchor.Add(-ago),
			args:  chargeCard{OrderID: key[7:11], CustomerID: 4218, AmountCents: 12_900, Currency: "EUR", CardToken: "tok_" + hexID(r), ChargeKey: key},
			facts: jobFacts{Tenant: "initech", Event: "evt_order_" + key[7:11], PayloadVersion: 1},
		}
		mode := providers.Hang
		if happened {
			mode = providers.HangAfter
		}
		j.fill(r, scenario{fault: providers.Fault{Mode: mode}})
		return j
	}
}

// unknownMail was sent, and the answer was lost.
func unknownMail(r *rand.Rand, anchor time.Time) pastJob {
	j := pastJob{
		environment: "production", died: anchor.Add(-7 * time.Hour),
		args:  sendWelcomeEmail{UserID: 4301, ToEmail: "nora.ito@example.org", TemplateID: "welcome_v3", SendID: "send_lost_answer_1"},
		facts: jobFacts{Tenant: "umbra", Event: "evt_signup_4301", PayloadVersion: 1},
	}
	j.fill(r, scenario{fault: providers.Fault{Mode: providers.HangAfter}})
	return j
}
