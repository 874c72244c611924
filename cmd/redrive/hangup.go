package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/redrive-dlq/redrive/cmd/internal/console"
)

// reloadOnHangup reads the catalogue again at each SIGHUP, until the function
// it returns is called. What is wrong with the file is logged, and nothing
// changes then.
func reloadOnHangup(ctx context.Context, c *console.Console) (stop func()) {
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-ctx.Done():
				return
			case <-hangups:
				_ = c.Reload(ctx) // it has logged what is wrong
			}
		}
	}()
	return func() {
		signal.Stop(hangups)
		cancel()
		<-ended
	}
}
