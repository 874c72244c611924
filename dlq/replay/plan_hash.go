package replay

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
)

// PlanHash makes the hash of a plan from its members, in the order of their
// jobs' ids: SHA-256 over a head line and one line a member with job,
// generation, payload version and verdict. Whoever holds an export of a plan
// can make it again, and so prove each member from the hash in the audit log.
type PlanHash struct {
	sum  hash.Hash
	line []byte
}

// NewPlanHash returns the hash of a plan without members.
func NewPlanHash() *PlanHash {
	h := &PlanHash{sum: sha256.New()}
	h.write("redrive plan v1\n")
	return h
}

// Add adds the next member.
func (h *PlanHash) Add(job int64, generation, payloadVersion int, verdict string) {
	h.line = fmt.Appendf(h.line[:0], "%d %d %d %s\n", job, generation, payloadVersion, verdict)
	h.write(string(h.line))
}

func (h *PlanHash) write(line string) {
	_, _ = h.sum.Write([]byte(line)) // a hash never fails
}

// String is the hash so far, in hexadecimal.
func (h *PlanHash) String() string { return hex.EncodeToString(h.sum.Sum(nil)) }
