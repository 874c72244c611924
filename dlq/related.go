package dlq

import (
	"maps"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/rbac"
)

// queueRelated reads the first few other jobs of the same key, entity and
// group, as far as the principal may read them. A key names one effect in one
// environment and an entity lives in one; a group may span several.
func (d *Details) queueRelated(batch *pgx.Batch, p *rbac.Principal) {
	scope, args, err := ListScope(p, rbac.Read, "d")
	if err != nil {
		return // who may read nothing has read no job either
	}
	maps.Copy(args, pgx.NamedArgs{
		"id": d.Job.ID, "environment": d.Job.Environment, "scope": d.Job.KeyScope, "key": d.Job.IdempotencyKey,
		"entity": d.Job.Entity, "fingerprint": d.Job.Fingerprint, "first": detailRelated, "cap": detailRelatedCap + 1,
	})
	sets := []struct{ by, value, where string }{
		{"key", d.Job.IdempotencyKey, "d.environment = @environment AND d.key_scope = @scope AND d.idempotency_key = @key AND d.idempotency_key <> ''"},
		{"entity", d.Job.Entity, "d.environment = @environment AND d.entity = @entity AND d.entity <> ''"},
		{"group", d.Job.Fingerprint, "d.fingerprint = @fingerprint"},
	}
	d.Related = make([]DetailRelatedSet, 0, len(sets)) // never grows: the queries point into it
	for _, s := range sets {
		if s.value == "" {
			continue
		}
		d.Related = append(d.Related, DetailRelatedSet{By: s.by})
		set := &d.Related[len(d.Related)-1]
		where := s.where + " AND d.id <> @id AND " + scope
		queueRows(batch, &set.Jobs, `
			SELECT d.id, d.job_id, d.job_type, d.status, d.died_at
			FROM redrive.dead_jobs d
			WHERE `+where+`
			ORDER BY d.died_at DESC, d.id DESC
			LIMIT @first`, args)
		batch.Queue(`
			SELECT count(*)
			FROM (SELECT FROM redrive.dead_jobs d WHERE `+where+` LIMIT @cap) c`, args).QueryRow(func(row pgx.Row) error {
			err := row.Scan(&set.Total)
			if set.Total > detailRelatedCap {
				set.Total, set.More = detailRelatedCap, true
			}
			return err
		})
	}
}
