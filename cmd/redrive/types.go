package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/redrive-dlq/redrive/cmd/internal/console"
	"github.com/redrive-dlq/redrive/dlq/jobtype"
	"github.com/redrive-dlq/redrive/dlq/jobtype/infer"
	"github.com/redrive-dlq/redrive/rbac"
)

type typesCmd struct {
	Check typesCheckCmd `cmd:"" help:"Check a catalogue file; every fault with its line."`
	Init  typesInitCmd  `cmd:"" help:"Print a catalogue drafted from the dead jobs that were seen and aren't declared."`
	Prove typesProveCmd `cmd:"" help:"Replay one dead job twice, never in the first environment, and record that its effect happened once."`
}

type typesCheckCmd struct {
	File string `arg:"" help:"The YAML file." type:"path"`
}

// Run checks.
func (t *typesCheckCmd) Run() error {
	c, err := loadCatalogue(t.File)
	if err != nil {
		return err
	}
	fmt.Printf("%d types, %d sources: no fault\n", len(c.Types()), len(c.Sources))
	return nil
}

type typesInitCmd struct {
	Database string `help:"PostgreSQL address." required:"" env:"REDRIVE_DATABASE_URL"`
}

// Run prints the draft; it writes nothing.
func (t *typesInitCmd) Run(ctx context.Context, _ *slog.Logger) error {
	pool, err := open(ctx, t.Database)
	if err != nil {
		return err
	}
	defer pool.Close()
	world, err := infer.Read(ctx, pool)
	if err != nil {
		return err
	}
	return infer.Write(os.Stdout, world)
}

type typesProveCmd struct {
	Type        string        `arg:"" help:"The job type."`
	Environment string        `help:"Where; not the first environment of the catalogue." required:""`
	Job         int64         `help:"Number of an open dead job of this type there." required:""`
	Wait        time.Duration `help:"How long to wait for the two runs." default:"10m"`
	Database    string        `help:"PostgreSQL address." required:"" env:"REDRIVE_DATABASE_URL"`
}

// Run proves, with a release loop of its own: no console needs to run.
func (t *typesProveCmd) Run(ctx context.Context, log *slog.Logger) error {
	pool, err := open(ctx, t.Database)
	if err != nil {
		return err
	}
	defer pool.Close()
	catalogue, err := jobtype.Stored(ctx, pool)
	if err != nil {
		return err
	}
	if catalogue == nil {
		return fmt.Errorf("no catalogue was loaded into this database yet; start redrive serve with it first")
	}
	c, err := console.New(ctx, console.Config{Pool: pool, Catalogue: catalogue, Log: log})
	if err != nil {
		return err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, t.Wait)
	defer cancel()
	proof, err := c.Prove(ctx, rbac.CommandLine("types-prove"), t.Type, t.Environment, t.Job, func(s string) { fmt.Println(s) })
	if err != nil {
		return err
	}
	fmt.Printf("Proven: the effect of %s happened once in %s", t.Type, t.Environment)
	if proof.EffectID != "" {
		fmt.Printf(" (id %s)", proof.EffectID)
	}
	fmt.Println(". The date stands at /types.")
	return nil
}

func loadCatalogue(path string) (*jobtype.Catalogue, error) {
	return jobtype.Load(os.DirFS(filepath.Dir(path)), filepath.Base(path))
}
