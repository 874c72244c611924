package replay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/dlq/envelope"
	"github.com/redrive-dlq/redrive/dlq/ledger"
	"github.com/redrive-dlq/redrive/dlq/problem"
)

// job is what a verdict is made from.
type job struct {
	ID             int64
	Environment    string
	Source         string
	JobID          string
	Generation     int
	JobType        string
	Queue          string
	Tenant         string
	Entity         string
	KeyScope       string
	IdempotencyKey string
	Status         string
	Effect         string
	EffectID       string
	Category       string
	PayloadVersion int
	SchemaVersion  int
	PayloadKind    string
	FixKind        string
	AttemptCount   int
	SourceRef      json.RawMessage
}

func (j job) key() ledger.Key {
	return ledger.Key{Environment: j.Environment, Scope: j.KeyScope, Key: j.IdempotencyKey}
}

func readJob(ctx context.Context, db ledger.DB, id int64, lock string) (j job, err error) {
	err = db.QueryRow(ctx, `
		SELECT id, environment, source, job_id, generation, job_type, queue, tenant, entity, key_scope,
		       idempotency_key, status, effect, effect_id, category, payload_version, schema_version,
		       payload_kind, fix_kind, attempt_count, source_ref
		FROM redrive.dead_jobs
		WHERE id = $1 `+lock, id).
		Scan(&j.ID, &j.Environment, &j.Source, &j.JobID, &j.Generation, &j.JobType, &j.Queue, &j.Tenant, &j.Entity, &j.KeyScope,
			&j.IdempotencyKey, &j.Status, &j.Effect, &j.EffectID, &j.Category, &j.PayloadVersion, &j.SchemaVersion,
			&j.PayloadKind, &j.FixKind, &j.AttemptCount, &j.SourceRef)
	if errors.Is(err, pgx.ErrNoRows) {
		return j, problem.New(problem.NotFound, "There is no job %d.", id)
	}
	if err != nil {
		return j, fmt.Errorf("replay: read job: %w", err)
	}
	return j, nil
}

// errNoPayload says that the bytes of a version aren't there.
var errNoPayload = errors.New("replay: the payload isn't stored")

// Payload returns the exact bytes of one payload version. The only callers
// are targets and the dry run; people read the redacted copy.
func (s *Service) Payload(ctx context.Context, db ledger.DB, deadJobID int64, version int) ([]byte, error) {
	var sealed []byte
	var encoding, environment, jobID, storeID string
	err := db.QueryRow(ctx, `
		SELECT p.bytes, p.encoding, d.environment, d.job_id, (SELECT store_id::text FROM redrive.store)
		FROM redrive.payloads p
		JOIN redrive.dead_jobs d ON d.id = p.dead_job_id
		WHERE p.dead_job_id = $1 AND p.version = $2`, deadJobID, version).
		Scan(&sealed, &encoding, &environment, &jobID, &storeID)
	if errors.Is(err, pgx.ErrNoRows) || (err == nil && (sealed == nil || encoding == "none")) {
		return nil, errNoPayload
	}
	if err != nil {
		return nil, fmt.Errorf("replay: read payload: %w", err)
	}
	plain, err := s.Sealer.Open(sealed, envelope.AssociatedData(storeID, environment, jobID, version))
	if err != nil {
		return nil, fmt.Errorf("replay: open payload: %w", err)
	}
	return plain, nil
}
