package console

import (
	"context"
	"os"

	"github.com/redrive-dlq/redrive/dlq/jobtype"
	"github.com/redrive-dlq/redrive/web"
)

// keepCatalogue puts the configured catalogue into force.
func keepCatalogue(ctx context.Context, cfg Config) (*jobtype.Keeper, error) {
	first := cfg.Catalogue
	load := func() (*jobtype.Catalogue, error) {
		if first != nil || cfg.Load == nil { // the start takes what was read before
			c := cfg.Catalogue
			first = nil
			return c, nil
		}
		return cfg.Load()
	}
	return jobtype.NewKeeper(ctx, cfg.Pool, load, "start on "+host(), cfg.Log)
}

// Reload reads the catalogue file again. With a fault in it nothing changes.
func (c *Console) Reload(ctx context.Context) error {
	return c.types.Reload(ctx, "SIGHUP on "+host())
}

// catalogue is what pages say of the catalogue in force.
func (c *Console) catalogue() web.CatalogueInForce {
	return web.CatalogueInForce{Version: c.types.Version(), NeedsRestart: c.types.NeedsRestart()}
}

func host() string {
	name, err := os.Hostname()
	if err != nil {
		return "a host without a name"
	}
	return name
}

// typesOf answers capture's questions from the catalogue.
type typesOf struct{ catalogue func() *jobtype.Catalogue }

// Scope implements dlq.Types.
func (t typesOf) Scope(name string) string {
	if typ, ok := t.catalogue().Type(name); ok {
		return typ.Scope()
	}
	return name
}

// HasSideEffects implements dlq.Types. Of a type that nobody declared nothing
// is known, so it may have one.
func (t typesOf) HasSideEffects(name string) bool {
	typ, ok := t.catalogue().Type(name)
	return !ok || typ.HasEffect()
}
