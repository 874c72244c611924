package job

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
)

// Bounds of the tree; a larger payload is shown raw, where nothing is parsed.
const (
	maxNodes = 3000
	maxDepth = 64
	maxTree  = 512 << 10 // bytes
)

var errTooLarge = errors.New("too large for a tree")

// node is a value of a JSON document as it is written there: numbers keep
// their digits, repeated keys stay, in order.
type node struct {
	key      string
	hasKey   bool
	open     string // "{" or "[" for a container, else empty
	text     string // a scalar's literal text; of a string, its content
	isString bool
	children []node
}

// parseTree reads a redacted JSON document for showing. It fails on what is no
// JSON and on what is too large.
func parseTree(text string) (node, error) {
	if len(text) > maxTree {
		return node{}, errTooLarge
	}
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber() // 1E3, -0.0 and 1e400 stay as they were written
	left := maxNodes
	root, err := readNode(decoder, &left, 0)
	if err != nil {
		return node{}, err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return node{}, errors.New("more than one document")
	}
	return root, nil
}

func readNode(decoder *json.Decoder, left *int, depth int) (node, error) {
	*left--
	if *left < 0 || depth > maxDepth {
		return node{}, errTooLarge
	}
	token, err := decoder.Token()
	if err != nil {
		return node{}, err
	}
	switch value := token.(type) {
	case json.Delim:
		return readContainer(decoder, value.String(), left, depth)
	case string:
		return node{text: value, isString: true}, nil
	case json.Number:
		return node{text: value.String()}, nil
	case bool:
		if value {
			return node{text: "true"}, nil
		}
		return node{text: "false"}, nil
	}
	return node{text: "null"}, nil
}

func readContainer(decoder *json.Decoder, open string, left *int, depth int) (node, error) {
	container := node{open: open}
	for decoder.More() {
		var key string
		if open == "{" {
			token, err := decoder.Token()
			if err != nil {
				return node{}, err
			}
			key, _ = token.(string)
		}
		child, err := readNode(decoder, left, depth+1)
		if err != nil {
			return node{}, err
		}
		child.key, child.hasKey = key, open == "{"
		container.children = append(container.children, child)
	}
	_, err := decoder.Token()
	return container, err
}

// visible writes a NUL as its mark, since browsers drop it.
func visible(s string) string { return strings.ReplaceAll(s, "\x00", "␀") }

// quoted writes a string as a reader of JSON expects it, without escaping
// what is readable.
func (n node) quoted() string { return `"` + visible(n.text) + `"` }

// closing is the bracket that ends a container.
func (n node) closing() string {
	if n.open == "[" {
		return "]"
	}
	return "}"
}
