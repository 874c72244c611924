package rbac

import (
	"slices"
	"strconv"
	"time"

	"github.com/redrive-dlq/redrive/audit"
	"github.com/redrive-dlq/redrive/dlq/problem"
)

// Grant is one role of a person, limited by environment and type where those
// are not empty.
type Grant struct {
	Role        Role
	Environment string
	JobType     string
}

func (g Grant) covers(environment, jobType string) bool {
	return (g.Environment == "" || environment == "" || g.Environment == environment) &&
		(g.JobType == "" || jobType == "" || g.JobType == jobType)
}

// Principal is who makes a request: a person in a session, or a token, which
// acts as its owner with no more than its own grants. It is read from the
// database for each request, so that a revoked role counts at once.
type Principal struct {
	UserID          int64
	Email           string
	Name            string
	Grants          []Grant
	TokenID         int64 // 0 for a person in a session
	TokenName       string
	CaptureOnly     bool
	CaptureAllowed  bool      // tokens that may write dead jobs
	Environment     string    // a token's default and limit; empty for people
	Sources         []string  // a token's own sources
	AuthenticatedAt time.Time // last passphrase; zero for tokens without step-up
	IP              string
	RequestID       string

	// DefaultEnvironment is where a token's documents go that name none. It is
	// no limit: that is Environment.
	DefaultEnvironment string
	SessionID          string // names the session of a person; empty for tokens
	local              bool   // the command line, see CommandLine
}

// CommandLine is who runs a command on the machine itself. It holds every right
// of an administrator, and the audit log shows it as the system.
func CommandLine(requestID string) *Principal {
	return &Principal{Name: "command line", Grants: []Grant{{Role: Admin}}, RequestID: requestID, local: true}
}

// CaptureEnvironment is the environment of a captured document that names none.
// It is empty when the token has none either: then the document is refused.
func (p *Principal) CaptureEnvironment() string {
	if p.DefaultEnvironment != "" {
		return p.DefaultEnvironment
	}
	return p.Environment
}

// MayWriteSource reports whether the principal may capture for the source. A
// token writes only to its own sources; the first of them is its default.
func (p *Principal) MayWriteSource(source string) bool {
	return p != nil && p.CaptureAllowed && slices.Contains(p.Sources, source)
}

// SteppedUp reports whether the passphrase was given within the last StepUpFor:
// what a reveal, a batch or a change of roles asks for.
func (p *Principal) SteppedUp(now time.Time) bool {
	if p == nil {
		return false
	}
	if p.local {
		return true
	}
	if p.AuthenticatedAt.IsZero() {
		return false
	}
	limit := StepUpFor
	if p.TokenID != 0 {
		limit = StepUpTokenFor
	}
	return now.Sub(p.AuthenticatedAt) < limit
}

// Can reports whether the principal holds p for the environment and type.
// An empty environment or type asks "anywhere".
func (p *Principal) Can(perm Permission, environment, jobType string) bool {
	if p == nil {
		return false
	}
	if perm == Capture {
		return p.CaptureAllowed && (p.Environment == "" || environment == "" || p.Environment == environment)
	}
	if p.CaptureOnly {
		return false
	}
	for _, g := range p.Grants {
		if g.Role.Allows(perm) && g.covers(environment, jobType) {
			return true
		}
	}
	return false
}

// Require returns a Forbidden problem that names what is missing when the
// principal lacks any of the permissions.
func (p *Principal) Require(environment, jobType string, perms ...Permission) error {
	if p == nil {
		return problem.New(problem.Unauthorized, "Sign in first.")
	}
	for _, perm := range perms {
		if !p.Can(perm, environment, jobType) {
			return problem.New(problem.Forbidden, "Your role doesn't allow this: it needs the right %q.", string(perm))
		}
	}
	return nil
}

// Roles returns the distinct role names in the order people read them.
func (p *Principal) Roles() []string {
	var out []string
	for _, r := range AllRoles() {
		for _, g := range p.Grants {
			if g.Role == r {
				out = append(out, string(r))
				break
			}
		}
	}
	return out
}

// Scopes returns, for permission perm, whether it holds everywhere; if not,
// the (environment, type) pairs it is limited to. SQL that lists rows uses it.
func (p *Principal) Scopes(perm Permission) (everywhere bool, limits []Grant) {
	for _, g := range p.Grants {
		if !g.Role.Allows(perm) {
			continue
		}
		if g.Environment == "" && g.JobType == "" {
			return true, nil
		}
		limits = append(limits, g)
	}
	return false, limits
}

// Actor is the principal as the audit log writes it.
func (p *Principal) Actor() audit.Actor {
	if p.local {
		return audit.Actor{Kind: audit.System, Name: "redrive command line", RequestID: p.RequestID}
	}
	a := audit.Actor{Kind: audit.Person, ID: strconv.FormatInt(p.UserID, 10), Name: p.Email, Roles: p.Roles(), IP: p.IP, RequestID: p.RequestID}
	if p.TokenID != 0 {
		a.Kind = audit.Token
		a.ID = strconv.FormatInt(p.TokenID, 10)
		a.Name = "token " + p.TokenName + " of " + p.Email
	}
	return a
}
