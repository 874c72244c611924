package board

import (
	"crypto/sha256"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/dlq/cursor"
)

// place is where a page of a list begins; its zero Cursor is the first page.
type place struct {
	list byte
	hash [8]byte
	at   *cursor.Cursor
}

// readPlace reads a cursor that belongs to the list with the given filter.
func readPlace(text string, list byte, filter string) (place, error) {
	sum := sha256.Sum256([]byte(filter))
	p := place{list: list, hash: [8]byte(sum[:8])}
	if text == "" {
		return p, nil
	}
	at, err := cursor.Parse(text, list, p.hash)
	if err != nil {
		return p, err
	}
	p.at = &at
	return p, nil
}

func (p place) backwards() bool { return p.at != nil && p.at.Direction == cursor.Prev }

// condition is the row comparison that the page begins at, and the order in
// which its rows are read: newest first, or the other way for the page before.
func (p place) condition(atColumn, idColumn string, args pgx.NamedArgs) (where, order string) {
	if p.at == nil {
		return "true", "DESC"
	}
	args["at"], args["id"] = p.at.At, p.at.ID
	if p.backwards() {
		return "(" + atColumn + ", " + idColumn + ") > (@at, @id)", "ASC"
	}
	return "(" + atColumn + ", " + idColumn + ") < (@at, @id)", "DESC"
}

// turn brings what was read (one row more than a page) into order, and says
// where the pages beside it begin.
func turn[T any](p place, found []T, key func(T) (time.Time, int64)) (rows []T, next, prev string) {
	more := len(found) > pageSize
	if more {
		found = found[:pageSize]
	}
	if p.backwards() {
		slices.Reverse(found)
	}
	if len(found) == 0 {
		return nil, "", ""
	}
	at := func(row T, d cursor.Direction) string {
		when, id := key(row)
		return cursor.Cursor{List: p.list, Direction: d, At: when, ID: id, Hash: p.hash}.String()
	}
	if more || p.backwards() {
		next = at(found[len(found)-1], cursor.Next)
	}
	if p.at != nil && (more || !p.backwards()) {
		prev = at(found[0], cursor.Prev)
	}
	return found, next, prev
}
