package river

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/redrive-dlq/redrive/dlq/problem"
)

// row is a river_job row as to_json writes it. Raw fields keep PostgreSQL's
// bytes: in to_json, args stand exactly as args::text gives them.
type row struct {
	ID          int64             `json:"id"`
	Args        json.RawMessage   `json:"args"`
	Attempt     int               `json:"attempt"`
	AttemptedAt json.RawMessage   `json:"attempted_at"`
	AttemptedBy []string          `json:"attempted_by"`
	CreatedAt   json.RawMessage   `json:"created_at"`
	Errors      []json.RawMessage `json:"errors"`
	FinalizedAt string            `json:"finalized_at"`
	Kind        string            `json:"kind"`
	MaxAttempts int               `json:"max_attempts"`
	Metadata    json.RawMessage   `json:"metadata"`
	Priority    int               `json:"priority"`
	Queue       string            `json:"queue"`
	ScheduledAt json.RawMessage   `json:"scheduled_at"`
	State       string            `json:"state"`
	Tags        []string          `json:"tags"`
}

// riverError is one entry of errors: what River writes after a failed attempt.
type riverError struct {
	At      json.RawMessage `json:"at"`
	Attempt int             `json:"attempt"`
	Error   string          `json:"error"`
	Trace   string          `json:"trace"` // empty unless the worker panicked
	raw     json.RawMessage
}

// parseRow reads the JSON of a row. Errors: problem.Malformed.
func parseRow(raw string) (*row, error) {
	var j row
	if err := json.Unmarshal([]byte(raw), &j); err != nil {
		return nil, problem.Wrap(err, problem.Malformed, "This river_job row can't be read: its JSON has an unexpected form.")
	}
	if j.ID == 0 || j.Kind == "" {
		return nil, problem.New(problem.Malformed, "This river_job row can't be read: it has no id or no kind.")
	}
	return &j, nil
}

// finalized is finalized_at as a value of the database. Infinity is one, and so
// are dates that PostgreSQL can hold and JSON's usual form can't.
func (j *row) finalized() (pgtype.Timestamptz, error) {
	switch j.FinalizedAt {
	case "infinity":
		return pgtype.Timestamptz{Valid: true, InfinityModifier: pgtype.Infinity}, nil
	case "-infinity":
		return pgtype.Timestamptz{Valid: true, InfinityModifier: pgtype.NegativeInfinity}, nil
	}
	at, err := time.Parse(time.RFC3339Nano, j.FinalizedAt)
	if err != nil {
		return pgtype.Timestamptz{}, problem.Wrap(err, problem.Malformed, "finalized_at of this river_job row is not a time that can be read.")
	}
	return pgtype.Timestamptz{Valid: true, Time: at}, nil
}

// history returns the errors that can be read, oldest first. An entry of
// another form is kept as a message without a class.
func (j *row) history() []riverError {
	list := make([]riverError, 0, len(j.Errors))
	for i, raw := range j.Errors {
		e := riverError{raw: raw}
		if json.Unmarshal(raw, &e) != nil {
			e = riverError{raw: raw, Attempt: i + 1, Error: string(raw)}
		}
		list = append(list, e)
	}
	return list
}

// worker is the client that made an attempt. River appends to attempted_by and
// may have trimmed its beginning, so it is counted from the end.
func (j *row) worker(attempt int) string {
	i := len(j.AttemptedBy) - 1 - (j.Attempt - attempt)
	if i < 0 || i >= len(j.AttemptedBy) {
		return ""
	}
	return j.AttemptedBy[i]
}

// fields are the members of a JSON object by their exact names; nil for
// anything else.
func fields(raw json.RawMessage) map[string]json.RawMessage {
	var m map[string]json.RawMessage
	if json.Unmarshal(raw, &m) != nil {
		return nil
	}
	return m
}

// word is a member that is a string, or a number as written; "" otherwise.
func word(m map[string]json.RawMessage, name string) string {
	raw := bytes.TrimSpace(m[name])
	if len(raw) == 0 {
		return ""
	}
	var s string
	if raw[0] == '"' {
		if json.Unmarshal(raw, &s) == nil {
			return s
		}
		return ""
	}
	if raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9' {
		return string(raw)
	}
	return ""
}
