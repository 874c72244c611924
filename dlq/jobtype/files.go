package jobtype

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"unicode/utf8"
)

// Files are the texts that a catalogue was made from: what a version of it is.
type Files struct {
	Main  string            // the catalogue's path among Texts
	Texts map[string]string // by path: the catalogue and every schema file it read
}

// Sum names the content: equal files have equal sums, and no others.
func (f Files) Sum() [sha256.Size]byte {
	b, err := json.Marshal([]any{f.Main, f.Texts}) // a map's keys are sorted; texts are valid UTF-8
	if err != nil {
		panic("jobtype: texts can't be encoded: " + err.Error())
	}
	return sha256.Sum256(b)
}

// Hex is the sum as people read it.
func (f Files) Hex() string {
	sum := f.Sum()
	return hex.EncodeToString(sum[:])
}

// Files are what the catalogue was made from; [Parse] makes the same one again.
func (c *Catalogue) Files() Files {
	return Files{Main: c.files.Main, Texts: maps.Clone(c.files.Texts)}
}

// Load reads a catalogue file and the schema files it names (relative to it)
// from fsys. Everything wrong is returned at once as [Faults].
func Load(fsys fs.FS, file string) (*Catalogue, error) {
	return load(file, func(name string) ([]byte, error) { return fs.ReadFile(fsys, name) })
}

// Parse makes a catalogue from files that were loaded before. Everything wrong
// is returned at once as [Faults].
func Parse(files Files) (*Catalogue, error) {
	return load(files.Main, func(name string) ([]byte, error) {
		text, ok := files.Texts[name]
		if !ok {
			return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
		}
		return []byte(text), nil
	})
}

// library reads files and keeps what was read.
type library struct {
	read  func(name string) ([]byte, error)
	texts map[string]string
}

var errNotText = errors.New("is no text in UTF-8, or holds a NUL byte")

func (l *library) file(name string) ([]byte, error) {
	b, err := l.read(name)
	if err != nil {
		return nil, err
	}
	if !utf8.Valid(b) || bytes.IndexByte(b, 0) >= 0 {
		return nil, fmt.Errorf("%s %w", name, errNotText)
	}
	l.texts[name] = string(b)
	return b, nil
}
