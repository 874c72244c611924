package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"github.com/redrive-dlq/redrive/dlq/problem"
)

// mediaType is the request's content type. Only UTF-8 is read, and nothing is
// unpacked: a packed body could be far larger than its limit.
func mediaType(c echo.Context) (string, error) {
	h := c.Request().Header
	if e := h.Get(echo.HeaderContentEncoding); e != "" && !strings.EqualFold(e, "identity") {
		return "", problem.New(problem.Unsupported, "The content encoding %q isn't taken. Send the body as it is.", short(e))
	}
	kind, params, err := mime.ParseMediaType(h.Get(echo.HeaderContentType))
	if err != nil {
		return "", nil
	}
	if charset := params["charset"]; charset != "" && !strings.EqualFold(charset, "utf-8") {
		return "", problem.New(problem.Unsupported, "The charset %q isn't taken. Send UTF-8.", short(charset))
	}
	return kind, nil
}

// body reads a small JSON object into a request struct of its own. What
// encoding/json would let pass is refused: a key that nobody reads, a key in
// another case, a key twice, and text that PostgreSQL can't hold.
func body[T any](c echo.Context) (T, error) {
	var v T
	kind, err := mediaType(c)
	if err != nil {
		return v, err
	}
	if kind != echo.MIMEApplicationJSON {
		return v, problem.New(problem.Unsupported, "The content type %q isn't taken here. Send application/json.", short(kind))
	}
	raw, err := io.ReadAll(c.Request().Body)
	if err != nil {
		return v, unreadable(err, "Nothing was done.")
	}
	if at := notText(raw); at >= 0 {
		return v, problem.New(problem.Malformed, "The body is no valid Unicode text at byte %d. Nothing was done.", at)
	}
	if err := json.Unmarshal(raw, &v); err != nil {
		return v, decodeFault(err)
	}
	return v, checkObject(raw, reflect.ValueOf(v))
}

// unreadable explains a body that broke off. What the guard cut off keeps its
// own answer, which names the limit.
func unreadable(err error, consequence string) error {
	if a := (*http.MaxBytesError)(nil); errors.As(err, &a) {
		return err
	}
	return problem.Wrap(err, problem.Malformed, "The body ended before it was whole. %s", consequence)
}

// decodeFault says where a small body is wrong, without quoting its values.
func decodeFault(err error) error {
	var syntax *json.SyntaxError
	var typ *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return problem.Wrap(err, problem.Malformed, "The body is no JSON at byte %d. Send one object.", syntax.Offset)
	case errors.As(err, &typ) && typ.Field != "":
		return problem.At(problem.Invalid, "/"+typ.Field, "/%s must be %s.", typ.Field, wanted(typ.Type))
	}
	return problem.Wrap(err, problem.Malformed, "The body must be one JSON object.")
}

// wanted says what a field of the type takes; a list is one of numbers.
func wanted(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		return "a list of whole numbers"
	}
	return "a whole number"
}

// checkObject holds the keys against the struct's fields and the texts against
// what can be stored. raw is valid JSON.
func checkObject(raw []byte, v reflect.Value) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return problem.New(problem.Malformed, "The body must be one JSON object.")
	}
	known := fieldNames(v.Type())
	var seen []string
	for d.More() {
		t, _ := d.Token() // valid JSON: a key
		key, _ := t.(string)
		at := int(d.InputOffset())
		switch {
		case slices.Contains(seen, key):
			return problem.At(problem.Invalid, "/"+short(key), "The key %q stands twice; the second one ends at byte %d.", short(key), at)
		case !slices.Contains(known, key):
			return problem.At(problem.Invalid, "/"+short(key), "Nobody reads the key %q (it ends at byte %d). The keys here are %s; case matters.", short(key), at, strings.Join(known, ", "))
		}
		seen = append(seen, key)
		var skip json.RawMessage
		if err := d.Decode(&skip); err != nil {
			return decodeFault(err)
		}
	}
	for i := range v.NumField() {
		if f := v.Field(i); f.Kind() == reflect.String && strings.ContainsRune(f.String(), 0) {
			return problem.At(problem.Invalid, "/"+known[i], `/%s holds a NUL character (\u0000), which can't be stored.`, known[i])
		}
	}
	return nil
}

// fieldNames are the JSON names of a request struct's fields, in their order.
func fieldNames(t reflect.Type) []string {
	names := make([]string, t.NumField())
	for i := range names {
		names[i], _, _ = strings.Cut(t.Field(i).Tag.Get("json"), ",")
	}
	return names
}

// notText is the offset of the first byte that is no UTF-8, or of the first
// escape that is half of a surrogate pair; -1 when there is none. Either would
// be replaced by encoding/json and refused by PostgreSQL.
func notText(raw []byte) int {
	for i := 0; i < len(raw); {
		r, n := utf8.DecodeRune(raw[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		if r != '\\' {
			i += n
			continue
		}
		high, ok := escaped(raw, i)
		if !ok || !utf16.IsSurrogate(high) {
			i += 2
			continue
		}
		if low, ok := escaped(raw, i+6); !ok || utf16.DecodeRune(high, low) == utf8.RuneError {
			return i
		}
		i += 12
	}
	return -1
}

// escaped reads a \uXXXX at raw[i].
func escaped(raw []byte, i int) (rune, bool) {
	if i+6 > len(raw) || raw[i] != '\\' || raw[i+1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(raw[i+2:i+6]), 16, 32)
	return rune(n), err == nil
}

// short cuts what the client sent for use in a message.
func short(s string) string {
	if r := []rune(s); len(r) > 64 {
		return string(r[:64]) + "…"
	}
	return s
}

// pathID is the number in the address; anything else isn't there.
func pathID(c echo.Context, what string) (int64, error) {
	id, err := strconv.ParseInt(c.Param("id"), 10, 64)
	if err != nil || id < 1 {
		return 0, notFound(what)
	}
	return id, nil
}

func notFound(what string) error {
	return problem.New(problem.NotFound, "There is no %s with this id.", what)
}
