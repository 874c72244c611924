package jobtype

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// follow is how often a process looks whether another loaded a newer version.
const follow = time.Second

// Keeper holds the catalogue in force. The newest version in the database is in
// force in every process: one that loads a file makes it the newest, the others
// follow within two seconds.
type Keeper struct {
	pool  *pgxpool.Pool
	log   *slog.Logger
	load  func() (*Catalogue, error)
	start *Catalogue // what sources and pages of this process were opened by

	now     atomic.Pointer[Version]
	mu      sync.Mutex // one change at a time; guards refused
	refused int64      // the newest version that this program can't read
}

// NewKeeper loads the catalogue, makes it the newest version unless it is so
// already, and keeps it. by says who loads, for people. Errors: [Faults], and
// the database's own.
func NewKeeper(ctx context.Context, pool *pgxpool.Pool, load func() (*Catalogue, error), by string, log *slog.Logger) (*Keeper, error) {
	k := &Keeper{pool: pool, log: log, load: load}
	c, err := load()
	if err != nil {
		return nil, err
	}
	k.start = c
	return k, k.take(ctx, c, by)
}

// Catalogue is the one in force now.
func (k *Keeper) Catalogue() *Catalogue { return k.now.Load().Catalogue }

// Version is the one in force now.
func (k *Keeper) Version() Version { return *k.now.Load() }

// Reload reads the file again. With a fault in it nothing changes: the version
// in force stays, and the error says what is wrong in which lines.
func (k *Keeper) Reload(ctx context.Context, by string) error {
	c, err := k.load()
	if err == nil {
		before := k.Version().ID
		if err = k.take(ctx, c, by); err == nil {
			k.report(ctx, before)
			return nil
		}
	}
	var faults Faults
	if errors.As(err, &faults) {
		for _, f := range faults {
			k.log.ErrorContext(ctx, "the catalogue has a fault", "fault", f.String())
		}
	}
	k.log.ErrorContext(ctx, "the catalogue was not loaded; the version in force stays", "version", k.Version().ID, "error", err)
	return fmt.Errorf("catalogue not loaded, version %d stays in force: %w", k.Version().ID, err)
}

func (k *Keeper) take(ctx context.Context, c *Catalogue, by string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	v, err := storeVersion(ctx, k.pool, c, by)
	if err != nil {
		return err
	}
	return k.swap(ctx, v)
}

// swap puts a version into force; k.mu is held.
func (k *Keeper) swap(ctx context.Context, v Version) error {
	var before int64
	err := k.pool.QueryRow(ctx, `
		SELECT id
		FROM redrive.catalogue_versions
		WHERE id < $1
		ORDER BY id DESC
		LIMIT 1`, v.ID).Scan(&before)
	if err == nil {
		old, err := readVersion(ctx, k.pool, before)
		if err != nil {
			return err
		}
		if old.Catalogue != nil {
			v.Changes = Diff(old.Catalogue, v.Catalogue)
		}
	} else if !errors.Is(err, pgx.ErrNoRows) {
		return fmt.Errorf("catalogue: the version before: %w", err)
	}
	k.now.Store(&v)
	return nil
}

func (k *Keeper) report(ctx context.Context, before int64) {
	v := k.Version()
	if v.ID == before {
		k.log.InfoContext(ctx, "the catalogue is unchanged", "version", v.ID)
		return
	}
	k.log.InfoContext(ctx, "another version of the catalogue is in force", "version", v.ID, "types_changed", len(v.Changes), "loaded_by", v.LoadedBy)
	if need := k.NeedsRestart(); len(need) > 0 {
		k.log.WarnContext(ctx, "this takes a restart of redrive to have effect", "changed", need)
	}
}

// Run follows what other processes load, until ctx ends.
func (k *Keeper) Run(ctx context.Context) error {
	tick := time.NewTicker(follow)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			if err := k.Follow(ctx); err != nil && ctx.Err() == nil {
				k.log.WarnContext(ctx, "not done: look for a newer catalogue", "error", err)
			}
		}
	}
}

// Follow puts the newest version into force, if it isn't.
func (k *Keeper) Follow(ctx context.Context) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	before := k.Version().ID
	var newest int64
	if err := k.pool.QueryRow(ctx, `SELECT coalesce(max(id), 0) FROM redrive.catalogue_versions`).Scan(&newest); err != nil {
		return fmt.Errorf("catalogue: newest version: %w", err)
	}
	if newest <= before || newest == k.refused {
		return nil
	}
	v, err := readVersion(ctx, k.pool, newest)
	if err != nil {
		return err
	}
	if v.Catalogue == nil {
		k.refused = newest
		k.log.ErrorContext(ctx, "a newer catalogue can't be read by this version of redrive; the one in force stays", "newest", newest, "version", before)
		return nil
	}
	if err := k.swap(ctx, v); err != nil {
		return err
	}
	k.report(ctx, before)
	return nil
}

// NeedsRestart names what the catalogue in force says and this process can
// only take up at its start: sources, and the list of environments.
func (k *Keeper) NeedsRestart() []string {
	var out []string
	now := k.Catalogue()
	for _, s := range now.Sources {
		if old, ok := k.start.Source(s.Name); !ok || old != s {
			out = append(out, "source "+s.Name)
		}
	}
	for _, s := range k.start.Sources {
		if _, ok := now.Source(s.Name); !ok {
			out = append(out, "source "+s.Name)
		}
	}
	if !slices.Equal(now.Environments, k.start.Environments) {
		out = append(out, "environments")
	}
	return out
}
