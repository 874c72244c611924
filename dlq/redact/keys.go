package redact

import "strings"

// where says in which surroundings a key name was found. The more a place
// looks like data and the less like prose, the more names count as secret.
type where uint8

const (
	inProse  where = iota // word: value
	inAssign              // word=value, "word": value
	inQuery               // ?word=value&
	inKey                 // a JSON key or a header's name
)

// verdict is what a key name says about its value.
type verdict struct {
	kind string
	// plural names ("tokens") often count things: their numbers stay.
	plural bool
	// weak names ("pass", "session") are as often innocent: only their
	// strings are hidden, never numbers or whole objects.
	weak bool
}

// keyTail is how many bytes of a key name are looked at, from its end: the
// last words of a name say what it holds.
const keyTail = 96

// suffixes hide a value wherever the name ends in them, with or without a
// word boundary before (PGPASSWORD, dbpassword, clientSecret, X-Api-Key).
var suffixes = []struct{ name, kind string }{
	{"password", kindPassword}, {"passwd", kindPassword}, {"passphrase", kindPassword},
	{"passwort", kindPassword}, {"contrasena", kindPassword}, {"motdepasse", kindPassword},
	{"passcode", kindPassword}, {"dbpwd", kindPassword}, {"userpwd", kindPassword},
	{"secret", kindSecret}, {"token", kindToken}, {"authorization", kindToken}, {"bearer", kindToken},
	{"apikey", kindKey}, {"accesskey", kindKey}, {"privatekey", kindKey}, {"secretkey", kindKey},
	{"signingkey", kindKey}, {"encryptionkey", kindKey}, {"masterkey", kindKey}, {"accountkey", kindKey},
	{"sharedkey", kindKey}, {"storagekey", kindKey}, {"authkey", kindKey}, {"licensekey", kindKey},
	{"subscriptionkey", kindKey}, {"appkey", kindKey}, {"servicekey", kindKey}, {"sessionkey", kindKey},
	{"cookie", kindCookie}, {"sessionid", kindCookie}, {"sessid", kindCookie},
	{"credential", kindSecret}, {"securitycode", kindCVV}, {"authcode", kindCode},
	{"verificationcode", kindCode}, {"recoverycode", kindCode}, {"backupcode", kindCode},
}

// words hide a value when they are the whole last word of the name, from the
// given place on.
var words = map[string]struct {
	kind string
	from where
	weak bool
}{
	"pwd":       {kindPassword, inProse, false},
	"jwt":       {kindToken, inProse, false},
	"cvv":       {kindCVV, inProse, false},
	"cvc":       {kindCVV, inProse, false},
	"otp":       {kindCode, inAssign, false},
	"totp":      {kindCode, inAssign, false},
	"sig":       {kindSignature, inAssign, false},
	"signature": {kindSignature, inAssign, false},
	"csc":       {kindCVV, inKey, false},
	"pin":       {kindPassword, inKey, false},
	"pass":      {kindPassword, inQuery, true},
	"auth":      {kindToken, inQuery, true},
	"session":   {kindCookie, inQuery, true},
	"sid":       {kindCookie, inQuery, true},
}

// trailers may follow the word that counts: password_hash, tokenValue.
var trailers = map[string]bool{
	"hash": true, "digest": true, "salt": true, "value": true, "plain": true, "plaintext": true,
	"raw": true, "string": true, "encrypted": true, "old": true, "new": true, "confirm": true,
	"confirmation": true, "again": true, "repeat": true, "base64": true, "b64": true, "hex": true,
}

// keyName is a key's name, lower case, without separators, and where its last
// two words start.
type keyName struct {
	buf         [keyTail]byte
	n           int
	last, prior int
}

// judgeKey says whether the value of this key must be hidden.
func judgeKey(key string, at where) (verdict, bool) {
	if len(key) > keyTail {
		key = key[len(key)-keyTail:]
	}
	var k keyName
	k.read(key)
	for {
		k.trimDigits()
		if k.n < 3 {
			return verdict{}, false
		}
		if v, ok := k.judge(at); ok {
			return v, true
		}
		if k.last == 0 || !trailers[string(k.buf[k.last:k.n])] {
			return verdict{}, false
		}
		k.n, k.last, k.prior = k.last, k.prior, 0
		for i := k.last; k.last == k.n && i > 0; i-- {
			k.last = i - 1
		}
	}
}

func (k *keyName) read(key string) {
	for i := range len(key) {
		c := key[i]
		if class[c]&isAlnum == 0 {
			k.boundary()
			continue
		}
		if class[c]&isUpper != 0 {
			lowerBefore := i > 0 && class[key[i-1]]&isUpper == 0
			lowerAfter := i+1 < len(key) && class[key[i+1]]&isLower != 0
			if lowerBefore || lowerAfter && i > 0 {
				k.boundary()
			}
			c += 'a' - 'A'
		}
		k.buf[k.n] = c
		k.n++
	}
	if k.last == k.n {
		k.last = k.prior
	}
}

func (k *keyName) boundary() {
	if k.n > k.last {
		k.prior, k.last = k.last, k.n
	}
}

func (k *keyName) trimDigits() {
	for k.n > 0 && class[k.buf[k.n-1]]&isDigit != 0 {
		k.n--
	}
	if k.n == k.last {
		k.last = k.prior
	}
}

func (k *keyName) judge(at where) (verdict, bool) {
	plural := false
	n := k.n
	if n > 4 && k.buf[n-1] == 's' && k.buf[n-2] != 's' {
		n, plural = n-1, true
	}
	// The last byte decides first: it keeps most names away from the list.
	switch k.buf[n-1] {
	case 'd', 'e', 't', 'n', 'y', 'a', 'l', 'r':
		name := k.buf[:n]
		for _, s := range suffixes {
			if len(s.name) <= n && string(name[n-len(s.name):]) == s.name {
				return verdict{kind: s.kind, plural: plural}, !k.excused(s.name)
			}
		}
	}
	w, ok := words[string(k.buf[k.last:k.n])]
	if !ok {
		return verdict{}, false
	}
	if at >= inAssign && k.last > 0 && w.kind == kindPassword {
		return verdict{kind: kindPassword}, true // db_pass, SMTP_PASS, card-pin
	}
	if at < w.from {
		return verdict{}, false
	}
	return verdict{kind: w.kind, weak: w.weak}, true
}

// excused knows the few names that end in a telling word and hold none.
func (k *keyName) excused(suffix string) bool {
	name := string(k.buf[:k.n])
	switch suffix {
	case "bearer":
		return name != "bearer" // "standardbearer", token holders
	case "token":
		return strings.HasSuffix(name, "unexpectedtoken")
	}
	return false
}
