package jobtype

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/audit"
)

// Version is a catalogue that was, or is, in force.
type Version struct {
	ID        int64 // counts up; 0: none
	LoadedAt  time.Time
	LoadedBy  string // "SIGHUP on host-1"
	Sum       string // SHA-256 of its files, in hex
	Catalogue *Catalogue
	// Changes since the version before; nil for the first.
	Changes []Change
}

// storeVersion makes a catalogue the newest version and says so in the audit
// log, unless the newest has the same files already.
func storeVersion(ctx context.Context, db beginner, c *Catalogue, by string) (v Version, err error) {
	err = pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
		// Two processes that load at once make one version after the other.
		if _, err := tx.Exec(ctx, `LOCK TABLE redrive.catalogue_versions IN SHARE ROW EXCLUSIVE MODE`); err != nil {
			return err
		}
		newest, err := readVersion(ctx, tx, 0)
		if err != nil {
			return err
		}
		if newest.ID != 0 && newest.Sum == c.files.Hex() {
			v = newest
			return nil
		}
		v = Version{LoadedBy: by, Sum: c.files.Hex()}
		texts, err := json.Marshal(c.files.Texts)
		if err != nil {
			return err
		}
		sum := c.files.Sum()
		err = tx.QueryRow(ctx, `
			INSERT INTO redrive.catalogue_versions (sha256, files, main, loaded_by)
			VALUES ($1, $2, $3, $4)
			RETURNING id, loaded_at`, sum[:], texts, c.files.Main, by).Scan(&v.ID, &v.LoadedAt)
		if err != nil {
			return err
		}
		return appendLoad(ctx, tx, v, newest.Catalogue, c)
	})
	if err != nil {
		return Version{}, fmt.Errorf("catalogue: store version: %w", err)
	}
	v.Catalogue = c
	return v, nil
}

func appendLoad(ctx context.Context, tx pgx.Tx, v Version, before, now *Catalogue) error {
	if before == nil {
		before = &Catalogue{}
	}
	count := map[string]int{}
	for _, change := range Diff(before, now) {
		count[change.What]++
	}
	details := map[string]any{"version": v.ID, "sha256": v.Sum, "loaded_by": v.LoadedBy, "types": len(now.names),
		"added": count["added"], "changed": count["changed"], "removed": count["removed"]}
	if !slices.Equal(before.CoolingOff, now.CoolingOff) {
		// Where nobody else has to agree any more, or has to again.
		details["cooling_off"], details["cooling_off_before"] = append([]string{}, now.CoolingOff...), append([]string{}, before.CoolingOff...)
	}
	_, err := audit.Append(ctx, tx, audit.SystemActor(), audit.Entry{
		Action: "catalogue.load", Object: audit.Object{Kind: "catalogue", ID: strconv.FormatInt(v.ID, 10)}, Details: details})
	return err
}

// readVersion reads a version's row, and its catalogue if this program can
// still read it; id 0 is the newest. A zero Version: there is none.
func readVersion(ctx context.Context, db queryer, id int64) (Version, error) {
	var v Version
	var texts []byte
	var files Files
	err := db.QueryRow(ctx, `
		SELECT id, loaded_at, loaded_by, encode(sha256, 'hex'), main, files
		FROM redrive.catalogue_versions
		WHERE id = $1 OR $1 = 0
		ORDER BY id DESC
		LIMIT 1`, id).Scan(&v.ID, &v.LoadedAt, &v.LoadedBy, &v.Sum, &files.Main, &texts)
	if errors.Is(err, pgx.ErrNoRows) {
		return Version{}, nil
	}
	if err != nil {
		return Version{}, fmt.Errorf("catalogue: read version: %w", err)
	}
	if err := json.Unmarshal(texts, &files.Texts); err != nil {
		return Version{}, fmt.Errorf("catalogue: version %d: %w", v.ID, err)
	}
	if c, err := Parse(files); err == nil {
		v.Catalogue = c
	}
	return v, nil
}

// Stored is the catalogue that was loaded last; nil when none ever was, or this
// program can't read it.
func Stored(ctx context.Context, db queryer) (*Catalogue, error) {
	v, err := readVersion(ctx, db, 0)
	return v.Catalogue, err
}

type queryer interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

type beginner interface {
	Begin(ctx context.Context) (pgx.Tx, error)
}
