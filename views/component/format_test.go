package component

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestCount(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{0: "0", 7: "7", 999: "999", 1000: "1,000", 12345: "12,345", 1234567: "1,234,567", -1234: "-1,234", -7: "-7"} {
		if got := Count(n); got != want {
			t.Errorf("Count(%d) = %q, want %q", n, got, want)
		}
	}
}

func TestDurationAndAge(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0: "0 ms", 350 * time.Millisecond: "350 ms", 4310 * time.Millisecond: "4.3 s", 5 * time.Second: "5 s",
		59 * time.Second: "59 s", 90 * time.Second: "1 min 30 s", 2*time.Hour + 5*time.Minute: "2 h 5 min", 49 * time.Hour: "2 d 1 h", 72 * time.Hour: "3 d",
	} {
		if got := Duration(d); got != want {
			t.Errorf("Duration(%v) = %q, want %q", d, got, want)
		}
	}
	now := time.Date(2026, 3, 14, 3, 0, 0, 0, time.UTC)
	for d, want := range map[time.Duration]string{-time.Hour: "just now", time.Minute: "1 min ago", 47 * time.Hour: "47 h ago", 100 * time.Hour: "4 d ago"} {
		if got := Age(now.Add(-d), now); got != want {
			t.Errorf("Age of %v = %q, want %q", d, got, want)
		}
	}
}

func TestBytes(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{0: "0 bytes", 1: "1 byte", 27: "27 bytes", 2048: "2.0 KiB (2,048 bytes)", 10 << 20: "10.0 MiB (10,485,760 bytes)"} {
		if got := Bytes(n); got != want {
			t.Errorf("Bytes(%d) = %q, want %q", n, got, want)
		}
	}
}

func TestMasksAreFound(t *testing.T) {
	t.Parallel()
	got := pieces(`to "a•••@@example.com", token ‹token›, card ‹card ••1111›.`)
	want := []piece{{`to "`, false}, {"a•••@@example.com", true}, {`", token `, false}, {"‹token›", true}, {", card ", false}, {"‹card ••1111›", true}, {".", false}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(piece{})); diff != "" {
		t.Error(diff)
	}
}

func TestPiecesLoseNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.SampledFrom([]rune("ab ‹›•@.\n\"<"))).Draw(t, "text")
		var whole strings.Builder
		for _, p := range pieces(text) {
			whole.WriteString(p.text)
		}
		if whole.String() != text {
			t.Fatalf("%q became %q", text, whole.String())
		}
	})
}

func TestOneLine(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"  a\nb ": "a …", "a\n\n": "a", "abcdef": "abcd…", "äöüßé": "äöüßé"} {
		if got := OneLine(text, 5); got != want {
			t.Errorf("OneLine(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestChartAddsUp(t *testing.T) {
	t.Parallel()
	series := CategorySeries(map[string][]int{"auth": {0, 3, 0}, "transient": {1, 2, 0}, "unknown": {0, 0, 0}})
	s := layOut(series)
	if len(series) != 2 || s.totalValues != 6 || s.peak != 5 || s.peakAt != 1 || s.most != 6 {
		t.Errorf("%d series, %+v", len(series), s)
	}
	if want := "M0 83.3h2.6v16.7h-2.6zM3 66.7h2.6v33.3h-2.6z"; s.paths[0] != want {
		t.Errorf("the first path is %s, want %s", s.paths[0], want)
	}
}
