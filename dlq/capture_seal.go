package dlq

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/dlq/envelope"
)

// sealed are the raw parts of a death as the store keeps them.
type sealed struct {
	sealing  string
	payload  []byte // nil when there is nothing to send
	headers  []byte
	extra    []byte
	attempts [][]byte
}

// The kinds of raw parts besides payloads. They stand before the job id in the
// associated data, so that no part opens in the place of another.
const (
	partHeaders = "headers"
	partExtra   = "extra"
	partAttempt = "attempt"
)

// CapturePartAD is the associated data of a raw part other than the payload:
// part is headers, extra or attempt. A payload's is envelope.AssociatedData of
// its own version.
func CapturePartAD(storeID, environment, jobID, part string, generation int) []byte {
	return append([]byte(part+":"), envelope.AssociatedData(storeID, environment, jobID, generation)...)
}

// sealingName is what the sealing columns hold for a sealer.
func sealingName(s envelope.Sealer) string {
	switch s := s.(type) {
	case envelope.Plain:
		return "plain"
	case interface{ Name() string }:
		return s.Name()
	}
	return "sealed"
}

// seal seals the raw parts of the deaths that are written in full.
func (c *Capturer) seal(ctx context.Context, tx pgx.Tx, round []*death) error {
	storeID, err := c.store(ctx, tx)
	if err != nil {
		return err
	}
	name := sealingName(c.sealer)
	for _, d := range round {
		if !d.current() {
			continue
		}
		d.sealed = sealed{sealing: name, attempts: make([][]byte, len(d.attempts))}
		if err := c.sealDeath(d, storeID); err != nil {
			return fmt.Errorf("dlq: capture: seal: %w", err)
		}
	}
	return nil
}

func (c *Capturer) sealDeath(d *death, storeID string) (err error) {
	part := func(kind string, raw []byte) []byte {
		if len(raw) == 0 || err != nil {
			return nil
		}
		var out []byte
		out, err = c.sealer.Seal(raw, CapturePartAD(storeID, d.doc.Environment, d.doc.JobID, kind, d.generation))
		return out
	}
	d.sealed.headers = part(partHeaders, d.doc.Headers)
	d.sealed.extra = part(partExtra, d.extraRaw)
	for i := range d.attempts {
		d.sealed.attempts[i] = part(partAttempt, d.attempts[i].raw)
	}
	if err != nil || !d.newPayload || d.encoding == EncodingNone {
		return err
	}
	d.sealed.payload, err = c.sealer.Seal(d.doc.Payload, envelope.AssociatedData(storeID, d.doc.Environment, d.doc.JobID, d.payloadVersion))
	if err == nil && d.sealed.payload == nil {
		d.sealed.payload = []byte{} // null would mean that it is gone
	}
	return err
}

// store reads the store's identity once.
func (c *Capturer) store(ctx context.Context, tx pgx.Tx) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.storeID != "" {
		return c.storeID, nil
	}
	var id string
	if err := tx.QueryRow(ctx, `SELECT store_id::text FROM redrive.store`).Scan(&id); err != nil {
		return "", fmt.Errorf("dlq: capture: read the store's identity: %w", err)
	}
	c.storeID = id
	return id, nil
}
