package replay

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/redrive-dlq/redrive/dlq/jobtype"
)

// review makes o the batch's reviewed settings, under a revision of its own.
func (b *batchRow) review(o ReviewOrder, t *jobtype.Type) {
	b.Reason, b.RatePerMinute, b.Canary = o.Reason, o.RatePerMinute, o.Canary
	b.AcceptRepeat = o.AcceptRepeat && !t.Idempotent()
	b.StartAfterS, b.StartAt = int(o.StartAfter/time.Second), nil
	if !o.StartAt.IsZero() {
		at := o.StartAt.UTC().Truncate(time.Microsecond) // as the database keeps it
		b.StartAt = &at
	}
	b.ReviewRevision++
	b.ReviewHash = b.hashReview()
}

// hashReview names exactly what a confirmation agrees to: the plan, where it
// goes and every setting. The revision keeps two reviews apart that say the
// same.
func (b *batchRow) hashReview() string {
	start := fmt.Sprintf("after %d", b.StartAfterS)
	if b.StartAt != nil {
		start = "at " + b.StartAt.UTC().Format(time.RFC3339Nano)
	}
	var text strings.Builder
	fmt.Fprintf(&text, "redrive review v1\nbatch %d %q %q\nplan %s %d\n", b.ID, b.Environment, b.JobType, b.PlanHash, b.PlanRevision)
	fmt.Fprintf(&text, "eligible %d\ndestination %q\nstart %s\nrate %d\ncanary %d\naccept_repeat %t\n",
		b.Eligible, b.Destination, start, b.RatePerMinute, b.Canary, b.AcceptRepeat)
	fmt.Fprintf(&text, "reason %q\nrevision %d\n", b.Reason, b.ReviewRevision)
	sum := sha256.Sum256([]byte(text.String()))
	return hex.EncodeToString(sum[:])
}

// details are what an entry about the batch tells of plan and review: the audit
// log alone says what was agreed to.
func (b *batchRow) details() map[string]any {
	d := map[string]any{"plan_hash": b.PlanHash, "plan_revision": b.PlanRevision, "review_hash": b.ReviewHash, "review_revision": b.ReviewRevision,
		"eligible": b.Eligible, "rate_per_minute": b.RatePerMinute, "canary": b.Canary, "destination": b.Destination}
	if b.StartAt != nil {
		d["start_at"] = b.StartAt.UTC().Format(time.RFC3339)
	} else {
		d["start_after_seconds"] = b.StartAfterS
	}
	if b.AcceptRepeat {
		d["accept_repeat"] = true
	}
	return d
}
