package group

import "strings"

func space(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

func digit(c byte) bool { return c >= '0' && c <= '9' }

func letter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

func hexLetter(c byte) bool { return c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F' }

// wordByte is part of a word: letters, digits, _ and everything beyond ASCII
// (which holds the guillemets of marks too; the caller looks for those first).
func wordByte(c byte) bool { return letter(c) || digit(c) || c == '_' || c >= 0x80 }

// wordEnd returns the end of the token at i: word characters, and - . : + @ /
// between them only where they hold an address, a time, a UUID or a number
// together.
func wordEnd(in string, i int) int {
	end := i
	for end < len(in) && !strings.HasPrefix(in[end:], "‹") {
		c := in[end]
		if wordByte(c) {
			end++
			continue
		}
		if strings.IndexByte("-.:+@%", c) < 0 || end+1 >= len(in) {
			break
		}
		next := in[end+1]
		// name@example..com: a broken address is the typical subject of the error.
		dots := c == '.' && next == '.' && strings.IndexByte(in[i:end], '@') >= 0
		if !wordByte(next) && next != '@' && !dots {
			break
		}
		end++
	}
	return end
}

// isTime reports whether a token is a date, with or without a time.
func isTime(t string) bool {
	return len(t) >= 10 && allIn(t[:4], digit) && t[4] == '-' && digit(t[5]) && digit(t[6]) && t[7] == '-' && digit(t[8]) && digit(t[9])
}

// isID reports whether a token is an id rather than words: a UUID, an address
// in memory, hexadecimal digits, a number in pieces (an address, a version), or
// a mixture of letters and digits that no word has.
func isID(t string) bool {
	switch {
	case len(t) > 2 && t[0] == '0' && (t[1] == 'x' || t[1] == 'X') && allIn(t[2:], isHex):
		return true
	case isUUID(t):
		return true
	}
	digits, letters, hexed, runs, upper, lower := 0, 0, 0, 0, 0, 0
	for i := range len(t) {
		switch c := t[i]; {
		case digit(c):
			digits++
			if i == 0 || !digit(t[i-1]) {
				runs++
			}
		case letter(c):
			letters++
			if hexLetter(c) {
				hexed++
			}
			if c <= 'Z' {
				upper++
			} else {
				lower++
			}
		case strings.IndexByte(".:,", c) >= 0:
			if letters > 0 {
				return false
			}
		default:
			return false
		}
	}
	switch {
	case digits == 0:
		return false
	case letters == 0:
		return runs > 1 // 127.0.0.1:5432; a plain number is folded as one
	case letters == hexed && len(t) >= 8:
		return true
	case strings.ContainsAny(t, ".:,"):
		return false
	}
	return len(t) >= 10 && (runs >= 2 && digits*4 >= len(t)/2 || runs >= 1 && upper > 1 && lower > 1 && digits > 1)
}

func isHex(c byte) bool { return digit(c) || hexLetter(c) }

func isUUID(t string) bool {
	if len(t) != 36 {
		return false
	}
	for i := range len(t) {
		if dash := i == 8 || i == 13 || i == 18 || i == 23; dash != (t[i] == '-') || !dash && !isHex(t[i]) {
			return false
		}
	}
	return true
}

func allIn(s string, in func(byte) bool) bool {
	for i := range len(s) {
		if !in(s[i]) {
			return false
		}
	}
	return s != ""
}
