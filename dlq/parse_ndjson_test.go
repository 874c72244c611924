package dlq

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/redrive-dlq/redrive/dlq/problem"
)

func split(r io.Reader, limit int) (docs []string) {
	for doc, err := range SplitNDJSON(r, limit) {
		if err != nil {
			docs = append(docs, "error: "+string(problem.CodeOf(err)))
			continue
		}
		docs = append(docs, string(doc))
	}
	return docs
}

func TestSplitNDJSON(t *testing.T) {
	t.Parallel()
	ten := "0123456789"
	for _, c := range []struct {
		in   string
		want []string
	}{
		{"", nil},
		{"\n \r\n", nil},
		{"a\nb\r\n\nc", []string{"a", "b", "c"}},
		{ten + "\r\n" + ten + "\n" + ten, []string{ten, ten, ten}},
		{"a\n" + ten + "x\nb\n", []string{"a", "error: too_large", "b"}},
		{strings.Repeat(ten, 100_000) + "\nb", []string{"error: too_large", "b"}},
		{"b\n" + strings.Repeat(ten, 100_000), []string{"b", "error: too_large"}},
	} {
		if got := split(strings.NewReader(c.in), 10); !slices.Equal(got, c.want) {
			t.Errorf("%.40q: got %q, want %q", c.in, got, c.want)
		}
		if got := split(iotest.OneByteReader(strings.NewReader(c.in)), 10); !slices.Equal(got, c.want) {
			t.Errorf("%.40q in single bytes: got %q, want %q", c.in, got, c.want)
		}
	}
}

func TestSplitNDJSONReaderFails(t *testing.T) {
	t.Parallel()
	broken := errors.New("connection lost")
	var docs, failures int
	for _, err := range SplitNDJSON(io.MultiReader(strings.NewReader("a\nb"), iotest.ErrReader(broken)), 10) {
		if errors.Is(err, broken) {
			failures++
		} else {
			docs++
		}
	}
	if docs != 1 || failures != 1 {
		t.Errorf("%d documents, %d failures: half a line must not count as a document", docs, failures)
	}
}
