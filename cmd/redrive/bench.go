package main

import (
	"context"
	"log/slog"
	"os"

	"github.com/redrive-dlq/redrive/cmd/internal/bench"
)

type benchCmd struct {
	Rows   int `help:"Dead jobs in the large store." default:"1000000"`
	Rounds int `help:"Rounds of each capture measurement." default:"60"`
}

// Run measures on a private PostgreSQL that is thrown away.
func (b *benchCmd) Run(ctx context.Context, _ *slog.Logger) error {
	return bench.Run(ctx, bench.Options{Rows: b.Rows, Rounds: b.Rounds, Out: os.Stdout, Log: slog.New(slog.DiscardHandler)})
}
