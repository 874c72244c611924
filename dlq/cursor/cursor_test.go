package cursor

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/redrive-dlq/redrive/dlq/problem"
)

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := Cursor{
			List: rapid.Byte().Draw(t, "list"), Direction: rapid.SampledFrom([]Direction{Next, Prev}).Draw(t, "direction"),
			At: time.UnixMicro(rapid.Int64Range(-1e17, 1e17).Draw(t, "at")).UTC(), ID: rapid.Int64().Draw(t, "id"),
		}
		copy(c.Hash[:], rapid.SliceOfN(rapid.Byte(), 8, 8).Draw(t, "hash"))
		text := c.String()
		if strings.ContainsAny(text, "+/=&? ") {
			t.Fatalf("%q needs escaping", text)
		}
		back, err := Parse(text, c.List, c.Hash)
		if err != nil || back != c {
			t.Fatalf("Parse(%q) = %+v, %v, want %+v", text, back, err, c)
		}
		other := c.Hash
		other[3] ^= 1
		if _, err := Parse(text, c.List, other); !problem.Is(err, problem.Invalid) {
			t.Fatalf("the cursor of another filter: %v, want Invalid", err)
		}
		if _, err := Parse(text, c.List+1, c.Hash); !problem.Is(err, problem.Invalid) {
			t.Fatalf("the cursor of another list: %v, want Invalid", err)
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add("")
	f.Add("AWpuAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA")
	f.Add(Cursor{List: 'j', Direction: Next, At: time.Unix(1, 0), ID: 1}.String())
	f.Fuzz(func(t *testing.T, text string) {
		c, err := Parse(text, 'j', [8]byte{})
		if err == nil && c.String() != text {
			t.Fatalf("Parse(%q).String() = %q", text, c.String())
		}
		if err != nil && !problem.Is(err, problem.Invalid) {
			t.Fatalf("Parse(%q): %v, want Invalid", text, err)
		}
	})
}
