package job

import "strings"

// frames is a run of stack lines that are either the application's own or
// those of libraries, which the page folds.
type frames struct {
	own   bool
	lines []string
}

// libraryMarks are parts of a stack line that tell a library's frame in the
// common languages.
var libraryMarks = []string{
	"/pkg/mod/", "/vendor/", "/usr/local/go/src/", "/usr/lib/", "node_modules/", "node:internal",
	"site-packages/", "dist-packages/", "/gems/", "java.base/", "org.springframework.", "sun.reflect.",
	"org.apache.", "jdk.internal.", "java.util.", "java.lang.", "System.", "Microsoft.", "runtime.", "net/http.",
}

// foldStack groups the lines of a stack. A line that is indented by a tab and
// follows a function line belongs to that function (Go writes them so).
func foldStack(stack string) []frames {
	lines := strings.Split(strings.TrimRight(stack, "\n"), "\n")
	var groups []frames
	for i := 0; i < len(lines); {
		end := i + 1
		if end < len(lines) && strings.HasPrefix(lines[end], "\t") && !strings.HasPrefix(lines[i], "\t") {
			end++
		}
		own := !library(lines[i:end])
		if n := len(groups); n > 0 && groups[n-1].own == own {
			groups[n-1].lines = append(groups[n-1].lines, lines[i:end]...)
		} else {
			groups = append(groups, frames{own: own, lines: append([]string(nil), lines[i:end]...)})
		}
		i = end
	}
	return groups
}

func library(lines []string) bool {
	for _, line := range lines {
		for _, mark := range libraryMarks {
			if strings.Contains(line, mark) {
				return true
			}
		}
	}
	return false
}

func (f frames) text() string { return visible(strings.Join(f.lines, "\n")) }
