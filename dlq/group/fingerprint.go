// Package group gives failures their fingerprints: jobs that died of the same
// thing share one and form a group.
package group

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strings"
	"unicode/utf8"

	"github.com/redrive-dlq/redrive/dlq/failure"
	"github.com/redrive-dlq/redrive/dlq/redact"
)

// FoldVersion is part of every fingerprint. Raise it when folding changes, or
// when redact.Version does: messages are folded after they were redacted, so
// that no fingerprint can be used to guess a hidden value.
const FoldVersion = 1

const (
	maxMessage  = 9 << 10 // bytes of a message that are folded
	maxClass    = 3000    // bytes of a class
	maxTemplate = 500     // characters of the readable template
)

// Fingerprint returns the signature of a failure, 32 hexadecimal digits, and
// its readable template, in which what varies is named: "no customer ‹n›".
//
// The signature covers the job type, the class of the root cause, the folded
// message of the root cause and the top frame of the application without line
// numbers. Only the beginning of very long texts counts.
func Fingerprint(jobType string, f failure.Failure) (fingerprint, template string) {
	folded := Fold(f.RootMessage())
	h := sha256.New()
	for _, part := range []string{jobType, strings.ToValidUTF8(cut(f.RootClass(), maxClass), "�"), same(folded), TopFrame(f.Stack)} {
		// Lengths keep ("a", "bc") and ("ab", "c") apart.
		var n [8]byte
		binary.BigEndian.PutUint32(n[:4], FoldVersion)
		binary.BigEndian.PutUint32(n[4:], uint32(len(part)))
		h.Write(n[:])
		h.Write([]byte(part))
	}
	sum := h.Sum(nil)
	return hex.EncodeToString(sum[:16]), shorten(folded, maxTemplate)
}

// same makes all marks equal: whether an id happens to look like a number or
// like hexadecimal digits must not split a group.
func same(folded string) string {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(folded, "‹")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		b.WriteByte('#')
		_, after, closed := strings.Cut(rest, "›")
		if !closed {
			return b.String()
		}
		folded = after
	}
}

// Fold returns a message with everything that varies replaced by a mark, and
// its secrets by theirs. Terminal codes are gone and white space is single.
func Fold(message string) string {
	f := folder{in: redact.Readable(cut(message, maxMessage))}
	f.run()
	return string(f.out)
}

// cut returns at most the first n bytes of s, not ending inside a character.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

func shorten(s string, runes int) string {
	if len(s) <= runes {
		return s
	}
	n := 0
	for i := range s {
		if n == runes {
			return s[:i] + "…"
		}
		n++
	}
	return s
}
