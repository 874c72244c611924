package filter

import (
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// Where returns the filter as a condition on redrive.dead_jobs, which stands
// under the given alias, and its named arguments; all their names begin with
// f_. It never returns an empty condition. now is what ages are relative to.
func (f Filter) Where(alias string, now time.Time) (string, pgx.NamedArgs) {
	f = f.normal()
	args := pgx.NamedArgs{}
	var all []string
	for _, info := range fields {
		column := alias + "." + info.column
		name := "f_" + string(info.field)
		switch is := *info.is(&f); len(is) {
		case 0:
		case 1:
			all = append(all, column+" = @"+name)
			args[name] = is[0]
		default:
			all = append(all, column+" = ANY(@"+name+")")
			args[name] = is
		}
		// Said aloud, so that the partial index serves a generic plan too.
		if info.partial && len(*info.is(&f)) > 0 {
			all = append(all, column+" <> ''")
		}
		if not := *info.not(&f); len(not) > 0 {
			all = append(all, column+" <> ALL(@"+name+"_not)")
			args[name+"_not"] = not
		}
	}
	moment := func(operator, name string, at time.Time) {
		all = append(all, alias+".died_at "+operator+" @"+name)
		args[name] = at
	}
	if !f.From.IsZero() {
		moment(">=", "f_from", f.From)
	}
	if !f.To.IsZero() {
		moment("<", "f_to", f.To)
	}
	if f.Newer != 0 {
		moment(">", "f_newer", now.Add(-f.Newer))
	}
	if f.Older != 0 {
		moment("<=", "f_older", now.Add(-f.Older))
	}
	if len(all) == 0 {
		return "true", args
	}
	return strings.Join(all, "\n  AND "), args
}
