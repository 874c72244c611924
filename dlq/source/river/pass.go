package river

import (
	"context"
	"sync"

	"github.com/redrive-dlq/redrive/dlq/source"
)

// pass is where the complete pass stands. It stays after a failure, so that the
// next try goes on instead of starting again.
type pass struct {
	mu    sync.Mutex
	state int    // index into deadStates; beyond it come the outside changes
	after mark   // within the state
	job   string // last job id whose row was compared
}

// CompletePass looks at every dead row of the source and takes those that are
// missing, then compares our unsettled jobs with their rows. Each step is a page
// of its own; after an error the next call continues there. Errors are the
// database's own.
func (r *Reader) CompletePass(ctx context.Context) error {
	r.pass.mu.Lock()
	defer r.pass.mu.Unlock()
	for ; r.pass.state < len(deadStates); r.pass.state++ {
		if !r.pass.after.At.Valid {
			r.pass.after = first()
		}
		if err := r.walk(ctx, deadStates[r.pass.state], &r.pass.after); err != nil {
			return err
		}
		r.pass.after = mark{}
	}
	if err := r.passOutside(ctx); err != nil {
		return err
	}
	r.pass.state, r.pass.job = 0, ""
	ctx, cancel := r.bounded(ctx)
	defer cancel()
	return source.Completed(ctx, r.store, r.id)
}
