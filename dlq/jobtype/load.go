package jobtype

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/parser"
)

// maxFile bounds the catalogue: it is written by hand.
const maxFile = 1 << 20

// identifier is what environments and sources are called: the words
// stand in URLs, filters and metrics.
var identifier = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.:-]{0,99}$`)

func load(file string, read func(string) ([]byte, error)) (*Catalogue, error) {
	files := &library{read: read, texts: map[string]string{}}
	source, err := files.file(file)
	if err != nil {
		return nil, fmt.Errorf("catalogue %s: %w", file, err)
	}
	r := &reader{file: file, schemas: map[schemaPlace]value{}}
	c := r.catalogue(source)
	r.shareConcurrency(c)
	if len(r.faults) == 0 {
		for _, t := range c.Types() {
			r.compile(files, path.Dir(file), t)
		}
	}
	if len(r.faults) > 0 {
		return nil, r.faults
	}
	c.files = Files{Main: file, Texts: files.texts}
	return c, nil
}

func (r *reader) catalogue(source []byte) *Catalogue {
	c := &Catalogue{
		Environments: []string{"production", "staging", "development"},
		types:        map[string]*Type{},
	}
	root := value{r: r}
	if len(source) > maxFile {
		root.fault("is larger than 1 MiB; a catalogue is written by hand")
		return c
	}
	tree, err := parser.ParseBytes(source, 0)
	if err != nil {
		r.syntax(err)
		return c
	}
	if len(tree.Docs) != 1 || tree.Docs[0].Body == nil {
		root.fault("must hold exactly one document with types")
		return c
	}
	root.node = tree.Docs[0].Body
	var types, sources, cooling value
	root.fields(map[string]func(value){
		"environments": func(v value) { c.Environments = v.names("environment") },
		"cooling_off":  func(v value) { cooling = v },
		"sources":      func(v value) { sources = v },
		"types":        func(v value) { types = v },
	})
	// Sources know the environments, types know both, whatever the file's order.
	if cooling.node != nil {
		c.readCoolingOff(cooling)
	}
	if sources.node != nil {
		c.readSources(sources)
	}
	if types.node == nil {
		if len(r.faults) == 0 {
			root.fault("declares no types; add types:")
		}
		return c
	}
	for _, e := range types.entries() {
		if !typeName(e.key) {
			e.at.fault("%q can't be a type's name; it has 1 to 255 bytes, no control characters and no space at its ends", e.key)
			continue
		}
		c.types[e.key] = c.readType(e.key, e.body)
		c.names = append(c.names, e.key)
	}
	return c
}

func (r *reader) syntax(err error) {
	var s *yaml.SyntaxError
	f := Fault{File: r.file, Message: "is not valid YAML"}
	if errors.As(err, &s) && s.Token != nil && s.Token.Position != nil {
		f.Line, f.Column, f.Message = s.Token.Position.Line, s.Token.Position.Column, s.Message
	}
	r.faults = append(r.faults, f)
}

// typeName reports whether a type may be called so. Workers choose these names,
// so whatever can be captured and shown on one line can be declared.
func typeName(s string) bool {
	return s != "" && len(s) <= 255 && utf8.ValidString(s) && strings.TrimSpace(s) == s && !strings.ContainsFunc(s, unicode.IsControl)
}

func (v value) names(what string) []string {
	var out []string
	for _, item := range v.items() {
		s := item.text()
		switch {
		case s == "":
		case !identifier.MatchString(s):
			item.fault("%q can't be the name of a %s; use letters, digits and _ . : -", s, what)
		case slices.Contains(out, s):
			item.fault("%s %q stands twice", what, s)
		default:
			out = append(out, s)
		}
	}
	return out
}

func (c *Catalogue) readCoolingOff(v value) {
	for _, item := range v.items() {
		name := item.oneOf(c.Environments...)
		switch {
		case name == "":
		case slices.Contains(c.CoolingOff, name):
			item.fault("environment %q stands twice", name)
		default:
			c.CoolingOff = append(c.CoolingOff, name)
		}
	}
}

func (c *Catalogue) readSources(v value) {
	for _, item := range v.items() {
		s := Source{Kind: "river"}
		item.fields(map[string]func(value){
			"name":        func(v value) { s.Name = v.text() },
			"environment": func(v value) { s.Environment = v.oneOf(c.Environments...) },
			"kind":        func(v value) { s.Kind = v.oneOf("river", "http") },
			"schema":      func(v value) { s.Schema = v.text() },
			"url":         func(v value) { s.URL = v.reference() },
		})
		_, twice := c.Source(s.Name)
		switch {
		case !identifier.MatchString(s.Name):
			item.fault("needs a name of letters, digits and _ . : -")
		case twice:
			item.fault("source %q stands twice", s.Name)
		case s.Environment == "":
			item.fault("source %q needs an environment", s.Name)
		default:
			c.Sources = append(c.Sources, s)
		}
	}
}

// reference is env:NAME: the catalogue is reviewed and shown, so a secret or
// an address with a password in it must not stand there itself.
func (v value) reference() string {
	s := v.text()
	if s == "" {
		return ""
	}
	if name, ok := strings.CutPrefix(s, "env:"); !ok || !identifier.MatchString(name) {
		v.fault("must name an environment variable, like env:STAGING_SECRET; the value itself must not stand in this file")
		return ""
	}
	return s
}
