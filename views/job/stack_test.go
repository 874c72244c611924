package job

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestStackFoldsLibraries(t *testing.T) {
	t.Parallel()
	groups := foldStack("main.work()\n\t/app/main.go:4\ngithub.com/x/y.run()\n\t/build/go/pkg/mod/x/y.go:9\nruntime.goexit()\n\t/usr/local/go/src/runtime/asm.s:1\nmain.main()\n\t/app/main.go:1\n")
	var got []string
	for _, group := range groups {
		word := "library"
		if group.own {
			word = "own"
		}
		got = append(got, word, strings.Join(group.lines, "|"))
	}
	want := []string{
		"own", "main.work()|\t/app/main.go:4",
		"library", "github.com/x/y.run()|\t/build/go/pkg/mod/x/y.go:9|runtime.goexit()|\t/usr/local/go/src/runtime/asm.s:1",
		"own", "main.main()|\t/app/main.go:1",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
}

func TestStackLosesNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		lines := rapid.SliceOf(rapid.SampledFrom([]string{"a.b()", "\t/app/x.go:1", "\t/pkg/mod/z.go", "at node_modules/x", ""})).Draw(t, "lines")
		stack := strings.Join(lines, "\n")
		var all []string
		for _, group := range foldStack(stack) {
			all = append(all, group.lines...)
		}
		if got := strings.Join(all, "\n"); got != strings.TrimRight(stack, "\n") {
			t.Fatalf("%q became %q", stack, got)
		}
	})
}

func FuzzParseTree(f *testing.F) {
	for _, seed := range []string{`{"a":1}`, `[1e400,-0.0]`, `"x"`, `{"a":{"a":[]}}`, `{`, `1 2`, ``, `{"\u0000":null}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		root, err := parseTree(text)
		if err == nil && root.open == "" && !root.isString && root.text == "" {
			t.Errorf("%q became nothing", text)
		}
	})
}
