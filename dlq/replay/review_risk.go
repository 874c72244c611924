package replay

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/redrive-dlq/redrive/dlq/jobtype"
)

// Phrase is what a person types to confirm a batch: exactly this, with no
// separators in the number.
func Phrase(n int, jobType, environment string) string {
	return fmt.Sprintf("replay %d %s in %s", n, jobType, environment)
}

// Risk says what n replays of a type may do to the world outside: "may send 32
// e-mails". It completes "This …".
func Risk(t *jobtype.Type, n int) string {
	var may []string
	if t != nil {
		for _, e := range t.SideEffects {
			if words := riskOf(e, n); words != "" {
				may = append(may, words)
			}
		}
	}
	switch {
	case t == nil:
		return "may do anything: nobody declared what the type does"
	case len(may) == 0:
		return "changes nothing outside"
	case len(may) == 1:
		return "may " + may[0]
	}
	return "may " + strings.Join(may[:len(may)-1], ", ") + " and " + may[len(may)-1]
}

func riskOf(e jobtype.SideEffect, n int) string {
	switch e.Kind {
	case "none":
		return ""
	case "email":
		return "send " + plural(n, "e-mail")
	case "money":
		return "move money " + times(n) + " (" + e.Text + ")"
	case "webhook":
		return "call " + plural(n, "webhook")
	case "write":
		return "write outside " + times(n) + " (" + e.Text + ")"
	}
	return "have an effect outside " + times(n) + " (" + e.Text + ")"
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return commas(n) + " " + noun + "s"
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return commas(n) + " times"
}

// commas writes a number as people read it: 12,345.
func commas(n int) string {
	digits := strconv.Itoa(n)
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
