package api_test

import (
	"bytes"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/redrive-dlq/redrive/web"
)

const openAPIURL = "urn:openapi"

// contract compiles schemas of the document by their JSON Pointer.
type contract struct {
	mu       sync.Mutex
	doc      map[string]any
	compiler *jsonschema.Compiler
}

var loaded = sync.OnceValue(func() *contract {
	raw, err := os.ReadFile("openapi.json")
	if err != nil {
		panic(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		panic(err)
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	if err := c.AddResource(openAPIURL, doc); err != nil {
		panic(err)
	}
	return &contract{doc: doc.(map[string]any), compiler: c}
})

func pointer(tokens ...string) string {
	out := ""
	for _, s := range tokens {
		out += "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(s)
	}
	return out
}

func (c *contract) compile(at string) (*jsonschema.Schema, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.compiler.Compile(openAPIURL + "#" + strings.NewReplacer("{", "%7B", "}", "%7D").Replace(at))
}

func (c *contract) validate(at string, value any) error {
	s, err := c.compile(at)
	if err != nil {
		return err
	}
	return s.Validate(value)
}

func (c *contract) find(tokens ...string) any {
	var at any = c.doc
	for _, token := range tokens {
		m, _ := at.(map[string]any)
		at = m[token]
	}
	return at
}

var idInPath = regexp.MustCompile(`/\d+`)

// documented holds every answer that any test gets against the document.
func documented(t testing.TB, method, path string, r reply) {
	t.Helper()
	path, _, _ = strings.Cut(path, "?")
	path = "/api/v1" + idInPath.ReplaceAllString(path, "/{id}")
	c := loaded()
	status := strconv.Itoa(r.status)
	response := []string{"paths", path, strings.ToLower(method), "responses", status}
	if c.find(response[:3]...) == nil || path == "/api/v1/openapi.json" {
		return // a test asks for something that isn't there
	}
	kind := jsonType
	if r.status >= 400 {
		kind = "application/problem+json"
		if c.find(response...) != nil {
			response = []string{"components", "responses", "Problem"}
		}
	}
	schema := append(response, "content", kind, "schema")
	if c.find(schema...) == nil {
		t.Errorf("%s %s answers %d, which the document doesn't say: %s", method, path, r.status, r)
		return
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(r.raw))
	if err != nil {
		t.Error(err)
		return
	}
	if err := c.validate(pointer(schema...), value); err != nil {
		t.Errorf("%s %s: the answer isn't what the document says: %v\n%s", method, path, err, r)
	}
}

// TestTheDocumentHasEveryRouteAndNoOther walks the route table.
func TestTheDocumentHasEveryRouteAndNoOther(t *testing.T) {
	t.Parallel()
	b := setup(t)
	declared := map[string]bool{}
	for _, r := range b.server.Routes() {
		if r.Audience == web.API {
			declared[r.Method+" "+strings.ReplaceAll(r.Path, ":id", "{id}")] = true
		}
	}
	if len(declared) < 9 {
		t.Fatalf("only %d routes of the API stand in the table", len(declared))
	}
	for path, operations := range loaded().doc["paths"].(map[string]any) {
		for method := range operations.(map[string]any) {
			key := strings.ToUpper(method) + " " + path
			if !declared[key] {
				t.Errorf("%s is documented and doesn't exist", key)
			}
			delete(declared, key)
		}
	}
	for key := range declared {
		t.Errorf("%s isn't documented", key)
	}
}

func TestTheDocumentIsServedToEverybody(t *testing.T) {
	t.Parallel()
	b := setup(t)
	res, err := http.Get(b.url + "/api/v1/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	served, err := jsonschema.UnmarshalJSON(res.Body)
	if err != nil || res.StatusCode != http.StatusOK || served.(map[string]any)["openapi"] != "3.1.0" {
		t.Errorf("%d %v", res.StatusCode, err)
	}
}

// TestEverySchemaCompilesAndItsExamplesHold reads all of the document.
func TestEverySchemaCompilesAndItsExamplesHold(t *testing.T) {
	t.Parallel()
	c, schemas, examples := loaded(), 0, 0
	var walk func(at []string, v any)
	walk = func(at []string, v any) {
		m, ok := v.(map[string]any)
		if !ok {
			return
		}
		if _, ok := m["schema"]; ok {
			schemas++
			where := pointer(append(at, "schema")...)
			if _, err := c.compile(where); err != nil {
				t.Errorf("%s: %v", where, err)
			}
			shown, _ := m["examples"].(map[string]any)
			for name, e := range shown {
				examples++
				if err := c.validate(where, e.(map[string]any)["value"]); err != nil {
					t.Errorf("%s, example %s: %v", where, name, err)
				}
			}
		}
		for k, x := range m {
			walk(append(append([]string{}, at...), k), x)
		}
	}
	walk(nil, any(c.doc))
	for name := range c.doc["components"].(map[string]any)["schemas"].(map[string]any) {
		if _, err := c.compile(pointer("components", "schemas", name)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if schemas < 15 || examples < 5 {
		t.Errorf("%d schemas and %d examples were looked at", schemas, examples)
	}
}
