package embeddedpg

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
)

const (
	tailLines   = 12
	maxLineSize = 4 << 10
)

// logTail hands the server's messages to a logger, line by line, and keeps the
// last ones for error texts.
type logTail struct {
	logger *slog.Logger

	mu   sync.Mutex // guards all below
	part []byte     // a line that has not ended yet
	tail []string
}

func newLogTail(l *slog.Logger) *logTail { return &logTail{logger: l} }

// Write takes output of the server. It never fails.
func (t *logTail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.part = append(t.part, p...)
	for {
		line, rest, ok := bytes.Cut(t.part, []byte("\n"))
		if !ok {
			break
		}
		t.add(string(line))
		t.part = append(t.part[:0], rest...)
	}
	if len(t.part) > maxLineSize {
		t.add(string(t.part))
		t.part = t.part[:0]
	}
	return len(p), nil
}

func (t *logTail) add(line string) {
	line = strings.TrimSpace(line)
	if line == "" {
		return
	}
	if len(t.tail) == tailLines {
		t.tail = append(t.tail[:0], t.tail[1:]...)
	}
	t.tail = append(t.tail, line)
	level := slog.LevelDebug
	if strings.Contains(line, "FATAL:") || strings.Contains(line, "PANIC:") {
		level = slog.LevelWarn
	}
	t.logger.Log(context.Background(), level, "postgres", "message", line)
}

// words are the last lines, joined.
func (t *logTail) words() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(t.tail, "\n")
}

// suffix is words, ready to follow an error message.
func (t *logTail) suffix() string {
	if w := t.words(); w != "" {
		return "\nits last words:\n" + w
	}
	return ""
}
