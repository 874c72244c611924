package jobtype

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
)

// reader walks the parsed file and collects faults. It reads the syntax tree
// itself, because only that knows the line of each word.
type reader struct {
	file   string
	faults Faults
	// concurrency is what targets say of their destinations, in file order.
	concurrency []saidConcurrency
	schemas     map[schemaPlace]value // where a schema file is named
}

// value is one place in the file.
type value struct {
	r     *reader
	node  ast.Node
	where string
}

// line is where the place stands, from 1; 0 when it has none.
func (v value) line() int {
	if v.node != nil {
		if tk := v.node.GetToken(); tk != nil && tk.Position != nil {
			return tk.Position.Line
		}
	}
	return 0
}

func (v value) fault(format string, args ...any) {
	f := Fault{File: v.r.file, Where: v.where, Message: fmt.Sprintf(format, args...)}
	if v.node != nil {
		if tk := v.node.GetToken(); tk != nil && tk.Position != nil {
			f.Line, f.Column = tk.Position.Line, tk.Position.Column
		}
	}
	v.r.faults = append(v.r.faults, f)
}

// entry is one key of a mapping with its value.
type entry struct {
	key  string
	at   value // the key's own place, for faults about the key
	body value
}

// entries are a mapping's keys in file order; anything else is a fault.
func (v value) entries() []entry {
	var rows []*ast.MappingValueNode
	switch n := v.node.(type) {
	case *ast.MappingNode:
		rows = n.Values
	case *ast.MappingValueNode:
		rows = []*ast.MappingValueNode{n}
	default:
		v.fault("must be a mapping (key: value)")
		return nil
	}
	out := make([]entry, 0, len(rows))
	for _, row := range rows {
		at := value{v.r, row.Key, v.where}
		scalar, ok := row.Key.(ast.ScalarNode)
		if !ok {
			at.fault("keys must be plain words; anchors, aliases and merges aren't supported here")
			continue
		}
		key := fmt.Sprint(scalar.GetValue())
		where := key
		if v.where != "" {
			where = v.where + "." + key
		}
		at.where = where
		out = append(out, entry{key, at, value{v.r, row.Value, where}})
	}
	return out
}

// fields hands each key's value to its function; an unknown key is a fault.
func (v value) fields(known map[string]func(value)) {
	for _, e := range v.entries() {
		if read, ok := known[e.key]; ok {
			read(e.body)
			continue
		}
		words := make([]string, 0, len(known))
		for k := range known {
			words = append(words, k)
		}
		slices.Sort(words) // a tie is broken the same way every time
		e.at.fault("unknown key %q; %s", e.key, suggestion(e.key, words))
	}
}

func (v value) items() []value {
	seq, ok := v.node.(*ast.SequenceNode)
	if !ok {
		v.fault("must be a list")
		return nil
	}
	out := make([]value, len(seq.Values))
	for i, n := range seq.Values {
		out[i] = value{v.r, n, fmt.Sprintf("%s[%d]", v.where, i)}
	}
	return out
}

func (v value) text() string {
	switch n := v.node.(type) {
	case *ast.StringNode:
		if strings.TrimSpace(n.Value) != "" {
			return n.Value
		}
		v.fault("must not be empty")
	case *ast.LiteralNode:
		return n.Value.Value
	default:
		v.fault("must be text; put quotes around it")
	}
	return ""
}

func (v value) oneOf(words ...string) string {
	s := v.text()
	if s != "" && !slices.Contains(words, s) {
		v.fault("%q isn't allowed; %s", s, suggestion(s, words))
		return ""
	}
	return s
}

// count is a whole number from low to high.
func (v value) count(low, high int) int {
	if n, ok := v.node.(*ast.IntegerNode); ok {
		i, err := strconv.Atoi(strings.ReplaceAll(n.GetToken().Value, "_", ""))
		if err == nil && i >= low && i <= high {
			return i
		}
	}
	v.fault("must be a whole number from %d to %d", low, high)
	return 0
}

func (v value) flag() bool {
	if n, ok := v.node.(*ast.BoolNode); ok {
		return n.Value
	}
	v.fault("must be true or false")
	return false
}

// duration reads 15m, 72h, 30d or 2w; a positive time.
func (v value) duration() time.Duration {
	s := v.text()
	if s == "" {
		return 0
	}
	d, err := parseDuration(s)
	if err != nil || d <= 0 {
		v.fault("%q is no length of time; write it like 15m, 72h or 30d", s)
		return 0
	}
	return d
}

func parseDuration(s string) (time.Duration, error) {
	for suffix, unit := range map[string]time.Duration{"d": 24 * time.Hour, "w": 7 * 24 * time.Hour} {
		if digits, ok := strings.CutSuffix(s, suffix); ok {
			n, err := strconv.Atoi(digits)
			if err != nil || n < 0 || n > 36500 {
				return 0, fmt.Errorf("bad number of %s", suffix)
			}
			return time.Duration(n) * unit, nil
		}
	}
	return time.ParseDuration(s)
}

// pointer is a JSON Pointer (RFC 6901) to something below the root.
func (v value) pointer() string {
	s := v.text()
	if s != "" && !validPointer(s) {
		v.fault("%q is no JSON Pointer; write it like /customer/email", s)
		return ""
	}
	return s
}

func validPointer(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] == '~' && (i+1 == len(s) || s[i+1] != '0' && s[i+1] != '1') {
			return false
		}
	}
	return strings.HasPrefix(s, "/") && len(s) > 1
}

func (v value) pointers() []string {
	var out []string
	for _, item := range v.items() {
		if s := item.pointer(); s != "" {
			out = append(out, s)
		}
	}
	return out
}
