package main

import (
	"log/slog"
	"os"

	"github.com/redrive-dlq/redrive/dlq/redact"
)

// newLogger logs to standard error. Every string that goes out is redacted and
// made visible first: errors quote what others sent.
func newLogger(level slog.Level) *slog.Logger {
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level, ReplaceAttr: safe}))
}

func safe(_ []string, a slog.Attr) slog.Attr {
	switch a.Value.Kind() {
	case slog.KindString:
		a.Value = slog.StringValue(redact.Readable(a.Value.String()))
	case slog.KindAny:
		if err, ok := a.Value.Any().(error); ok {
			a.Value = slog.StringValue(redact.Readable(err.Error()))
		}
	}
	return a
}
