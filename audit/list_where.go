package audit

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// where collects the conditions of a page.
type where struct {
	all  []string
	args pgx.NamedArgs
}

func (w *where) and(condition string) { w.all = append(w.all, condition) }

func (w *where) String() string {
	if len(w.all) == 0 {
		return "true"
	}
	return strings.Join(w.all, "\n  AND ")
}

// add limits the page to what the scope allows.
func (s Scope) add(w *where) {
	if s.Everywhere {
		return
	}
	or := []string{"false"}
	if s.Actor != "" {
		or = append(or, "actor = @scope_actor")
		w.args["scope_actor"] = s.Actor
	}
	for i, l := range s.Limits {
		env, typ := fmt.Sprintf("scope_environment%d", i), fmt.Sprintf("scope_type%d", i)
		w.args[env], w.args[typ] = l.Environment, l.JobType
		or = append(or, fmt.Sprintf("((@%[1]s = '' OR environment = @%[1]s) AND (@%[2]s = '' OR job_type = @%[2]s))", env, typ))
	}
	w.and("(" + strings.Join(or, " OR ") + ")")
}

// add limits the page to what was asked for.
func (q Query) add(w *where) {
	text := func(value, name, condition string) {
		if value != "" {
			w.and(condition)
			w.args[name] = value
		}
	}
	if strings.Contains(q.Actor, "@") {
		text(q.Actor, "actor", "actor = @actor")
	} else {
		text(q.Actor, "actor", "position(lower(@actor) in lower(actor)) > 0")
	}
	if strings.HasSuffix(q.Action, ".") {
		text(q.Action, "action", "starts_with(action, @action)")
	} else {
		text(q.Action, "action", "action = @action")
	}
	text(q.ObjectKind, "object_kind", "object_kind = @object_kind")
	text(q.ObjectID, "object_id", "object_id = @object_id")
	text(q.Environment, "environment", "environment = @environment")
	if q.DeadJob != 0 {
		w.and("dead_job_id = @dead_job")
		w.args["dead_job"] = q.DeadJob
	}
	if len(q.About)+len(q.Keys) > 0 {
		w.and("(dead_job_id = ANY (@about) OR (object_kind = 'key' AND object_id = ANY (@keys)))")
		w.args["about"], w.args["keys"] = q.About, q.Keys
	}
	if q.Batch != 0 {
		w.and("batch_id = @batch")
		w.args["batch"] = q.Batch
	}
	for _, m := range []struct {
		at        time.Time
		name, cmp string
	}{{q.From, "from", ">="}, {q.To, "to", "<"}} {
		if !m.at.IsZero() {
			w.and("at " + m.cmp + " @" + m.name)
			w.args[m.name] = m.at
		}
	}
}

// hash identifies the query: a cursor of one is refused by another.
func (q Query) hash() [8]byte {
	q.From, q.To = q.From.UTC(), q.To.UTC()
	sum := sha256.Sum256(fmt.Appendf(nil, "%q", []any{q.Actor, q.Action, q.ObjectKind, q.ObjectID, q.Environment, q.DeadJob, q.About, q.Keys, q.Batch, q.From.String(), q.To.String()}))
	return [8]byte(sum[:8])
}
