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
	"confirmation": true, "again": true, "repeat": true, "base64": true, "hex": true,
}

// endings holds the last two letters of every name above, also in the plural:
// most keys are told innocent by them alone.
var endings = func() (t [26 * 26]bool) {
	add := func(name string) {
		name = strings.TrimRight(name, "0123456789")
		n := len(name)
		t[int(name[n-2]-'a')*26+int(name[n-1]-'a')] = true
		t[int(name[n-1]-'a')*26+int('s'-'a')] = true
	}
	for _, s := range suffixes {
		add(s.name)
	}
	for w := range words {
		add(w)
	}
	for w := range trailers {
		add(w)
	}
	return t
}()

// mayTell reports whether a name is worth a closer look.
func mayTell(key string) bool {
	var last byte
	for i := len(key) - 1; i >= 0; i-- {
		c := key[i]
		if enye(key, i-1) {
			c = 'n'
		} else if class[c]&(isUpper|isLower) == 0 {
			continue // digits and separators between don't count
		}
		c |= 0x20
		if last == 0 {
			last = c
			continue
		}
		return endings[int(c-'a')*26+int(last-'a')]
	}
	return false
}

// keyName is a key's name, lower case, without separators, and where its words
// start.
type keyName struct {
	buf    [keyTail]byte
	n      int
	starts [keyTail]uint8
	count  int
}

// last is where the last word starts.
func (k *keyName) last() int {
	for k.count > 0 && int(k.starts[k.count-1]) >= k.n {
		k.count--
	}
	if k.count == 0 {
		return 0
	}
	return int(k.starts[k.count-1])
}

// judgeKey says whether the value of this key must be hidden.
func judgeKey(key string, at where) (verdict, bool) {
	if len(key) > keyTail {
		key = key[len(key)-keyTail:]
	}
	if !mayTell(key) {
		return verdict{}, false
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
		last := k.last()
		if last == 0 || !trailers[string(k.buf[last:k.n])] {
			return verdict{}, false
		}
		k.n = last
	}
}

func (k *keyName) read(key string) {
	for i := range len(key) {
		c := key[i]
		switch {
		case enye(key, i):
			continue
		case enye(key, i-1):
			c = 'n'
		case class[c]&isAlnum == 0:
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
}

// enye reports whether an ñ stands at i: contraseña is read as contrasena.
func enye(key string, i int) bool {
	return i >= 0 && i+1 < len(key) && key[i] == 0xc3 && (key[i+1] == 0xb1 || key[i+1] == 0x91)
}

func (k *keyName) boundary() {
	if k.n > 0 && (k.count == 0 || int(k.starts[k.count-1]) < k.n) {
		k.starts[k.count] = uint8(k.n)
		k.count++
	}
}

func (k *keyName) trimDigits() {
	for k.n > 0 && class[k.buf[k.n-1]]&isDigit != 0 {
		k.n--
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
	last := k.last()
	w, ok := words[string(k.buf[last:k.n])]
	if !ok {
		return verdict{}, false
	}
	if at >= inAssign && last > 0 && w.kind == kindPassword {
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
