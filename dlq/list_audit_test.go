package dlq

import (
	"testing"

	"github.com/redrive-dlq/redrive/audit"
	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/rbac"
)

func TestListAudit(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, env := range []string{"production", "staging"} {
		doc := job("x", 1, 1)
		doc.Environment = env
		if err := TriageNote(t.Context(), b.pool, operator, b.one(t, doc).ID, "seen"); err != nil {
			t.Fatal(err)
		}
	}
	for name, test := range map[string]struct {
		p    *rbac.Principal
		want int
		code problem.Code
	}{
		"auditor":                 {person(rbac.Grant{Role: rbac.Auditor}), 2, ""},
		"auditor of staging":      {person(rbac.Grant{Role: rbac.Auditor, Environment: "staging"}), 1, ""},
		"auditor of nothing yet":  {person(rbac.Grant{Role: rbac.Auditor, Environment: "elsewhere"}), 0, ""},
		"reads jobs, not the log": {person(rbac.Grant{Role: rbac.OnCall}, rbac.Grant{Role: rbac.Viewer}), 0, problem.Forbidden},
		"nobody":                  {nil, 0, problem.Unauthorized},
	} {
		page, err := ListAudit(t.Context(), b.pool, test.p, audit.Query{})
		if problem.CodeOf(err) != test.code || len(page.Records) != test.want {
			t.Errorf("%s: %d entries, %v, want %d and %q", name, len(page.Records), err, test.want, test.code)
		}
	}
	own, err := ListOwnAudit(t.Context(), b.pool, operator, audit.Query{})
	if err != nil || len(own.Records) != 2 {
		t.Errorf("own entries: %+v, %v, want 2", own, err)
	}
	other := person(rbac.Grant{Role: rbac.Viewer})
	other.Email = "someone@example.test"
	if page, err := ListOwnAudit(t.Context(), b.pool, other, audit.Query{}); err != nil || len(page.Records) != 0 {
		t.Errorf("somebody else's entries: %+v, %v, want none", page, err)
	}
}
