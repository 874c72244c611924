package jobtype

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// SchemaError is one place where a payload breaks its schema. The message
// never quotes the payload: values may be secret.
type SchemaError struct {
	Pointer string // JSON Pointer into the payload; empty is the whole
	Message string // reads after the pointer: "must be a whole number"
}

type schemas map[int]*jsonschema.Schema

// maxSchemaErrors is how many places one answer names.
const maxSchemaErrors = 50

// Validate checks a payload against the type's schema of its version; version
// 0 (the worker said none) is read as 1. A type without schemas accepts
// everything. The error says that the payload couldn't be judged, because no
// schema is declared for its version.
func (t *Type) Validate(payloadVersion int, payload []byte) ([]SchemaError, error) {
	if len(t.schemas) == 0 {
		return nil, nil
	}
	if payloadVersion == 0 {
		payloadVersion = 1
	}
	schema, ok := t.schemas[payloadVersion]
	if !ok {
		return nil, fmt.Errorf("%s declares no schema for payload version %d (it has %s)", t.Name, payloadVersion, t.versions())
	}
	document, where, message := decode(payload)
	if message != "" {
		return []SchemaError{{Pointer: where, Message: message}}, nil
	}
	var invalid *jsonschema.ValidationError
	if err := schema.Validate(document); errors.As(err, &invalid) {
		return explain(invalid), nil
	} else if err != nil {
		return nil, fmt.Errorf("%s, payload version %d: the schema can't judge this payload", t.Name, payloadVersion)
	}
	return nil, nil
}

func (t *Type) versions() string {
	var s []string
	for _, v := range slices.Sorted(maps.Keys(t.schemas)) {
		s = append(s, strconv.Itoa(v))
	}
	return strings.Join(s, ", ")
}

// decode reads the payload with every number exact.
func decode(payload []byte) (document any, where, message string) {
	if !utf8.Valid(payload) {
		return nil, "", "is not UTF-8 text, so it can't be JSON"
	}
	d := json.NewDecoder(bytes.NewReader(payload))
	d.UseNumber()
	if err := d.Decode(&document); err != nil {
		var syntax *json.SyntaxError
		switch {
		case len(bytes.TrimSpace(payload)) == 0:
			return nil, "", "is empty, so it isn't JSON"
		case errors.As(err, &syntax):
			return nil, "", fmt.Sprintf("is not JSON: it breaks at byte %d", syntax.Offset)
		}
		return nil, "", "is not JSON: it ends too early"
	}
	end := d.InputOffset()
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, "", fmt.Sprintf("is not one JSON document: it ends at byte %d and more follows", end)
	}
	return tame(document), "", ""
}

// hugeExponent finds numbers whose exact form would have thousands of digits:
// the validator would spell them out, or fail on them.
var hugeExponent = regexp.MustCompile(`^(-?)[0-9.]+[eE]([+-]?)0*([0-9]{4,})$`)

// tame replaces such numbers by ones that stay beyond every sensible limit:
// what is judged is type and range, and the payload itself is not touched.
func tame(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			v[k] = tame(e)
		}
	case []any:
		for i, e := range v {
			v[i] = tame(e)
		}
	case json.Number:
		if m := hugeExponent.FindStringSubmatch(string(v)); m != nil {
			if strings.Trim(string(v)[:strings.IndexAny(string(v), "eE")], "-0.") == "" {
				return json.Number("0")
			}
			if m[2] == "-" {
				return json.Number(m[1] + "1e-1000")
			}
			return json.Number(m[1] + "1e1000")
		}
	}
	return v
}

// schemaPlace names a schema of a type by its payload version.
type schemaPlace struct {
	jobType string
	version int
}

// compile reads and compiles the schema files of a type. Schemas may refer to
// files beside them; nothing is ever fetched from a network.
func (r *reader) compile(files *library, dir string, t *Type) {
	t.schemas, t.schemaSums = schemas{}, map[int]string{}
	for version, file := range t.SchemaFiles {
		where := r.schemas[schemaPlace{t.Name, version}]
		name := path.Join(dir, file)
		if !fs.ValidPath(name) {
			where.fault("%q must be a path below the catalogue's folder", file)
			continue
		}
		c := jsonschema.NewCompiler()
		c.DefaultDraft(jsonschema.Draft2020)
		c.AssertFormat()
		c.UseLoader(fileLoader{files})
		schema, err := c.Compile("file:///" + name)
		if err != nil {
			where.fault("%s: %s", file, firstLine(err))
			continue
		}
		t.schemas[version] = schema
		sum := sha256.Sum256([]byte(files.texts[name]))
		t.schemaSums[version] = hex.EncodeToString(sum[:4])
	}
}

type fileLoader struct{ files *library }

func (l fileLoader) Load(url string) (any, error) {
	name, ok := strings.CutPrefix(url, "file:///")
	if !ok {
		return nil, errors.New("schemas may refer only to files of the catalogue's folder")
	}
	b, err := l.files.file(name)
	if err != nil {
		return nil, err
	}
	return jsonschema.UnmarshalJSON(bytes.NewReader(b))
}

func firstLine(err error) string {
	s, _, _ := strings.Cut(err.Error(), "\n")
	return s
}
