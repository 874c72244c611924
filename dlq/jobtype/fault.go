package jobtype

import (
	"fmt"
	"slices"
	"strings"
)

// Fault is one thing wrong with a catalogue file.
type Fault struct {
	File    string
	Line    int // from 1; 0 when the fault has no line
	Column  int
	Where   string // dotted path: types.charge_card.targets.production
	Message string // what is wrong and what to do
}

func (f Fault) String() string {
	s := f.File
	if f.Line > 0 {
		s += fmt.Sprintf(":%d:%d", f.Line, f.Column)
	}
	if f.Where != "" {
		s += ": " + f.Where
	}
	return s + ": " + f.Message
}

// Faults are all that is wrong with a file, in file order: a person fixes
// them in one go.
type Faults []Fault

func (f Faults) Error() string {
	lines := make([]string, len(f))
	for i, fault := range f {
		lines[i] = fault.String()
	}
	return strings.Join(lines, "\n")
}

// suggestion offers the known word that a wrong one is close to.
func suggestion(word string, known []string) string {
	best, distance := "", 3
	for _, k := range known {
		if d := editDistance(strings.ToLower(word), k); d < distance && d < len(k) {
			best, distance = k, d
		}
	}
	if best != "" {
		return fmt.Sprintf("did you mean %q?", best)
	}
	known = slices.Sorted(slices.Values(known))
	return "known here: " + strings.Join(known, ", ")
}

// editDistance is Levenshtein's, bounded by the short words it is used on.
func editDistance(a, b string) int {
	if len(a) > 40 || len(b) > 40 {
		return 40
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal, row[j+1] = row[j+1], min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
