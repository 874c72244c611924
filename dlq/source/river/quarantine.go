package river

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/redrive-dlq/redrive/dlq"
	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/dlq/redact"
	"github.com/redrive-dlq/redrive/dlq/source"
)

// quarantine keeps a death that can't be captured where people see it, with the
// row that it is about.
func (r *Reader) quarantine(ctx context.Context, tx pgx.Tx, d death, cause error) error {
	at := "An entry of River's inbox"
	if d.key.ID > 0 {
		at = fmt.Sprintf("river_job %d, attempt %d", d.key.ID, d.key.Attempt)
	}
	err := r.cfg.Capturer.Quarantine(ctx, tx, dlq.QuarantineEntry{
		Door: source.KindRiver, Environment: r.src.Environment, Source: r.src.Name,
		Err: problem.Wrap(cause, problem.Invalid, "%s: %s", at, refusal(cause)),
		Raw: []byte(d.raw),
	})
	if err != nil {
		return fmt.Errorf("river: %w", err)
	}
	r.log.WarnContext(ctx, "a death could not be captured and is quarantined", "river_id", d.key.ID)
	return nil
}

// refusal says why in words that hold no values: only our own messages are known
// not to.
func refusal(err error) string {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return "the database refused it (SQLSTATE " + pg.Code + ")."
	}
	var p *problem.Error
	if errors.As(err, &p) {
		return p.Message
	}
	return "it could not be stored."
}

// forPeople is an error's message, redacted and short.
func forPeople(err error) string {
	text := []rune(redact.Readable(err.Error()))
	if most := 500; len(text) > most {
		return string(text[:most-1]) + "…"
	}
	return string(text)
}
