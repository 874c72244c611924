package sample_test

import (
	"reflect"
	"time"

	"github.com/redrive-dlq/redrive/views/internal/sample"
)

// fill puts the text into every string of a props value, two elements into
// every slice, true into every bool, so that each branch that shows a value
// shows the text.
func fill(v reflect.Value, text string) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(2)
	case reflect.Float64:
		v.SetFloat(2)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), text)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(sample.Now))
			return
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i), text)
			}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes([]byte(text))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			fill(v.Index(i), text)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		value := reflect.New(v.Type().Elem()).Elem()
		fill(value, text)
		v.SetMapIndex(reflect.ValueOf(text), value)
	}
}

// filled makes props of a type with the text everywhere.
func filled[P any](text string) P {
	var p P
	fill(reflect.ValueOf(&p).Elem(), text)
	return p
}
