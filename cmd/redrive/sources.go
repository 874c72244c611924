package main

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/audit"
	riversource "github.com/redrive-dlq/redrive/dlq/source/river"
	"github.com/redrive-dlq/redrive/rbac"
)

type sourcesCmd struct {
	Trigger sourcesTriggerCmd `cmd:"" help:"Install or remove the trigger that tells each death in a River of this database."`
}

type sourcesTriggerCmd struct {
	Schema      string `help:"Schema of River's tables." required:""`
	Environment string `help:"The source's environment." required:""`
	Source      string `help:"The source's name in the catalogue." required:""`
	Remove      bool   `help:"Remove it instead."`
	Database    string `help:"PostgreSQL address." required:"" env:"REDRIVE_DATABASE_URL"`
}

// Run installs or removes the trigger and writes that down, both or neither.
func (s *sourcesTriggerCmd) Run(ctx context.Context, log *slog.Logger) error {
	pool, err := open(ctx, s.Database)
	if err != nil {
		return err
	}
	defer pool.Close()
	action := "source.trigger_install"
	if s.Remove {
		action = "source.trigger_remove"
	}
	err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if s.Remove {
			err = riversource.RemoveTrigger(ctx, tx, s.Schema)
		} else {
			err = riversource.InstallTrigger(ctx, tx, s.Schema, s.Environment, s.Source)
		}
		if err != nil {
			return err
		}
		_, err := audit.Append(ctx, tx, rbac.CommandLine("sources-trigger").Actor(), audit.Entry{Action: action,
			Object: audit.Object{Kind: "source", ID: s.Source}, Environment: s.Environment, Details: map[string]any{"schema": s.Schema}})
		return err
	})
	if err != nil {
		return fmt.Errorf("%s: %w", action, err)
	}
	log.InfoContext(ctx, "done", "action", action, "source", s.Source)
	return nil
}
