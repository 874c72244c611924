// Package envelope is the seam where payloads, raw headers and raw error texts
// are sealed before they are stored and opened before they are sent.
package envelope

import (
	"encoding/binary"
	"fmt"
)

// Sealer turns bytes into what the store keeps, and back. The associated data
// is not kept: it binds the sealed bytes to their row, so that a value copied
// to another row can't be opened there.
type Sealer interface {
	// Seal returns the stored form of plain, bound to ad.
	Seal(plain, ad []byte) ([]byte, error)
	// Open returns exactly the bytes that were sealed with the same ad.
	Open(sealed, ad []byte) ([]byte, error)
}

// plainMark is the first byte of what Plain stores. A sealer that encrypts
// must begin with another, so that each knows its own.
const plainMark = 0x00

// Plain stores bytes in clear. It is NOT encryption: it checks nothing and
// protects nothing. It stands for the sealer where none is configured, and
// marks what it stores with a leading zero byte so that a store can move from
// it to a real one.
type Plain struct{}

var _ Sealer = Plain{}

// Name says what this sealer is, for start-up logs and status pages.
func (Plain) Name() string { return "plain (not encrypted)" }

// Seal prefixes the mark; ad is ignored.
func (Plain) Seal(plain, _ []byte) ([]byte, error) {
	return append([]byte{plainMark}, plain...), nil
}

// Open removes the mark. Bytes that Plain did not store are an error.
func (Plain) Open(sealed, _ []byte) ([]byte, error) {
	if len(sealed) == 0 || sealed[0] != plainMark {
		return nil, fmt.Errorf("envelope: these bytes were not stored in clear and no key is configured to open them")
	}
	return append([]byte{}, sealed[1:]...), nil
}

// AssociatedData names the place of a sealed value: the store, the
// environment, the job's id and the payload's version. Each part is prefixed
// with its length, so that no two places share their bytes ("a","bc" and
// "ab","c" differ).
func AssociatedData(store, environment, jobID string, version int) []byte {
	out := make([]byte, 0, len(store)+len(environment)+len(jobID)+4*4+8)
	out = append(out, "rdv1"...)
	for _, part := range []string{store, environment, jobID} {
		out = binary.BigEndian.AppendUint32(out, uint32(len(part)))
		out = append(out, part...)
	}
	return binary.BigEndian.AppendUint64(out, uint64(version))
}
