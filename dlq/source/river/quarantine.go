package river

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/dlq/redact"
)

// previewRunes bounds what the quarantine page shows of a row.
const previewRunes = 2000

// quarantine keeps a death that can't be captured where people see it.
func (r *Reader) quarantine(ctx context.Context, tx pgx.Tx, d death, cause error) error {
	args := r.named()
	args["error"] = "river_job " + strconv.FormatInt(d.key.ID, 10) + ": " + forPeople(cause)
	args["raw"] = []byte(d.raw)
	args["preview"] = cut(redact.Readable(d.raw), previewRunes)
	_, err := tx.Exec(ctx, `
		INSERT INTO redrive.quarantine (door, environment, source, error, raw, preview)
		VALUES ('river', @environment, @source, @error, @raw, @preview)`, args)
	if err != nil {
		return fmt.Errorf("river: quarantine: %w", err)
	}
	r.log.WarnContext(ctx, "a death could not be captured and is quarantined", "river_id", d.key.ID)
	return nil
}

// forPeople is an error's message without its cause, redacted.
func forPeople(err error) string {
	var p *problem.Error
	if errors.As(err, &p) {
		return redact.Readable(p.Message)
	}
	return cut(redact.Readable(err.Error()), 500)
}

func cut(s string, runes int) string {
	if utf8.RuneCountInString(s) <= runes {
		return s
	}
	return string([]rune(s)[:runes-1]) + "…"
}
