package filter

import (
	"crypto/sha256"
	"strconv"
	"strings"
	"time"
)

// String writes the filter in its language, always in the same order, so that
// equal filters read the same. Parse reads it back.
func (f Filter) String() string {
	f = f.normal()
	var words []string
	for _, info := range fields {
		if is := *info.is(&f); len(is) > 0 {
			words = append(words, term("", string(info.field), is))
		}
		if not := *info.not(&f); len(not) > 0 {
			words = append(words, term("-", string(info.field), not))
		}
	}
	if !f.From.IsZero() {
		words = append(words, wordNewer+":"+f.From.Format(time.RFC3339Nano))
	}
	if !f.To.IsZero() {
		words = append(words, wordOlder+":"+f.To.Format(time.RFC3339Nano))
	}
	if f.Newer != 0 {
		words = append(words, wordNewer+":"+writeAge(f.Newer))
	}
	if f.Older != 0 {
		words = append(words, wordOlder+":"+writeAge(f.Older))
	}
	return strings.Join(words, " ")
}

// Hash identifies the filter: a cursor of one filter is refused by another.
func (f Filter) Hash() [8]byte {
	sum := sha256.Sum256([]byte(f.String()))
	return [8]byte(sum[:8])
}

func term(sign, name string, values []string) string {
	quoted := make([]string, len(values))
	for i, v := range values {
		quoted[i] = quote(v)
	}
	return sign + name + ":" + strings.Join(quoted, ",")
}

// quote writes a value bare where that reads back as the same value.
func quote(v string) string {
	if v != "" && !strings.ContainsFunc(v, func(r rune) bool { return r == '"' || r == ',' || r == '\\' || isSpace(r) }) {
		return v
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(v) + `"`
}

// ages are the units of an age, the largest first.
var ages = []struct {
	unit string
	of   time.Duration
}{
	{"w", 7 * 24 * time.Hour}, {"d", 24 * time.Hour}, {"h", time.Hour}, {"m", time.Minute}, {"s", time.Second},
}

func writeAge(d time.Duration) string {
	for _, a := range ages {
		if d%a.of == 0 {
			return strconv.FormatInt(int64(d/a.of), 10) + a.unit
		}
	}
	return strconv.FormatInt(int64(d/time.Second), 10) + "s"
}
