// Package audit is the append-only log of who did what, to what and why.
// An entry is appended in the transaction of the act itself: both commit, or
// neither does.
package audit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// Kind says what sort of actor acted.
type Kind string

// The kinds of actors.
const (
	Person Kind = "person"
	Token  Kind = "token"
	System Kind = "system"
)

// Actor is who acted. Names are copied into the entry, so that it stays
// readable when the account is gone.
type Actor struct {
	Kind      Kind
	ID        string   // user or token id; empty for the system
	Name      string   // e-mail address, "token NAME of E-MAIL", or "redrive"
	Roles     []string // roles at that time
	IP        string   // client address; empty for the system
	RequestID string
}

// SystemActor is the actor of decisions that Redrive takes by itself.
func SystemActor() Actor { return Actor{Kind: System, Name: "redrive"} }

// Object is what was acted on.
type Object struct {
	Kind string // job, batch, replay, hold, key, user, session, token, source
	ID   string
}

// Entry is one act. Details hold ids, hashes and codes, never payload values.
type Entry struct {
	Action      string // e.g. job.resolve, replay.confirm
	Object      Object
	Environment string
	JobType     string
	DeadJob     int64 // 0 = none
	Batch       int64 // 0 = none
	Reason      string
	Details     map[string]any
	At          time.Time // zero = now
}

// ErrNoActor is returned for an entry without an actor: that is a bug of the
// caller, not a default.
var ErrNoActor = errors.New("audit: an entry needs an actor with a kind and a name")

// Append writes the entry inside tx and returns its id. Text that PostgreSQL
// can't hold (NUL) is replaced visibly. Errors: ErrNoActor, an entry without
// action or object, and the database's own.
func Append(ctx context.Context, tx pgx.Tx, actor Actor, e Entry) (int64, error) {
	body, err := body(actor, e)
	if err != nil {
		return 0, err
	}
	var id int64
	err = tx.QueryRow(ctx, `INSERT INTO redrive.audit_entries (body) VALUES ($1) RETURNING id`, body).Scan(&id)
	if err != nil {
		return 0, fmt.Errorf("audit: append %s: %w", e.Action, err)
	}
	return id, nil
}

// body is the entry's canonical JSON text: encoding/json sorts map keys, and
// the fixed fields are put into a map for the same order.
func body(actor Actor, e Entry) (string, error) {
	if actor.Kind == "" || actor.Name == "" {
		return "", ErrNoActor
	}
	if e.Action == "" || e.Object.Kind == "" {
		return "", fmt.Errorf("audit: an entry needs an action and an object, got %q on %q", e.Action, e.Object.Kind)
	}
	at := e.At
	if at.IsZero() {
		at = time.Now()
	}
	m := map[string]any{
		"action": e.Action,
		"actor":  actorMap(actor),
		"at_us":  at.UnixMicro(),
		"object": map[string]any{"kind": e.Object.Kind, "id": e.Object.ID},
	}
	put := func(key string, value any, present bool) {
		if present {
			m[key] = value
		}
	}
	put("environment", e.Environment, e.Environment != "")
	put("job_type", e.JobType, e.JobType != "")
	put("dead_job", e.DeadJob, e.DeadJob != 0)
	put("batch", e.Batch, e.Batch != 0)
	put("reason", e.Reason, e.Reason != "")
	put("details", e.Details, len(e.Details) > 0)
	out, err := json.Marshal(m)
	if err != nil {
		return "", fmt.Errorf("audit: encode %s: %w", e.Action, err)
	}
	// jsonb refuses NUL; nothing that people typed may make an act fail for it.
	return strings.ReplaceAll(string(out), `\u0000`, `␀`), nil
}

func actorMap(a Actor) map[string]any {
	m := map[string]any{"kind": a.Kind, "id": a.ID, "name": a.Name}
	if len(a.Roles) > 0 {
		m["roles"] = a.Roles
	}
	if a.IP != "" {
		m["ip"] = a.IP
	}
	if a.RequestID != "" {
		m["request_id"] = a.RequestID
	}
	return m
}
