package dlq

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/redrive-dlq/redrive/dlq/envelope"
	"github.com/redrive-dlq/redrive/dlq/jobtype"
	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/dlq/redact"
	"github.com/redrive-dlq/redrive/rbac"
)

// Editor edits payloads: only at the places that their type allows, and with
// every other byte as it was. An edit adds a version; none is overwritten.
type Editor struct {
	Pool   *pgxpool.Pool
	Types  func() *jobtype.Catalogue // the catalogue in force now
	Sealer envelope.Sealer
}

// EditForm is what an edit starts from.
type EditForm struct {
	Job    TriageJob
	Size   int64 // of the current version, in bytes
	Places []EditPlace
	// Unusable are declared places that this payload doesn't have, or that
	// can't be edited in it, with the reason.
	Unusable []EditFault
}

// EditPlace is one place that may be edited.
type EditPlace struct {
	Pointer string // JSON Pointer, RFC 6901
	Kind    string // string, number, boolean or null
	Now     string // the redacted value; a string without its quotes
	// Hidden says that Now is a mask and not the value: left empty, the place
	// stays as it is.
	Hidden bool
}

// EditOrder is a wished edit. Values are what was typed, by pointer: the text
// itself for a string, else a JSON scalar. A place that isn't named stays, and
// so does a hidden one with an empty value.
type EditOrder struct {
	Generation int // as shown on the form; 0: not checked
	Version    int // of the payload that was shown
	Values     map[string]string
	Reason     string // required by Save
}

// EditPreview is what an order would change. All texts are redacted.
type EditPreview struct {
	Job     TriageJob
	Size    int64 // after the edit, in bytes
	Changes []EditChange
	Lines   []EditLine
}

// EditChange is one place before and after, as JSON text.
type EditChange struct{ Pointer, Before, After string }

// EditFault is one place where an edit can't be made or breaks the schema.
type EditFault struct {
	Pointer string // empty: the whole payload
	Message string // reads after the pointer; never holds the value
}

// EditRefused is wrapped by the Invalid problem of an order whose values don't
// pass.
type EditRefused struct{ Faults []EditFault }

func (e *EditRefused) Error() string {
	return fmt.Sprintf("dlq: edit: %d places don't pass", len(e.Faults))
}

// Open reads what may be edited. Errors: NotFound, Forbidden, Conflict when the
// job's state or the payload's form allows no edit.
func (e *Editor) Open(ctx context.Context, p *rbac.Principal, id int64) (EditForm, error) {
	j, doc, err := e.read(ctx, p, id)
	if err != nil {
		return EditForm{}, err
	}
	form := EditForm{Job: j, Size: int64(len(doc))}
	view := redact.Payload(doc).Redacted
	for _, pointer := range e.pointers(j.JobType) {
		place, _, fault := editPlaceAt(doc, view, pointer)
		if fault != "" {
			form.Unusable = append(form.Unusable, EditFault{pointer, fault})
			continue
		}
		form.Places = append(form.Places, place)
	}
	return form, nil
}

// Preview says what an order would change and writes nothing. Errors as
// Save's, without the reason's.
func (e *Editor) Preview(ctx context.Context, p *rbac.Principal, id int64, o EditOrder) (EditPreview, error) {
	j, doc, err := e.read(ctx, p, id)
	if err != nil {
		return EditPreview{}, err
	}
	if err := o.current(j); err != nil {
		return EditPreview{}, err
	}
	edited, changes, err := e.apply(j, doc, o)
	if err != nil {
		return EditPreview{}, err
	}
	out := EditPreview{Job: j, Size: int64(len(edited))}
	before, after := redact.Payload(doc).Redacted, redact.Payload(edited).Redacted
	for _, c := range changes {
		out.Changes = append(out.Changes, EditChange{c.pointer, editShown(before, c.pointer), editShown(after, c.pointer)})
	}
	out.Lines = editLines(before, after, changes)
	return out, nil
}

// read reads the job and the exact bytes of its current payload in one snapshot.
func (e *Editor) read(ctx context.Context, p *rbac.Principal, id int64) (j TriageJob, doc []byte, err error) {
	options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err = pgx.BeginTxFunc(ctx, e.Pool, options, func(tx pgx.Tx) error {
		if j, err = TriageRead(ctx, tx, p, id, rbac.Edit); err != nil {
			return err
		}
		if err := (act{name: "edit", from: unsettled}).allowed(j); err != nil {
			return err
		}
		stored, err := readEdited(ctx, tx, j)
		if err != nil {
			return err
		}
		doc, err = e.open(stored, j)
		return err
	})
	return j, doc, err
}

// edited is the stored version that an edit starts from.
type edited struct {
	Bytes    []byte
	Encoding string
	JobID    string
	StoreID  string
	Last     int // highest version there is
}

func readEdited(ctx context.Context, tx pgx.Tx, j TriageJob) (edited, error) {
	rows, err := tx.Query(ctx, `
		SELECT p.bytes, p.encoding, d.job_id, (SELECT store_id::text FROM redrive.store),
		       (SELECT max(version) FROM redrive.payloads WHERE dead_job_id = d.id)
		FROM redrive.dead_jobs d
		JOIN redrive.payloads p ON p.dead_job_id = d.id AND p.version = d.payload_version
		WHERE d.id = $1`, j.ID)
	if err != nil {
		return edited{}, fmt.Errorf("dlq: edit: read payload: %w", err)
	}
	stored, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[edited])
	if errors.Is(err, pgx.ErrNoRows) {
		return edited{}, errEditGone
	}
	if err != nil {
		return edited{}, fmt.Errorf("dlq: edit: read payload: %w", err)
	}
	return stored, nil
}

var errEditGone = problem.New(problem.Conflict, "The payload isn't stored any more, so it can't be edited.")

// open returns the exact bytes. Errors: Conflict for what isn't JSON.
func (e *Editor) open(stored edited, j TriageJob) ([]byte, error) {
	switch {
	case j.PayloadKind == "printout":
		return nil, problem.New(problem.Conflict, "Only a printout of the arguments is stored, so there is no payload to edit.")
	case stored.Bytes == nil || stored.Encoding == EncodingNone:
		return nil, errEditGone
	case j.PayloadKind != string(redact.FormJSON):
		return nil, problem.New(problem.Conflict, "This payload is %s, not JSON, so it has no places that can be edited.", j.PayloadKind)
	}
	doc, err := e.Sealer.Open(stored.Bytes, envelope.AssociatedData(stored.StoreID, j.Environment, stored.JobID, j.PayloadVersion))
	if err != nil {
		return nil, fmt.Errorf("dlq: edit: open payload: %w", err)
	}
	if !json.Valid(doc) {
		return nil, problem.New(problem.Conflict, "This payload is nested too deeply to be edited.")
	}
	return doc, nil
}

func (e *Editor) pointers(jobType string) []string {
	if t, ok := e.Types().Type(jobType); ok {
		return slices.Clone(t.Edits.Payload)
	}
	return nil
}

// current refuses an order that was made from another version. Errors: Conflict.
func (o EditOrder) current(j TriageJob) error {
	if o.Version != j.PayloadVersion || (o.Generation != 0 && o.Generation != j.Generation) {
		return problem.New(problem.Conflict, "The job changed since you opened the edit. Nothing was saved; open it again and look at the payload first.")
	}
	return nil
}
