package dlq

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// knownJob is a job's row as a later document finds it, locked.
type knownJob struct {
	ID             int64
	Generation     int
	JobType        string
	IdempotencyKey string
	Queue          string
	Tenant         string
	Entity         string
	Event          string
	Destination    string
	PayloadVersion int
	LastAttempt    int
	LastAt         time.Time // as told, else the died_at of the row
}

// knownDetail is read after the lock, with a snapshot that sees what the
// transactions before us wrote.
type knownDetail struct {
	Told       bool // this death is known
	SHA        []byte
	Encoding   string
	Kept       bool // the current version's bytes are still there
	MaxVersion int
}

// errUnseen says that jobs which weren't inserted can't be read either.
var errUnseen = errors.New("known jobs can't be seen by this transaction; run it again")

// lockJobs locks the rows of known jobs in the order of their identity and
// judges each death by what they hold.
func lockJobs(ctx context.Context, tx pgx.Tx, rows []*death) error {
	args := pgx.NamedArgs{
		"environment": column(rows, func(d *death) string { return d.doc.Environment }),
		"source":      column(rows, func(d *death) string { return d.doc.Source }),
		"job_id":      column(rows, func(d *death) string { return d.doc.JobID }),
		"death_key":   column(rows, func(d *death) string { return d.key }),
	}
	batch := &pgx.Batch{}
	// Locked first and read with the next statement's fresh snapshot: in one
	// statement the deaths would be those from before the wait for the lock.
	batch.Queue(`
		SELECT d.id, d.generation, d.job_type, d.idempotency_key, d.queue, d.tenant, d.entity, d.event, d.destination,
		       d.payload_version, d.last_death_attempt, coalesce(d.last_death_at, d.died_at)
		FROM unnest(@environment::text[], @source::text[], @job_id::text[]) WITH ORDINALITY AS u(environment, source, job_id, position)
		JOIN redrive.dead_jobs d USING (environment, source, job_id)
		ORDER BY u.position
		FOR NO KEY UPDATE OF d`, args)
	batch.Queue(`
		SELECT EXISTS (SELECT FROM redrive.deaths k WHERE k.dead_job_id = d.id AND k.death_key = u.death_key),
		       coalesce(p.sha256, ''), coalesce(p.encoding, ''), p.bytes IS NOT NULL,
		       (SELECT coalesce(max(v.version), 0) FROM redrive.payloads v WHERE v.dead_job_id = d.id)
		FROM unnest(@environment::text[], @source::text[], @job_id::text[], @death_key::text[])
		     WITH ORDINALITY AS u(environment, source, job_id, death_key, position)
		JOIN redrive.dead_jobs d USING (environment, source, job_id)
		LEFT JOIN redrive.payloads p ON p.dead_job_id = d.id AND p.version = d.payload_version
		ORDER BY u.position`, args)
	results := tx.SendBatch(ctx, batch)
	defer func() { _ = results.Close() }()
	jobs, err := collect[knownJob](results)
	if err != nil {
		return err
	}
	details, err := collect[knownDetail](results)
	if err != nil {
		return err
	}
	if len(jobs) != len(rows) || len(details) != len(rows) {
		// Purged between insert and lock, or hidden by an older snapshot of the
		// caller's isolation level.
		return fmt.Errorf("%d of %d %w", len(rows)-min(len(jobs), len(details)), len(rows), errUnseen)
	}
	for i, d := range rows {
		d.follow(jobs[i], details[i])
	}
	return results.Close()
}

func collect[T any](results pgx.BatchResults) ([]T, error) {
	rows, err := results.Query()
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[T])
}

// follow decides what a death means to a job that is known already.
func (d *death) follow(job knownJob, detail knownDetail) {
	d.id, d.generation, d.outcome, d.payloadVersion = job.ID, job.Generation, CaptureUnchanged, job.PayloadVersion
	last := lastDeath{attempt: job.LastAttempt, at: job.LastAt}
	switch {
	case detail.Told:
		d.deathGen = -1 // nothing to write
		return
	case !last.newer(d.attempt, d.times.told):
		d.deathGen = 0 // told late: recorded, and no more
		return
	}
	d.outcome = CaptureUpdated
	d.generation++
	d.deathGen = d.generation
	if !bytes.Equal(detail.SHA, d.sha) || (detail.Encoding == EncodingNone) != (d.encoding == EncodingNone) ||
		!detail.Kept && d.encoding != EncodingNone {
		d.newPayload = true
		d.payloadVersion = detail.MaxVersion + 1
	}
	// What this document leaves out is still true. It may be shared with the
	// caller, so it is copied first.
	doc := *d.doc
	if doc.IdempotencyKey == "" && doc.JobType == job.JobType {
		doc.IdempotencyKey = job.IdempotencyKey
	}
	for _, f := range []struct {
		into  *string
		known string
	}{
		{&doc.Queue, job.Queue}, {&doc.Tenant, job.Tenant}, {&doc.Entity, job.Entity}, {&doc.Event, job.Event},
		{&d.destination, job.Destination},
	} {
		if *f.into == "" {
			*f.into = f.known
		}
	}
	d.doc = &doc
}
