package board

import (
	"context"
	"time"

	"github.com/redrive-dlq/redrive/dlq"
	"github.com/redrive-dlq/redrive/rbac"
)

// Proof says that a type's effect was shown to happen once.
type Proof struct {
	Environment string
	JobType     string
	ProvenAt    time.Time
	ProvenBy    string
}

// Proofs reads what was proven in scope, by type.
func Proofs(ctx context.Context, db dlq.DB, p *rbac.Principal) ([]Proof, error) {
	where, args, err := scoped(p, "t", "", nil)
	if err != nil {
		return nil, err
	}
	return collect[Proof](ctx, db, "proofs", `
		SELECT t.environment, t.job_type, t.proven_at, t.proven_by
		FROM redrive.type_proofs t
		WHERE `+where+`
		ORDER BY t.job_type, t.environment`, args)
}
