package web

import (
	"errors"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"github.com/redrive-dlq/redrive/dlq/problem"
)

// bind reads a form's body into a request struct: each action has its own, with
// `form` tags. What the struct doesn't name is ignored, the address is never
// read. Fields are strings (as typed), []string, bool ("yes", "on", "true"),
// int or int64. Errors: Malformed for a body that is no form, TooLarge, and
// Invalid with the field for a value that isn't of its kind.
func bind[T any](c echo.Context) (T, error) {
	var form T
	r := c.Request()
	if err := r.ParseForm(); err != nil {
		if a := (*http.MaxBytesError)(nil); errors.As(err, &a) {
			return form, err
		}
		return form, problem.Wrap(err, problem.Malformed, "This form can't be read. Nothing was done.")
	}
	v := reflect.ValueOf(&form).Elem()
	for i := range v.NumField() {
		name := v.Type().Field(i).Tag.Get("form")
		values, sent := r.PostForm[name]
		if name == "" || !sent {
			continue
		}
		if err := bindField(v.Field(i), name, values); err != nil {
			return form, err
		}
	}
	return form, nil
}

func bindField(field reflect.Value, name string, values []string) error {
	for _, text := range values {
		if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
			return problem.At(problem.Invalid, name, "The field %q holds characters that can't be stored.", name)
		}
	}
	switch field.Kind() {
	case reflect.Slice:
		field.Set(reflect.ValueOf(values))
		return nil
	case reflect.String:
		// A browser sends line ends of text areas as CR LF.
		field.SetString(strings.ReplaceAll(values[0], "\r\n", "\n"))
	case reflect.Bool:
		field.SetBool(values[0] == "yes" || values[0] == "on" || values[0] == "true")
	case reflect.Int, reflect.Int64:
		if values[0] == "" {
			return nil
		}
		n, err := strconv.ParseInt(values[0], 10, 64)
		if err != nil {
			return problem.At(problem.Invalid, name, "The field %q must be a whole number.", name)
		}
		field.SetInt(n)
	default:
		return problem.New(problem.Internal, "field %q has a kind that forms can't fill", name)
	}
	return nil
}

// idParam reads a numeric id from the path; anything else is NotFound, so that
// a wrong id and one of somebody else look the same.
func idParam(c echo.Context, name string) (int64, error) {
	id, err := strconv.ParseInt(c.Param(name), 10, 64)
	if err != nil || id <= 0 {
		return 0, problem.New(problem.NotFound, "There is nothing with this number.")
	}
	return id, nil
}
