package dlq

import (
	"context"

	"github.com/redrive-dlq/redrive/audit"
	"github.com/redrive-dlq/redrive/rbac"
)

// ListAudit reads one page of the audit log, as far as the principal's right
// to read it goes. Errors: Invalid, Forbidden.
func ListAudit(ctx context.Context, db DB, p *rbac.Principal, q audit.Query) (audit.Page, error) {
	if err := p.Require("", "", rbac.ReadAudit); err != nil {
		return audit.Page{}, err
	}
	var scope audit.Scope
	everywhere, limits := p.Scopes(rbac.ReadAudit)
	scope.Everywhere = everywhere
	for _, g := range limits {
		scope.Limits = append(scope.Limits, audit.Limit{Environment: g.Environment, JobType: g.JobType})
	}
	return audit.List(ctx, db, scope, q)
}

// ListOwnAudit reads one page of the principal's own entries: those anybody
// who is signed in may read. Errors: Invalid, Unauthorized.
func ListOwnAudit(ctx context.Context, db DB, p *rbac.Principal, q audit.Query) (audit.Page, error) {
	if err := p.Require("", "", rbac.Read); err != nil {
		return audit.Page{}, err
	}
	return audit.List(ctx, db, audit.Scope{Actor: p.Actor().Name}, q)
}
