package river

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/redrive-dlq/redrive/dlq"
)

// sourceRef is what finds the row again; stored in dead_jobs.source_ref.
type sourceRef struct {
	RiverID     int64  `json:"river_id"`
	Attempt     int    `json:"attempt"`
	FinalizedAt string `json:"finalized_at"`
	Schema      string `json:"schema"`
	Client      string `json:"client,omitempty"`
	Replay      string `json:"replay,omitempty"`
}

// document maps a row to the death it tells. After is the attempt of the row's
// last death that was captured before, 0 for none: River keeps the errors of all
// attempts, and those were told already.
func (r *Reader) document(j *row, at pgtype.Timestamptz, after int) *dlq.Document {
	m := readMetadata(j.Metadata)
	d := &dlq.Document{
		Environment:     r.src.Environment,
		Source:          r.src.Name,
		JobType:         j.Kind,
		JobID:           m.word("job_id"),
		IdempotencyKey:  m.word("key", "idempotency_key"),
		Queue:           j.Queue,
		Tenant:          m.word("tenant"),
		Entity:          m.word("entity"),
		Event:           m.word("event"),
		Destination:     m.word("destination"),
		Payload:         j.Args,
		PayloadEncoding: dlq.EncodingJSON,
		PayloadVersion:  positive(m.word("payload_version")),
		Extra:           j.extra(),
		EnqueuedAt:      j.CreatedAt,
		DeadAt:          marshal(timeText(at)),
		AttemptCount:    j.Attempt,
		MaxAttempts:     j.MaxAttempts,
	}
	if len(m.all) > 0 {
		d.Headers = j.Metadata
	}
	if d.JobID == "" {
		d.JobID = strconv.FormatInt(j.ID, 10)
	}
	if d.IdempotencyKey == "" {
		d.IdempotencyKey = keyInArgs(j.Args)
	}
	r.attempts(d, j, m, after)
	d.SourceRef = marshal(sourceRef{
		RiverID: j.ID, Attempt: j.Attempt, FinalizedAt: timeText(at),
		Schema: r.src.Schema, Client: r.src.Client, Replay: m.word("replay"),
	})
	return d
}

// keyInArgs is the key of a job that names it only in its arguments.
func keyInArgs(args json.RawMessage) string {
	m := fields(args)
	if key := word(m, "idempotency_key"); key != "" {
		return key
	}
	return word(m, "send_id")
}

// attempts fills the history and what its last entry says of the death.
func (r *Reader) attempts(d *dlq.Document, j *row, m metadata, after int) {
	all := j.history()
	fresh := all
	for len(fresh) > 0 && fresh[0].Attempt <= after {
		fresh = fresh[1:]
	}
	if len(fresh) == 0 && len(all) > 0 {
		fresh = all[len(all)-1:] // it ended again without a new try: its last error is still why
	}
	if extra := len(fresh) - dlq.MaxAttempts; extra > 0 {
		fresh = fresh[extra:]
	}
	var last failure
	for _, e := range fresh {
		last = readError(e.Error, e.Trace)
		last.said.add(m.attempts[e.Attempt])
		d.Attempts = append(d.Attempts, dlq.AttemptDoc{
			At: e.At, ErrorClass: last.class, Message: last.message, Stack: last.stack, Causes: last.causes,
			Worker: j.worker(e.Attempt), WorkerVersion: last.said.WorkerVersion,
			DurationMS: last.said.DurationMS, SideEffect: last.said.SideEffect, Raw: e.raw,
		})
	}
	failedNow := len(all) > 0 && all[len(all)-1].Attempt == j.Attempt
	words := last.said
	if m.death.Attempt == j.Attempt {
		words = m.death.said
		words.add(last.said)
	}
	d.GaveUp = oneOf(gaveUpWords, m.atEnd("gave_up"), words.GaveUp, gaveUp(j.State, last, failedNow))
	d.Category = oneOf(categoryWords, m.atEnd("category"), words.Category)
	d.ReasonCode, d.ReasonText = words.Reason.Code, words.Reason.Text
	d.Effect = oneOf(effectWords, m.atEnd("effect"), words.Effect)
	if d.Effect == "done" {
		d.EffectID = firstOf(m.atEnd("effect_id"), words.EffectID)
	}
}

// gaveUp is why River stopped: a discarded job used up its attempts; a cancelled
// one was cancelled by its worker (its last attempt says so) or from outside.
func gaveUp(state string, last failure, failedNow bool) string {
	switch {
	case state == "discarded":
		return "attempts"
	case last.notRetryable && failedNow:
		return "not_retryable"
	default:
		return "cancelled"
	}
}

// extra are columns that the document has no field for.
func (j *row) extra() json.RawMessage {
	m := map[string]any{"priority": j.Priority, "state": j.State}
	if len(j.Tags) > 0 {
		m["tags"] = j.Tags
	}
	for name, at := range map[string]json.RawMessage{"scheduled_at": j.ScheduledAt, "attempted_at": j.AttemptedAt} {
		if len(at) > 0 && string(at) != "null" {
			m[name] = at
		}
	}
	return marshal(m)
}

// timeText is UTC with River's precision, so that a death reads the same in
// whatever time zone a session runs.
func timeText(at pgtype.Timestamptz) string {
	switch at.InfinityModifier {
	case pgtype.Infinity:
		return "infinity"
	case pgtype.NegativeInfinity:
		return "-infinity"
	default:
		return at.Time.UTC().Format("2006-01-02T15:04:05.000000Z")
	}
}

func positive(s string) int {
	n, err := strconv.Atoi(strings.TrimSpace(s))
	if err != nil || n < 1 {
		return 1
	}
	return n
}

// marshal is for values that can't fail: strings, numbers and raw JSON that was
// parsed before.
func marshal(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	return b
}
