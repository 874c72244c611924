package envelope_test

import (
	"bytes"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/redrive-dlq/redrive/dlq/envelope"
)

func TestPlainRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		plain := rapid.SliceOf(rapid.Byte()).Draw(t, "plain")
		sealed, err := envelope.Plain{}.Seal(plain, []byte("ad"))
		if err != nil {
			t.Fatal(err)
		}
		opened, err := envelope.Plain{}.Open(sealed, []byte("ad"))
		if err != nil || !bytes.Equal(opened, plain) {
			t.Fatalf("opened %x, %v; want %x", opened, err, plain)
		}
	})
}

func TestPlainKeepsEmptyApartFromNothing(t *testing.T) {
	t.Parallel()
	sealed, _ := envelope.Plain{}.Seal(nil, nil)
	if len(sealed) == 0 {
		t.Error("an empty payload must leave bytes in the store")
	}
	if _, err := (envelope.Plain{}).Open(nil, nil); err == nil {
		t.Error("nothing must not open as an empty payload")
	}
}

func TestPlainRefusesForeignBytes(t *testing.T) {
	t.Parallel()
	if _, err := (envelope.Plain{}).Open([]byte{1, 2, 3}, nil); err == nil || !strings.Contains(err.Error(), "no key") {
		t.Errorf("got %v", err)
	}
	if !strings.Contains(envelope.Plain{}.Name(), "not encrypted") {
		t.Error("the name must say that it does not encrypt")
	}
}

func TestAssociatedDataIsInjective(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.StringMatching(`[ab\x00]{0,3}`)
		version := rapid.IntRange(0, 3)
		type place struct {
			s, e, j string
			v       int
		}
		p := place{part.Draw(t, "s"), part.Draw(t, "e"), part.Draw(t, "j"), version.Draw(t, "v")}
		q := place{part.Draw(t, "s2"), part.Draw(t, "e2"), part.Draw(t, "j2"), version.Draw(t, "v2")}
		same := bytes.Equal(envelope.AssociatedData(p.s, p.e, p.j, p.v), envelope.AssociatedData(q.s, q.e, q.j, q.v))
		if same != (p == q) {
			t.Fatalf("%+v and %+v: same bytes is %v", p, q, same)
		}
	})
}
