package group

import (
	"strings"

	"github.com/redrive-dlq/redrive/dlq/redact"
)

const (
	maxFrames = 600 // lines of a stack that are looked at
	maxFrame  = 300 // bytes of a line
)

// libraries are parts of the paths and names of code that isn't the
// application's own, in the stacks of the usual languages.
var libraries = []string{
	"site-packages", "dist-packages", "/lib/python", "node_modules", "node:", "internal/process", "/gems/", "/ruby/",
	"/pkg/mod/", "/usr/local/go/", "/usr/lib/go", "runtime.", "runtime/", "net/http", "database/sql", "at java.", "at javax.",
	"at jdk.", "at sun.", "at org.springframework", "at org.apache", "at scala.", "at kotlin.", "at System.",
	"at Microsoft.", "vendor/", "/usr/lib/", "<anonymous>", "panic(", "debug.Stack",
}

// TopFrame returns the application's innermost frame of a stack without line
// numbers and arguments, or the innermost of all when only libraries are in
// it, or "" when no line looks like a frame. Secrets in it are hidden.
func TopFrame(stack string) string {
	lastFirst := strings.HasPrefix(strings.TrimSpace(cut(stack, 64)), "Traceback")
	first, own := "", ""
	for n := 0; stack != "" && n < maxFrames; n++ {
		var line string
		line, stack, _ = strings.Cut(stack, "\n")
		line = strings.TrimSpace(redact.Visible(cut(strings.TrimSpace(line), maxFrame)))
		if !isFrame(line) {
			continue
		}
		if first == "" || lastFirst {
			first = line
		}
		if (own == "" || lastFirst) && !isLibrary(line) {
			own = line
			if !lastFirst {
				break
			}
		}
	}
	if own == "" {
		own = first
	}
	return redact.Text(withoutLines(own))
}

func isLibrary(line string) bool {
	for _, l := range libraries {
		if strings.Contains(line, l) {
			return true
		}
	}
	return false
}

// isFrame reports whether a line is one of "at f (file:1)", File "x.py",
// line 1, file.rb:1:in 'f', /path/file.go:1 +0x1d or f@https://host/a.js:1:2.
func isFrame(line string) bool {
	switch {
	case line == "":
		return false
	case strings.HasPrefix(line, "at ") && len(line) > 3, strings.HasPrefix(line, "File \""):
		return true
	}
	for i := 2; i < len(line); i++ {
		if line[i-1] != ':' || !digit(line[i]) {
			continue
		}
		// A dot and an ending before the colon make it a file.
		dot := strings.LastIndexByte(line[:i-1], '.')
		if ending := line[dot+1 : i-1]; dot >= 0 && len(ending) > 0 && len(ending) <= 5 && allIn(ending, letter) {
			return true
		}
	}
	return false
}

// withoutLines drops the numbers behind colons and after "line", addresses and
// offsets.
func withoutLines(line string) string {
	if i := strings.Index(line, " +0x"); i > 0 {
		line = line[:i]
	}
	var b strings.Builder
	for i := 0; i < len(line); {
		rest := line[i:]
		skip := 0
		switch {
		case rest[0] == ':' && len(rest) > 1 && digit(rest[1]):
			skip = 1
		case strings.HasPrefix(rest, ", line ") && len(rest) > 7 && digit(rest[7]):
			skip = 7
		case strings.HasPrefix(rest, "0x"):
			end := 2
			for end < len(rest) && isHex(rest[end]) {
				end++
			}
			i += end
			continue
		}
		if skip == 0 {
			b.WriteByte(rest[0])
			i++
			continue
		}
		for skip < len(rest) && digit(rest[skip]) {
			skip++
		}
		i += skip
	}
	return b.String()
}
