package redact

import "strings"

// digits looks at the group of digits that starts at i. It hides a payment
// card: 13 to 19 digits of a known issuer with a right check digit, in one
// piece or in the groups that are printed on cards. The last four stay.
func (s *scanner) digits(i int) int {
	in := s.in
	first := i
	for first < len(in) && class[in[first]]&isDigit != 0 {
		first++
	}
	if i > 0 {
		switch p := in[i-1]; {
		case class[p]&isAlnum != 0, p == '_':
			if !escapedBefore(in, i) {
				return first // part of a word: a hash, an id
			}
		case p == '.' && i > 1 && class[in[i-2]]&isDigit != 0:
			return first // decimals
		}
	}
	var buf [19]byte
	n, end := 0, i
	groups := [5]int{}
	for g := 0; g < len(groups) && end < len(in); g++ {
		from := end
		for end < len(in) && class[in[end]]&isDigit != 0 && n < len(buf) {
			buf[n] = in[end]
			n++
			end++
		}
		groups[g] = end - from
		if groups[g] == 0 || end < len(in) && (class[in[end]]&isAlnum != 0 || in[end] == '_') {
			break
		}
		if n >= 13 && grouped(groups[:g+1]) && isCard(string(buf[:n])) {
			s.hide(i, end, "‹card ••"+string(buf[n-4:n])+"›")
			return end
		}
		if end+1 >= len(in) || in[end] != ' ' && in[end] != '-' && in[end] != '+' || class[in[end+1]]&isDigit == 0 {
			break
		}
		if groups[g] > 6 {
			break
		}
		end++
	}
	return first
}

// grouped reports whether digits in groups of these lengths can be a card's.
func grouped(g []int) bool {
	switch len(g) {
	case 1:
		return true
	case 3:
		return g[0] == 4 && g[1] == 6 && (g[2] == 4 || g[2] == 5)
	case 4:
		return g[0] == 4 && g[1] == 4 && g[2] == 4 && g[3] >= 1 && g[3] <= 4
	case 5:
		return g[0] == 4 && g[1] == 4 && g[2] == 4 && g[3] == 4 && g[4] <= 3
	}
	return false
}

func isCard(d string) bool { return issued(d) && luhn(d) }

// issued reports whether an issuer numbers cards of this length so.
func issued(d string) bool {
	n := len(d)
	p2, p3, p4 := num(d[:2]), num(d[:3]), num(d[:4])
	switch {
	case d[0] == '4':
		return n == 13 || n == 16 || n == 19 // Visa
	case p2 >= 51 && p2 <= 55, p4 >= 2221 && p4 <= 2720:
		return n == 16 // Mastercard
	case p4 >= 2200 && p4 <= 2204:
		return n >= 16 // Mir
	case p2 == 34 || p2 == 37:
		return n == 15 // American Express
	case p3 >= 300 && p3 <= 305, p2 == 36, p2 == 38, p2 == 39:
		return n == 14 || n == 16 // Diners Club
	case p4 >= 3528 && p4 <= 3589:
		return n >= 16 // JCB
	case p4 == 6011, p3 >= 644 && p3 <= 649, p2 == 65, p2 == 62:
		return n >= 16 // Discover, UnionPay
	case strings.Contains("5018 5020 5038 5893 6304 6759 6761 6762 6763", d[:4]):
		return n >= 13 // Maestro
	}
	return false
}

func num(d string) (n int) {
	for i := range len(d) {
		n = n*10 + int(d[i]-'0')
	}
	return n
}

func luhn(d string) bool {
	sum := 0
	for i := range len(d) {
		v := int(d[len(d)-1-i] - '0')
		if i%2 == 1 {
			if v *= 2; v > 9 {
				v -= 9
			}
		}
		sum += v
	}
	return sum%10 == 0
}

// ibanLengths are the lengths of the IBAN registry (ISO 13616), by country.
var ibanLengths = map[string]int{
	"AD": 24, "AE": 23, "AL": 28, "AT": 20, "AZ": 28, "BA": 20, "BE": 16, "BG": 22, "BH": 22, "BR": 29, "CH": 21,
	"CR": 22, "CY": 28, "CZ": 24, "DE": 22, "DK": 18, "DO": 28, "EE": 20, "EG": 29, "ES": 24, "FI": 18, "FO": 18,
	"FR": 27, "GB": 22, "GE": 22, "GI": 23, "GL": 18, "GR": 27, "GT": 28, "HR": 21, "HU": 28, "IE": 22, "IL": 23,
	"IQ": 23, "IS": 26, "IT": 27, "JO": 30, "KW": 30, "KZ": 20, "LB": 28, "LC": 32, "LI": 21, "LT": 20, "LU": 20,
	"LV": 21, "MC": 27, "MD": 24, "ME": 22, "MK": 19, "MR": 27, "MT": 31, "MU": 30, "NL": 18, "NO": 15, "PK": 24,
	"PL": 28, "PS": 29, "PT": 25, "QA": 29, "RO": 24, "RS": 22, "SA": 24, "SC": 31, "SE": 24, "SI": 19, "SK": 24,
	"SM": 27, "TN": 24, "TR": 26, "UA": 29, "VA": 22, "VG": 24, "XK": 20,
}

// iban hides an account number with a right check sum that starts at i.
func (s *scanner) iban(i int) int {
	in := s.in
	want := ibanLengths[in[i:i+2]]
	if want == 0 {
		return i + 1
	}
	var buf [34]byte
	n, end := 0, i
	for end < len(in) && n < want {
		switch {
		case class[in[end]]&(isUpper|isDigit) != 0:
			buf[n] = in[end]
			n++
		case in[end] == ' ' && n > 0 && n%4 == 0 && in[end-1] != ' ':
		default:
			return i + 1
		}
		end++
	}
	if n < want || end < len(in) && class[in[end]]&isAlnum != 0 || !mod97(buf[:n]) {
		return i + 1
	}
	s.hide(i, end, "‹iban ••"+string(buf[n-4:n])+"›")
	return end
}

func mod97(b []byte) bool {
	rem := 0
	for k := range len(b) {
		c := b[(k+4)%len(b)]
		if class[c]&isDigit != 0 {
			rem = (rem*10 + int(c-'0')) % 97
		} else {
			rem = (rem*100 + int(c-'A') + 10) % 97
		}
	}
	return rem == 1
}
