package rbac

import (
	_ "embed"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/redrive-dlq/redrive/dlq/problem"
)

// Bounds of a new passphrase: at least 15 characters (OWASP ASVS 5.0, 6.2.1),
// at most 1,024 bytes, which only keeps the hashing bounded.
const (
	MinPassphrase      = 15 // characters
	MaxPassphraseBytes = 1024
)

//go:embed common.txt
var commonText string

// common holds well-known long passwords, folded.
var common = sync.OnceValue(func() map[string]bool {
	m := map[string]bool{}
	for line := range strings.Lines(commonText) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			m[foldPassphrase(line)] = true
		}
	}
	return m
})

// runs are what fingers slide over; a passphrase made of pieces of them, of
// four characters or more, is no secret.
var runs = []string{
	"abcdefghijklmnopqrstuvwxyz", "01234567890123456789", "qwertyuiopasdfghjklzxcvbnm",
	"zyxwvutsrqponmlkjihgfedcba", "98765432109876543210", "1qaz2wsx3edc4rfv5tgb6yhn7ujm8ik9ol",
	"qwertzuiopasdfghjklyxcvbnm", "azertyuiopqsdfghjklmwxcvbn",
}

// CheckPassphrase refuses a new passphrase that is too short, too long, well
// known, or made of the person's own address. It returns Invalid with the field
// "password" and never repeats what was typed.
func CheckPassphrase(passphrase, email string) error {
	refuse := func(format string, args ...any) error {
		return problem.At(problem.Invalid, "password", format, args...)
	}
	if !utf8.ValidString(passphrase) || strings.ContainsRune(passphrase, 0) {
		return refuse("The passphrase holds characters that can't be typed.")
	}
	if n := utf8.RuneCountInString(passphrase); n < MinPassphrase {
		return refuse("The passphrase has %d characters; it needs at least %d. Four or five unrelated words do well.", n, MinPassphrase)
	}
	if len(passphrase) > MaxPassphraseBytes {
		return refuse("The passphrase has %d bytes; at most %d are taken.", len(passphrase), MaxPassphraseBytes)
	}
	folded := foldPassphrase(passphrase)
	switch {
	case common()[folded] || common()[strings.TrimRightFunc(folded, unicode.IsDigit)]:
		return refuse("This passphrase is one of the commonly used ones. Choose another.")
	case distinct(folded) < 5 || repeats(folded):
		return refuse("This passphrase repeats a few characters. Choose one that is harder to guess.")
	case slides(folded):
		return refuse("This passphrase follows the alphabet or the keyboard. Choose one that is harder to guess.")
	}
	local, domain, _ := strings.Cut(strings.ToLower(email), "@")
	rest := folded
	for _, part := range []string{domain, local} {
		if part = foldPassphrase(part); len(part) >= 3 {
			rest = strings.ReplaceAll(rest, part, "")
		}
	}
	if rest != folded && len(rest) < 8 {
		return refuse("This passphrase is mostly the e-mail address. Choose another.")
	}
	return nil
}

// foldPassphrase lowers the case and drops what people sprinkle between words.
func foldPassphrase(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, s)
}

func distinct(s string) int {
	seen := map[rune]bool{}
	for _, r := range s {
		seen[r] = true
	}
	return len(seen)
}

// repeats reports whether s is one unit of at most eight characters, again and
// again.
func repeats(s string) bool {
	for unit := 1; unit <= 8 && unit*2 <= len(s); unit++ {
		if s[unit:] == s[:len(s)-unit] {
			return true
		}
	}
	return false
}

func slides(s string) bool {
	covered := 0
	for i := 0; i < len(s); {
		n := longestRun(s[i:])
		if n < 4 {
			i++
			continue
		}
		covered += n
		i += n
	}
	return len(s)-covered < 6 && covered > 0
}

func longestRun(s string) int {
	best := 0
	for _, run := range runs {
		n := best + 1
		for n <= len(s) && strings.Contains(run, s[:n]) {
			best, n = n, n+1
		}
	}
	return best
}
