package category

import (
	"slices"
	"strconv"
	"strings"

	"github.com/redrive-dlq/redrive/dlq/failure"
)

// maxText is how many bytes of one class and message are read: what a failure
// is stands at its beginning.
const maxText = 8 << 10

// Classify says of what kind a failure is, and by which codes it was told:
// http_503, invalid_recipient and so on, the telling ones first; none when the
// category is unknown.
//
// The root cause is asked first, then each wrapper around it. In one error, a
// rate limit or refused credentials count before the HTTP status, and the
// status before other words.
func Classify(f failure.Failure) (Category, []string) {
	for i := len(f.Causes) - 1; i >= 0; i-- {
		if c, codes := classify(f.Causes[i].Class, f.Causes[i].Message); c != Unknown {
			return c, codes
		}
	}
	if c, codes := classify(f.Class, f.Message); c != Unknown {
		return c, codes
	}
	if f.GaveUp == "poison" {
		// The worker saw the same error again and again and blames the message.
		return InvalidInput, []string{"poison"}
	}
	return Unknown, nil
}

func classify(class, message string) (Category, []string) {
	text := strings.ToLower(cut(class) + "\n" + cut(message))
	var codes []string
	if s := status(class, message); s > 0 {
		codes = append(codes, "http_"+strconv.Itoa(s))
	}
	for _, rule := range rules {
		if rule.category == byStatus {
			if len(codes) > 0 {
				if c := ofStatus(status(class, message)); c != Unknown {
					return c, withReason(codes, text, c)
				}
			}
			continue
		}
		for _, phrase := range rule.phrases {
			if strings.Contains(text, phrase) && !(phrase == "no such" && strings.Contains(text, "no such host")) {
				return rule.category, withReason(append(codes, rule.code), text, rule.category)
			}
		}
	}
	if missingRecord(message) {
		return MissingState, append(codes, "missing_record")
	}
	return Unknown, nil
}

// withReason adds the code of a finer reason of the same category, if the text
// names one.
func withReason(codes []string, text string, c Category) []string {
	for _, rule := range rules {
		if rule.category != c || slices.Contains(codes, rule.code) {
			continue
		}
		for _, phrase := range rule.phrases {
			if strings.Contains(text, phrase) {
				return append(codes, rule.code)
			}
		}
	}
	return codes
}

// missingRecord reads "no customer 4711": no, one word, and something with a
// digit.
func missingRecord(message string) bool {
	fields := strings.Fields(cut(message))
	return len(fields) >= 3 && strings.EqualFold(fields[0], "no") && strings.ContainsAny(fields[2], "0123456789")
}

func cut(s string) string { return s[:min(len(s), maxText)] }
