package replay

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/dlq/envelope"
)

// payloadsAtOnce is how many bytes of payloads are held while judging, unless a
// single one is larger.
const payloadsAtOnce = 32 << 20

// ignoresPayload is a target that carries any bytes: they needn't be read to
// judge.
type ignoresPayload interface{ IgnoresPayload() bool }

// judgePayloads looks at the payloads of those that are eligible so far, a
// bounded number of bytes at a time, and corrects their verdicts.
func (s *Service) judgePayloads(ctx context.Context, tx pgx.Tx, j judging, all []facts, out []Verdict) error {
	target, _ := j.Type.Target(j.Environment)
	to, ok := s.Targets[kindOf(target)]
	var some []int
	var bytes int64
	flush := func() error {
		if len(some) == 0 {
			return nil
		}
		err := s.judgeSome(ctx, tx, j, to, all, out, some)
		some, bytes = some[:0], 0
		return err
	}
	for i := range all {
		if out[i].Code != Eligible {
			continue
		}
		if !ok {
			out[i] = Verdict{Code: NotReplayable, Lift: LiftConfigure, Detail: "This process knows no target of kind " + kindOf(target) + "."}
			continue
		}
		out[i].target = target
		if bytes += all[i].PayloadSize; bytes > payloadsAtOnce {
			if err := flush(); err != nil {
				return err
			}
			bytes = all[i].PayloadSize
		}
		some = append(some, i)
	}
	return flush()
}

// judgeSome judges the payloads at the given places.
func (s *Service) judgeSome(ctx context.Context, tx pgx.Tx, j judging, to Target, all []facts, out []Verdict, places []int) error {
	payloads := make([][]byte, len(all))
	ignores, ok := to.(ignoresPayload)
	if len(j.Type.SchemaFiles) > 0 || len(j.Type.Checks) > 0 || !ok || !ignores.IgnoresPayload() {
		if err := s.openPayloads(ctx, tx, all, payloads, out, places); err != nil {
			return err
		}
		for _, i := range places {
			if out[i].Code == Eligible {
				s.judgeSchema(j, all[i], payloads[i], &out[i])
			}
		}
	}
	if err := judgeTarget(ctx, tx, to, all, payloads, out, places); err != nil {
		return err
	}
	return s.judgeChecks(ctx, j, payloads, out, places)
}

func (s *Service) judgeSchema(j judging, f facts, payload []byte, v *Verdict) {
	if len(j.Type.SchemaFiles) == 0 {
		return
	}
	faults, err := j.Type.Validate(f.SchemaVersion, payload)
	switch {
	case err != nil:
		*v = Verdict{Code: SchemaViolation, Lift: LiftCatalogue, Detail: err.Error()}
	case len(faults) > 0:
		*v = Verdict{Code: SchemaViolation, Lift: LiftEdit, Fields: faults,
			Detail: fmt.Sprintf("The payload breaks its schema: %s %s.", faults[0].Pointer, faults[0].Message)}
	}
}

// judgeTarget asks the target about all that are still eligible at once.
func judgeTarget(ctx context.Context, tx pgx.Tx, to Target, all []facts, payloads [][]byte, out []Verdict, places []int) error {
	var items []Item
	var bytes [][]byte
	var of []int
	for _, i := range places {
		if out[i].Code == Eligible {
			items, bytes, of = append(items, all[i].item(out[i].target)), append(bytes, payloads[i]), append(of, i)
		}
	}
	if len(items) == 0 {
		return nil
	}
	refusals, err := to.Check(ctx, tx, items, bytes)
	if err != nil {
		return err
	}
	for n, refusal := range refusals {
		if refusal != nil {
			out[of[n]] = Verdict{Code: TargetCantCarry, Detail: "The target can't carry this payload: " + refusal.Detail + "."}
		}
	}
	return nil
}

// openPayloads reads the exact bytes at the given places in one query. What
// can't be opened is its job's verdict.
func (s *Service) openPayloads(ctx context.Context, tx pgx.Tx, all []facts, payloads [][]byte, out []Verdict, places []int) error {
	at := make(map[int64]int, len(places))
	ids, versions := make([]int64, 0, len(places)), make([]int32, 0, len(places))
	for _, i := range places {
		at[all[i].ID] = i
		ids, versions = append(ids, all[i].ID), append(versions, int32(all[i].PayloadVersion)) //nolint:gosec // a version counts edits
	}
	var store string
	if err := tx.QueryRow(ctx, `SELECT store_id::text FROM redrive.store`).Scan(&store); err != nil {
		return fmt.Errorf("replay: store: %w", err)
	}
	rows, err := tx.Query(ctx, `
		SELECT p.dead_job_id, p.bytes
		FROM unnest($1::bigint[], $2::integer[]) v(id, version)
		JOIN redrive.payloads p ON p.dead_job_id = v.id AND p.version = v.version
		WHERE p.bytes IS NOT NULL AND p.encoding <> 'none'`, ids, versions)
	if err != nil {
		return fmt.Errorf("replay: read payloads: %w", err)
	}
	var id int64
	var sealed []byte
	read := map[int64]bool{}
	_, err = pgx.ForEachRow(rows, []any{&id, &sealed}, func() error {
		i := at[id]
		read[id] = true
		plain, err := s.Sealer.Open(sealed, envelope.AssociatedData(store, all[i].Environment, all[i].JobID, all[i].PayloadVersion))
		if err != nil {
			out[i] = Verdict{Code: PayloadUnreadable, Lift: LiftConfigure, Detail: "The payload is stored but cannot be opened: its key isn't there."}
			return nil
		}
		payloads[i] = plain
		sealed = nil // the plain seam returns a part of it
		return nil
	})
	if err != nil {
		return fmt.Errorf("replay: read payloads: %w", err)
	}
	for _, i := range places {
		if !read[all[i].ID] && out[i].Code == Eligible {
			out[i] = Verdict{Code: PayloadMissing, Detail: "The payload isn't stored any more, so this job cannot be sent again."}
		}
	}
	return nil
}
