package dlq

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/dlq/envelope"
	"github.com/redrive-dlq/redrive/dlq/redact"
	"github.com/redrive-dlq/redrive/rbac"
)

// Save adds the edited payload as the job's new version and returns its number.
// It lifts the block of invalid input as a declared fix does. Errors: NotFound,
// Forbidden, Invalid (reason, values), Conflict (state, another version).
func (e *Editor) Save(ctx context.Context, p *rbac.Principal, id int64, o EditOrder) (version int, err error) {
	reason, err := triageReason(o.Reason)
	if err != nil {
		return 0, err
	}
	err = triage(ctx, e.Pool, p, id, act{
		name: "edit", perm: rbac.Edit, reason: reason, generation: o.Generation, from: unsettled,
		change: func(ctx context.Context, tx pgx.Tx, j TriageJob) (map[string]any, error) {
			if err := o.current(j); err != nil {
				return nil, err
			}
			stored, err := readEdited(ctx, tx, j)
			if err != nil {
				return nil, err
			}
			doc, err := e.open(stored, j)
			if err != nil {
				return nil, err
			}
			after, values, err := e.apply(j, doc, o)
			if err != nil {
				return nil, err
			}
			version = stored.Last + 1
			if err := e.write(ctx, tx, j, stored, version, after, p.Actor().Name, reason); err != nil {
				return nil, err
			}
			pointers := make([]string, len(values))
			for i, v := range values {
				pointers[i] = v.pointer
			}
			return map[string]any{"pointers": pointers, "from_version": j.PayloadVersion, "version": version, "generation": j.Generation,
				"sha256_before": editHash(doc), "sha256_after": editHash(after)}, nil
		},
	})
	return version, err
}

func editHash(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// write adds the version and makes it the job's current one.
func (e *Editor) write(ctx context.Context, tx pgx.Tx, j TriageJob, stored edited, version int, doc []byte, by, reason string) error {
	sealed, err := e.Sealer.Seal(doc, envelope.AssociatedData(stored.StoreID, j.Environment, stored.JobID, version))
	if err != nil {
		return fmt.Errorf("dlq: edit: seal: %w", err)
	}
	view := redact.Payload(doc)
	sum := sha256.Sum256(doc)
	_, err = tx.Exec(ctx, `
		INSERT INTO redrive.payloads (
			dead_job_id, version, bytes, sealing, encoding, size, sha256, redacted, redact_version, hidden, origin, created_by, reason)
		VALUES (@id, @version, @bytes, @sealing, @encoding, @size, @sha256, @redacted, @redact_version, @hidden, 'edit', @by, @reason)`,
		pgx.NamedArgs{"id": j.ID, "version": version, "bytes": sealed, "sealing": sealingName(e.Sealer), "encoding": stored.Encoding,
			"size": len(doc), "sha256": sum[:], "redacted": view.Redacted, "redact_version": redact.Version, "hidden": view.Hidden,
			"by": by, "reason": reason})
	if err != nil {
		return fmt.Errorf("dlq: edit: write version: %w", err)
	}
	_, err = tx.Exec(ctx, `
		UPDATE redrive.dead_jobs
		SET payload_version = $2, payload_size = $3, payload_kind = 'json', fix_kind = 'edit', fix_ref = $4, updated_at = now()
		WHERE id = $1`, j.ID, version, len(doc), fmt.Sprintf("payload version %d", version))
	if err != nil {
		return fmt.Errorf("dlq: edit: update job: %w", err)
	}
	return nil
}
