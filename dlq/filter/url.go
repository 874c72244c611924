package filter

import (
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/dlq/redact"
)

// Query parameters besides those that have a field's own name.
const (
	paramQuery = "q"
	paramFrom  = "from" // a date, inclusive, or a moment; UTC
	paramTo    = "to"   // a date, inclusive, or a moment, exclusive; UTC
)

// FromValues reads the filter of a page's address or of an API request: q in
// the filter's language, and beside it status, type, category, env, class,
// job, key, from and to as plain values (repeated: or). Other parameters are
// not the filter's. Errors: Invalid, with the parameter as its field; see Parse.
func FromValues(v url.Values) (Filter, error) {
	f, err := Parse(v.Get(paramQuery))
	if err != nil {
		return Filter{}, err
	}
	for _, info := range fields {
		if info.param == "" {
			continue
		}
		values := slices.DeleteFunc(slices.Clone(v[info.param]), func(s string) bool { return s == "" })
		if len(values) == 0 {
			continue
		}
		if len(*info.is(&f)) > 0 {
			return Filter{}, problem.At(problem.Invalid, info.param, "%s stands in the search box and in its own field: keep one of them.", info.field)
		}
		if err := checkValues(info, values); err != nil {
			return Filter{}, err
		}
		*info.is(&f) = values
	}
	if err := readDates(v, &f); err != nil {
		return Filter{}, err
	}
	return f.normal(), nil
}

func checkValues(info fieldInfo, values []string) error {
	if len(values) > maxValues {
		return problem.At(problem.Invalid, info.param, "%s takes at most %d values.", info.field, maxValues)
	}
	for i, value := range values {
		switch {
		case len(value) > maxValue:
			return problem.At(problem.Invalid, info.param, "The value of %s is longer than %d bytes.", info.field, maxValue)
		case !utf8.ValidString(value) || strings.ContainsRune(value, 0):
			return problem.At(problem.Invalid, info.param, "The value of %s isn't text: it holds NUL or broken UTF-8.", info.field)
		case info.words != nil && !slices.Contains(info.words, value):
			hint := nearest(value, info.words)
			return problem.At(problem.Invalid, info.param, "%s knows no such word%s.%s It takes %s.",
				info.field, echo(value), didYouMean(hint), strings.Join(info.words, ", "))
		}
		values[i] = value
	}
	return nil
}

func readDates(v url.Values, f *Filter) error {
	for _, d := range []struct {
		param string
		to    *time.Time
		days  int // a date as an end is inclusive
	}{{paramFrom, &f.From, 0}, {paramTo, &f.To, 1}} {
		text := v.Get(d.param)
		if text == "" {
			continue
		}
		if !d.to.IsZero() {
			return problem.At(problem.Invalid, d.param, "%s stands in the search box and in its own field: keep one of them.", d.param)
		}
		if at, err := time.Parse(time.DateOnly, text); err == nil && plausible(at) {
			*d.to = at.AddDate(0, 0, d.days)
			continue
		}
		at, err := time.Parse(time.RFC3339Nano, text)
		if err != nil || !plausible(at) {
			return problem.At(problem.Invalid, d.param, "%s must be a UTC date like 2026-01-31.", d.param)
		}
		*d.to = at.UTC().Truncate(time.Microsecond)
	}
	return nil
}

// Values writes the filter as query parameters; FromValues reads them back.
// What has a parameter of its own and one value stands there, the rest in q.
func (f Filter) Values() url.Values {
	f = f.normal()
	v := url.Values{}
	for _, info := range fields {
		if is := info.is(&f); info.param != "" && len(*is) == 1 {
			v.Set(info.param, (*is)[0])
			*is = nil
		}
	}
	if !f.From.IsZero() {
		v.Set(paramFrom, writeDate(f.From, 0))
		f.From = time.Time{}
	}
	if !f.To.IsZero() {
		v.Set(paramTo, writeDate(f.To, -1))
		f.To = time.Time{}
	}
	if q := f.String(); q != "" {
		v.Set(paramQuery, q)
	}
	return v
}

func writeDate(at time.Time, days int) string {
	if date := at.AddDate(0, 0, days); at.Equal(at.Truncate(24*time.Hour)) && plausible(date) {
		return date.Format(time.DateOnly)
	}
	return at.Format(time.RFC3339Nano)
}

// CheckShareable refuses a filter that must not stand in an address, because
// the redactor would hide a part of it. Job ids and keys are exempt: they are
// names, which are shown everywhere as they are. Errors: Invalid.
func (f Filter) CheckShareable() error {
	for _, info := range fields {
		if info.field == Job || info.field == Key {
			continue
		}
		for _, value := range slices.Concat(*info.is(&f), *info.not(&f)) {
			if redact.LooksSecret(value) {
				return problem.At(problem.Invalid, string(info.field),
					"The value of %s looks like a secret or an address, which must not stand in a link. Search by job id, key or group instead.", info.field)
			}
		}
	}
	return nil
}
