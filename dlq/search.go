package dlq

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/dlq/filter"
	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/dlq/redact"
	"github.com/redrive-dlq/redrive/rbac"
)

// SearchFound is what a word names.
type SearchFound struct {
	Only   int64         // the one job of that name; 0 when there are more, or none
	Filter filter.Filter // selects all of them, of every status; zero when there are none
}

// searchFields are the names a job goes by, in the order in which a word is
// taken for one; each has an index of its own that begins with it.
var searchFields = []filter.Field{filter.Job, filter.Key, filter.Entity, filter.EffectID}

// Search finds the jobs that a word names exactly, within the principal's scope
// and, unless empty, one environment: by job id, else by idempotency key, else
// by entity, else by the provider's id of the effect. Errors: Invalid for a
// word that looks like a secret, which belongs in no address; Forbidden.
func Search(ctx context.Context, db DB, p *rbac.Principal, word, environment string) (SearchFound, error) {
	if redact.LooksSecret(word) {
		return SearchFound{}, problem.At(problem.Invalid, "q",
			"This looks like a secret or an address, which must not stand in a link. Search by job id, key or group instead.")
	}
	scope, scopeArgs, err := ListScope(p, rbac.Read, "d")
	if err != nil || word == "" || strings.ContainsRune(word, 0) {
		return SearchFound{}, err
	}
	for _, field := range searchFields {
		f := filter.Named(field, word)
		if environment != "" {
			f.Environments = []string{environment}
		}
		where, args := f.Where("d", f.From)
		maps.Copy(args, scopeArgs)
		rows, err := db.Query(ctx, `
			SELECT d.id
			FROM redrive.dead_jobs d
			WHERE `+where+`
			  AND `+scope+`
			LIMIT 2`, args)
		if err != nil {
			return SearchFound{}, fmt.Errorf("dlq: search: %w", err)
		}
		ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
		switch {
		case err != nil:
			return SearchFound{}, fmt.Errorf("dlq: search: %w", err)
		case len(ids) == 1:
			return SearchFound{Only: ids[0], Filter: f}, nil
		case len(ids) > 1:
			return SearchFound{Filter: f}, nil
		}
	}
	return SearchFound{}, nil
}
