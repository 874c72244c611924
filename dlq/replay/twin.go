package replay

import "fmt"

// twin is another job of the same key: they share one effect, also where no
// worker writes the ledger. The zero twin says nothing.
type twin struct {
	ID       int64
	Done     bool // its effect happened; else nobody knows
	EffectID string
}

// verdict is what the twin means to an order; the zero verdict when nothing.
func (w twin) verdict(deduplicated bool) Verdict {
	switch {
	case w.ID == 0 || (!w.Done && deduplicated):
		return Verdict{}
	case w.Done:
		return Verdict{Code: KeyDone, EffectID: w.EffectID,
			Detail: fmt.Sprintf("Job %d has the same key and has done this already, so there is nothing to do.", w.ID)}
	}
	return Verdict{Code: EffectUnknown,
		Detail: fmt.Sprintf("Job %d has the same key, and nobody knows the end of its effect. Settle it there first.", w.ID)}
}
