package moment

import (
	"strconv"
	"strings"
	"time"
)

// milliDigits is how many digits make an integer part milliseconds: seconds
// get a twelfth digit in the year 5138, milliseconds had theirs in 1973.
const milliDigits = 12

// number reads a JSON number as seconds or milliseconds since 1970. Plain
// decimals are read exactly; ones with an exponent go through a float.
func number(s string) (time.Time, bool) {
	digits, negative := strings.CutPrefix(s, "-")
	whole, fraction, _ := strings.Cut(digits, ".")
	if whole == "" || len(s) > 64 {
		return time.Time{}, false
	}
	if strings.ContainsAny(digits, "eE") {
		f, err := strconv.ParseFloat(s, 64)
		if err != nil || f > 1e15 || f < -1e15 || strings.Trim(s, "0123456789+-.eE") != "" {
			return time.Time{}, false
		}
		return number(strconv.FormatFloat(f, 'f', 9, 64))
	}
	if !allDigits(whole) || fraction != "" && !allDigits(fraction) || strings.HasSuffix(s, ".") {
		return time.Time{}, false
	}
	n, err := strconv.ParseInt(whole, 10, 64)
	if err != nil {
		return time.Time{}, false
	}
	nanos, err := strconv.ParseInt((fraction + "000000000")[:9], 10, 64)
	if err != nil {
		return time.Time{}, false
	}
	seconds := n
	if len(whole) >= milliDigits {
		seconds, nanos = n/1000, n%1000*1e6+nanos/1000
	}
	if negative {
		seconds, nanos = -seconds, -nanos
	}
	return within(time.Unix(seconds, nanos).UTC())
}

func allDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}

// zoned and unzoned are the layouts of dates with and without an offset, after
// their separators were made one. Go reads fractions without being told.
var (
	zoned = []string{
		"2006-01-02T15:04:05Z07:00", "2006-01-02T15:04:05Z0700", "2006-01-02T15:04:05Z07",
		"2006-01-02T15:04Z07:00", time.RFC1123, time.RFC1123Z, "20060102T150405Z07:00",
		time.RFC850, time.UnixDate, time.RubyDate,
	}
	unzoned = []string{"2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02", time.ANSIC, "20060102T150405"}
)

// dateTime reads a date and time. noZone is true when it had no offset.
func dateTime(s string) (at time.Time, noZone, ok bool) {
	if len(s) > 64 {
		return time.Time{}, false, false
	}
	t := s
	if len(t) > 10 && t[4] == '-' {
		if t[10] == ' ' || t[10] == 't' {
			t = t[:10] + "T" + t[11:]
		}
		if u, found := strings.CutSuffix(t, " UTC"); found {
			t = u + "Z"
		}
		t = strings.Replace(t, " +", "+", 1)
		t = strings.Replace(t, " -", "-", 1)
		if strings.HasSuffix(t, "z") {
			t = t[:len(t)-1] + "Z"
		}
	}
	for _, layout := range zoned {
		if at, err := time.Parse(layout, t); err == nil {
			if !knownZone(at) {
				return time.Time{}, false, false
			}
			at, ok = within(at.UTC())
			return at, false, ok
		}
	}
	for _, layout := range unzoned {
		if at, err := time.ParseInLocation(layout, t, time.UTC); err == nil {
			at, ok = within(at)
			return at, true, ok
		}
	}
	return time.Time{}, false, false
}

// knownZone refuses abbreviations such as CEST: Go reads those that it doesn't
// know as an offset of zero, which would be a wrong time without a word.
func knownZone(at time.Time) bool {
	name, offset := at.Zone()
	return offset != 0 || name == "UTC" || name == "GMT" || name == ""
}

// within keeps what PostgreSQL and JSON can hold: the years 1 to 9999.
func within(at time.Time) (time.Time, bool) {
	if at.Year() < 1 || at.Year() > 9999 {
		return time.Time{}, false
	}
	return at, true
}
