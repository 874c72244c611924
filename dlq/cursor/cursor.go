// Package cursor is the opaque place in a list that is sorted by a time and an
// id, newest first: where a page ended and the next one begins.
package cursor

import (
	"encoding/base64"
	"encoding/binary"
	"time"

	"github.com/redrive-dlq/redrive/dlq/problem"
)

// Direction says on which side of the place the page lies.
type Direction byte

// The directions.
const (
	Next Direction = 'n' // older rows
	Prev Direction = 'p' // newer rows
)

// Cursor is a place in a list. It is no secret and grants nothing: the list
// checks the scope of every request by itself.
type Cursor struct {
	List byte // which list and sort it belongs to
	Direction
	At   time.Time // of the row at the place, to the microsecond
	ID   int64
	Hash [8]byte // of the filter it belongs to
}

// version is the first byte, so that the form may change.
const version = 1

const size = 1 + 1 + 1 + 8 + 8 + 8

// String writes the cursor in letters that need no escaping in an address.
func (c Cursor) String() string {
	b := make([]byte, 0, size)
	b = append(b, version, c.List, byte(c.Direction))
	b = binary.BigEndian.AppendUint64(b, uint64(c.At.UnixMicro()))
	b = binary.BigEndian.AppendUint64(b, uint64(c.ID))
	b = append(b, c.Hash[:]...)
	return base64.RawURLEncoding.EncodeToString(b)
}

// Parse reads a cursor of the given list and filter. Errors: Invalid, field
// cursor, for one that is broken or belongs to another list or filter.
func Parse(text string, list byte, hash [8]byte) (Cursor, error) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(b) != size || b[0] != version || b[1] != list ||
		(b[2] != byte(Next) && b[2] != byte(Prev)) {
		return Cursor{}, problem.At(problem.Invalid, "cursor", "This isn't a place in this list: start again from its first page.")
	}
	c := Cursor{
		List: b[1], Direction: Direction(b[2]),
		At: time.UnixMicro(int64(binary.BigEndian.Uint64(b[3:]))).UTC(),
		ID: int64(binary.BigEndian.Uint64(b[11:])), Hash: [8]byte(b[19:]),
	}
	if c.Hash != hash {
		return Cursor{}, problem.At(problem.Invalid, "cursor", "The filter changed since this page was shown: start again from the first page.")
	}
	if c.At.Before(earliest) || c.At.After(latest) {
		return Cursor{}, problem.At(problem.Invalid, "cursor", "This isn't a place in this list: start again from its first page.")
	}
	return c, nil
}

// The range of a timestamptz that a driver takes; nothing died outside it.
var (
	earliest = time.Date(-4000, 1, 1, 0, 0, 0, 0, time.UTC)
	latest   = time.Date(200000, 1, 1, 0, 0, 0, 0, time.UTC)
)
