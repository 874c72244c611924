package dlq

import (
	"context"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/dlq/redact"
)

// maxPreview is the length of a quarantined capture's preview in characters.
const maxPreview = 2000

// QuarantineEntry is a capture that could not be taken, kept whole and visible.
type QuarantineEntry struct {
	Door        string // sql, http, river, go
	Environment string
	Source      string
	Err         error // a *problem.Error says what and where; others are not shown
	Raw         []byte
	ReceivedAt  time.Time // zero means now
}

// Quarantine keeps a capture in the caller's transaction.
func (c *Capturer) Quarantine(ctx context.Context, tx pgx.Tx, e QuarantineEntry) error {
	storeID, err := c.store(ctx, tx)
	if err != nil {
		return err
	}
	raw, err := c.sealer.Seal(e.Raw, CapturePartAD(storeID, e.Environment, "", "quarantine", 0))
	if err != nil {
		return fmt.Errorf("dlq: quarantine: seal: %w", err)
	}
	if raw == nil {
		raw = []byte{}
	}
	at := e.ReceivedAt
	if at.IsZero() {
		at = c.now()
	}
	_, err = tx.Exec(ctx, `
		INSERT INTO redrive.quarantine (door, environment, source, error, raw, sealing, preview, received_at)
		VALUES (@door, @environment, @source, @error, @raw, @sealing, @preview, @received_at)`, pgx.NamedArgs{
		"door":        e.Door,
		"environment": cut(redact.Visible(e.Environment), maxClass),
		"source":      cut(redact.Visible(e.Source), maxClass),
		"error":       quarantineError(e.Err),
		"raw":         raw,
		"sealing":     sealingName(c.sealer),
		"preview":     quarantinePreview(e.Raw),
		"received_at": at,
	})
	if err != nil {
		return fmt.Errorf("dlq: quarantine: %w", err)
	}
	return nil
}

// quarantineError is the message that people read. Only our own messages are
// known to hold no values.
func quarantineError(err error) string {
	var e *problem.Error
	if errors.As(err, &e) {
		return redact.Readable(e.Message)
	}
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return "The database refused it (SQLSTATE " + pg.Code + "). The document is kept as it came."
	}
	return "It could not be stored. The document is kept as it came."
}

// quarantinePreview is the redacted beginning of a capture. It is redacted
// before it is cut: half a secret looks like none.
func quarantinePreview(raw []byte) string {
	const most = 1 << 20
	if len(raw) > most || !utf8.Valid(raw) || !validJSON(raw) {
		raw = raw[:min(len(raw), 16<<10)]
		return cut(redact.Readable(string(raw)), maxPreview)
	}
	out, _ := redact.JSON(raw)
	return cut(redact.Visible(string(redact.Storable(out))), maxPreview)
}
