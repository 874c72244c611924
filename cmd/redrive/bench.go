package main

import (
	"context"
	"log/slog"
	"os"
	"time"

	"github.com/redrive-dlq/redrive/cmd/internal/bench"
)

type benchCmd struct {
	Only          []string      `help:"Measure only these parts: capture, pages, plan, release, rate, first, during." env:"REDRIVE_BENCH_ONLY"`
	Rows          int           `help:"Dead jobs in the large store." default:"1000000" env:"REDRIVE_BENCH_ROWS"`
	Rounds        int           `help:"Rounds of each capture measurement." default:"60" env:"REDRIVE_BENCH_ROUNDS"`
	Plan          int           `help:"Jobs of the large plan, and of the batch that runs while pages are read." default:"1000000" env:"REDRIVE_BENCH_PLAN"`
	Pending       int           `help:"Replays that wait while releases are measured." default:"1000000" env:"REDRIVE_BENCH_PENDING"`
	Sample        int           `help:"Replays of one sample of releases." default:"20000" env:"REDRIVE_BENCH_SAMPLE"`
	Samples       int           `help:"Samples of each kind of release." default:"5" env:"REDRIVE_BENCH_SAMPLES"`
	Window        time.Duration `help:"The window of a rate's error; never below 100 releases." default:"60s" env:"REDRIVE_BENCH_WINDOW"`
	During        time.Duration `help:"How long pages are read while replays run." default:"60s" env:"REDRIVE_BENCH_DURING"`
	SharedBuffers string        `help:"PostgreSQL's shared_buffers." default:"4GB" env:"REDRIVE_BENCH_SHARED_BUFFERS"`
	Profile       string        `help:"Write a CPU profile of this process there." type:"path" env:"REDRIVE_BENCH_PROFILE"`
}

// Run measures on a private PostgreSQL that is thrown away.
func (b *benchCmd) Run(ctx context.Context, _ *slog.Logger) error {
	return bench.Run(ctx, bench.Options{
		Only: b.Only, Rows: b.Rows, Rounds: b.Rounds, Plan: b.Plan, Pending: b.Pending, Sample: b.Sample, Samples: b.Samples,
		Window: b.Window, During: b.During, SharedBuffers: b.SharedBuffers, Profile: b.Profile,
		Out: os.Stdout, Log: newLogger(slog.LevelWarn),
	})
}
