package component

import (
	"context"
	"io"
	"regexp"
	"strings"

	"github.com/a-h/templ"
)

// masks finds what the redactor left in place of a hidden value: ‹kind›, or
// the shape of an address with dots in it (a•••@@example.com).
var masks = regexp.MustCompile(`‹[^‹›\n]{0,80}›|[^\s"'<>‹›,;]{0,80}•{2,}[^\s"'<>‹›,;]{0,120}`)

// piece is a run of text that is either plain or a mask.
type piece struct {
	text string
	mask bool
}

func pieces(s string) []piece {
	var out []piece
	at := 0
	for _, span := range masks.FindAllStringIndex(s, -1) {
		if span[0] > at {
			out = append(out, piece{text: s[at:span[0]]})
		}
		out = append(out, piece{text: s[span[0]:span[1]], mask: true})
		at = span[1]
	}
	if at < len(s) {
		out = append(out, piece{text: s[at:]})
	}
	return out
}

// writeMasked writes redacted text with its masks marked. It is written by
// hand, because a template may put a space between two parts, and what one
// copies from a page must be the text, character by character.
func writeMasked(out *strings.Builder, s string) {
	for _, p := range pieces(s) {
		if !p.mask {
			out.WriteString(templ.EscapeString(p.text))
			continue
		}
		out.WriteString(`<span class="mask" title="A hidden value: the mark says of what kind it is">`)
		out.WriteString(templ.EscapeString(p.text))
		out.WriteString(`</span>`)
	}
}

// Masked shows redacted text; what stands for a hidden value is marked, so
// that nobody takes it for the value.
func Masked(s string) templ.Component {
	return templ.ComponentFunc(func(_ context.Context, w io.Writer) error {
		var out strings.Builder
		writeMasked(&out, s)
		_, err := io.WriteString(w, out.String())
		return err
	})
}

// Pre is preformatted redacted text in a group that scrolls by itself and by
// the keyboard. Without an id it has none; soft wraps long lines.
func Pre(id, label, text string, soft bool) templ.Component {
	return templ.ComponentFunc(func(_ context.Context, w io.Writer) error {
		var out strings.Builder
		out.WriteString(`<pre class="code`)
		if soft {
			out.WriteString(` soft`)
		}
		if id != "" {
			out.WriteString(`" id="`)
			out.WriteString(templ.EscapeString(id))
		}
		out.WriteString(`" role="group" tabindex="0" aria-label="`)
		out.WriteString(templ.EscapeString(label))
		// A parser drops one newline right after <pre>; this one is ours, so
		// that none of the text's own is lost.
		out.WriteString("\">\n")
		writeMasked(&out, text)
		out.WriteString(`</pre>`)
		_, err := io.WriteString(w, out.String())
		return err
	})
}
