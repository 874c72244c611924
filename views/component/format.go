// Package component holds the small parts that the console's pages share.
package component

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Count writes a number with separators: 12,345.
func Count(n int) string {
	digits := strconv.Itoa(n)
	sign := ""
	if strings.HasPrefix(digits, "-") {
		sign, digits = "-", digits[1:]
	}
	var out strings.Builder
	for i, digit := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			out.WriteByte(',')
		}
		out.WriteRune(digit)
	}
	return sign + out.String()
}

// Plural writes a count with its word: "1 job", "1,204 jobs".
func Plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return Count(n) + " " + many
}

// Bytes writes a size in bytes, and for larger ones in KiB or MiB beside the
// exact number.
func Bytes(n int64) string {
	exact := Count(int(n)) + " bytes"
	switch {
	case n == 1:
		return "1 byte"
	case n < 1<<10:
		return exact
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB (%s)", float64(n)/(1<<10), exact)
	default:
		return fmt.Sprintf("%.1f MiB (%s)", float64(n)/(1<<20), exact)
	}
}

// Duration writes a length of time in at most two units: "2 h 5 min", "350 ms".
func Duration(d time.Duration) string {
	if d < 0 {
		d = -d
	}
	switch {
	case d < time.Second:
		return strconv.FormatInt(d.Milliseconds(), 10) + " ms"
	case d < 10*time.Second:
		return strings.TrimSuffix(strconv.FormatFloat(d.Seconds(), 'f', 1, 64), ".0") + " s"
	case d < time.Minute:
		return strconv.Itoa(int(d.Seconds())) + " s"
	case d < time.Hour:
		return units(d, time.Minute, "min", time.Second, "s")
	case d < 48*time.Hour:
		return units(d, time.Hour, "h", time.Minute, "min")
	default:
		return units(d, 24*time.Hour, "d", time.Hour, "h")
	}
}

func units(d, large time.Duration, largeName string, small time.Duration, smallName string) string {
	whole, rest := d/large, (d%large)/small
	if rest == 0 {
		return fmt.Sprintf("%d %s", whole, largeName)
	}
	return fmt.Sprintf("%d %s %d %s", whole, largeName, rest, smallName)
}

// Age writes how long before now a time lies, in one unit: "4 min ago". A time
// in the future by a skewed clock reads "just now": an age is never negative.
func Age(at, now time.Time) string {
	d := now.Sub(at)
	switch {
	case d < time.Minute:
		return "just now"
	case d < time.Hour:
		return fmt.Sprintf("%d min ago", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h ago", d/time.Hour)
	default:
		return fmt.Sprintf("%d d ago", d/(24*time.Hour))
	}
}

// UTC writes a time in the console's one form.
func UTC(at time.Time) string { return at.UTC().Format("2006-01-02 15:04:05") + " UTC" }

// shortUTC writes a time to the minute, without the year where it is now's.
func shortUTC(at, now time.Time) string {
	layout := "2006-01-02 15:04"
	if at.UTC().Year() == now.UTC().Year() {
		layout = "01-02 15:04"
	}
	return at.UTC().Format(layout) + " UTC"
}

// machine is the form that <time datetime> wants.
func machine(at time.Time) string { return at.UTC().Format(time.RFC3339Nano) }

// Cut shortens a text to at most n characters, with an ellipsis where it did.
func Cut(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	runes := []rune(s)
	return string(runes[:n-1]) + "…"
}

// OneLine makes the first line of a text, at most n characters of it.
func OneLine(s string, n int) string {
	s = strings.TrimSpace(s)
	line, rest, more := strings.Cut(s, "\n")
	line = Cut(strings.TrimSpace(line), n)
	if more && strings.TrimSpace(rest) != "" && !strings.HasSuffix(line, "…") {
		line += " …"
	}
	return line
}
