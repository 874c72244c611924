// Command redrive is the dead-letter queue admin console.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/redrive-dlq/redrive/dlq/problem"
)

// cli is the command line.
type cli struct {
	LogLevel slog.Level `help:"Least level that is logged: debug, info, warn, error." default:"info" env:"REDRIVE_LOG_LEVEL"`

	Serve   serveCmd   `cmd:"" help:"Serve the console on the database in REDRIVE_DATABASE_URL."`
	Demo    demoCmd    `cmd:"" help:"Serve the console with living sample data; needs no database."`
	Migrate migrateCmd `cmd:"" help:"Bring the database in REDRIVE_DATABASE_URL up to this version."`
	User    userCmd    `cmd:"" help:"Manage people."`
	Types   typesCmd   `cmd:"" help:"Work with the catalogue of job types."`
	Sources sourcesCmd `cmd:"" help:"Work with the places that jobs die in."`
	Bench   benchCmd   `cmd:"" help:"Measure, and print name: value lines."`
}

func main() {
	var c cli
	parsed := kong.Parse(&c, kong.Name("redrive"), kong.UsageOnError(),
		kong.Description("Redrive: the dead-letter queue admin console."))
	log := newLogger(c.LogLevel)
	slog.SetDefault(log)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	parsed.BindTo(ctx, (*context.Context)(nil))
	if err := parsed.Run(log); err != nil {
		fmt.Fprintln(os.Stderr, "redrive:", forPeople(err))
		stop()
		os.Exit(1)
	}
}

// forPeople is the message of an error that was made for people, with its
// place; any other error as it is.
func forPeople(err error) string {
	var p *problem.Error
	if !errors.As(err, &p) || p.Code == problem.Internal {
		return err.Error()
	}
	if p.Field != "" {
		return p.Field + ": " + p.Message
	}
	return p.Message
}
