package redact

import (
	"strings"
	"testing"
)

func TestText(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, in, want string }{
		{"bearer", "quoted our header back: Bearer Zp4vQm9tLx2sKd7yRb1nHw6c", "quoted our header back: Bearer ‹token›"},
		{"bearer in prose", "bearer token expired is plain prose", ""},
		{"bearer challenge", `WWW-Authenticate: Bearer realm="orders"`, ""},
		{"basic", "Authorization: Basic YWxpY2U6aHVudGVyMg==", "Authorization: Basic ‹token›"},
		{"bare basic", "sent Basic YWxpY2U6aHVudGVyMg== to peer", "sent Basic ‹token› to peer"},
		{"basic in prose", "Basic plan 2024 is over; basic auth failed", ""},
		{"curl", `curl -H "Authorization: Bearer Zp4vQm9tLx2sKd7yRb1nHw6c" https://api.example.test`, `curl -H "Authorization: Bearer ‹token›" https://api.example.test`},
		{"unknown scheme", "Authorization: AWS4-HMAC-SHA256 Credential=AK/1, Signature=fe5f\nHost: x", "Authorization: ‹token›\nHost: x"},
		{"jwt", "cannot verify eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJzdmMifQ.aW52ZW50ZWQ rest", "cannot verify ‹jwt› rest"},
		{"quoted", "token='Zp4v' expired", "token='‹token›' expired"},
		{"unclosed quote", `password='\\\\\\ abc def`, "password='‹password›"},
		{"escaped quote", `password="a\"b c" next`, `password="‹password›" next`},
		{"doubled quote", `Password='a''b c';Server=db`, `Password='‹password›';Server=db`},
		{"ado", "Server=db;User Id=app;Password=p,a;s&s;Encrypt=true", "Server=db;User Id=app;Password=‹password›;Encrypt=true"},
		{"colon", "password: hunter2, user: app", "password: ‹password›, user: app"},
		{"prose", "password: must be longer; token: expired", ""},
		{"hash rocket", `{:password=>"x1 y", "apiKey" => 'k2'}`, `{:password=>"‹password›", "apiKey" => '‹key›'}`},
		{"go struct", "{User:app Password:hunter2}", "{User:app Password:‹password›}"},
		{"json in text", `got {"user":"a","client_secret":"s3","n":1}`, `got {"user":"a","client_secret":"‹secret›","n":1}`},
		{"escaped json", `body {\"password\":\"a b\",\"n\":1}`, `body {\"password\":\"‹password›\",\"n\":1}`},
		{"twice escaped json", `{\\\"password\\\":\\\"a b\\\",\\\"n\\\":1}`, `{\\\"password\\\":\\\"‹password›\\\",\\\"n\\\":1}`},
		{"python repr", "{'api_key': 'pear-Lamp-77'}", "{'api_key': '‹key›'}"},
		{"python bytes", "{'api_key': b'pear-Lamp-77'}", "{'api_key': b'‹key›'}"},
		{"nested value", `secrets={'a': {'b': 1}} next=1`, `secrets=‹secret› next=1`},
		{"flag", "tool --password hunter2 --user app --db-pass=x", "tool --password ‹password› --user app --db-pass=‹password›"},
		{"xml", "<user>app</user><password>hunter2</password>", "<user>app</user><password>‹password›</password>"},
		{"env", "PGPASSWORD=hunter2 PWD=/srv/app", "PGPASSWORD=‹password› PWD=/srv/app"},
		{"camel", "clientSecret=abc dbPassword=def", "clientSecret=‹secret› dbPassword=‹password›"},
		{"two words", "API key: abc123", "API key: ‹key›"},
		{"no value", "password= token: null secret=true", ""},
		{"query", "https://app.example.test/cb?code=Qm3x9LpT&state=ok&access_token=Zk81y", "https://app.example.test/cb?code=‹code›&state=ok&access_token=‹token›"},
		{"form", "grant_type=authorization_code&code=abc&password=x%20y", "grant_type=authorization_code&code=‹code›&password=‹password›"},
		{"code in prose", "exit code=2, code: 17, error_code=5", ""},
		{"userinfo", "postgres://app:hunter2@db.example.test/orders", "postgres://app:‹password›@db.example.test/orders"},
		{"userinfo, odd", "amqp://app:h/u@n#t?er@mq:5672/v dial tcp", "amqp://app:‹password›@mq:5672/v dial tcp"},
		{"userinfo, no user", "redis://:hunter2@cache:6379/0", "redis://:‹password›@cache:6379/0"},
		{"userinfo, token", "clone https://tok3n@git.example.test/a", "clone https://‹token›@git.example.test/a"},
		{"ssh", "ssh://git@git.example.test:22/a", ""},
		{"no scheme", "app:hunter2@tcp(127.0.0.1:3306)/orders", "app:‹password›@tcp(127.0.0.1:3306)/orders"},
		{"cookie line", "Cookie: session=Xy12Qa88LmPz; theme=dark\nHost: a", "Cookie: session=‹cookie›; theme=dark\nHost: a"},
		{"set-cookie", "Set-Cookie: sid=31d4d96e; Path=/; HttpOnly", "Set-Cookie: sid=‹cookie›; Path=/; HttpOnly"},
		{"mail", "no such user lena.hofer@example.com.", "no such user l•••@example.com."},
		{"mail, malformed", "invalid recipient: alex@@example.com", "invalid recipient: a•••@@example.com"},
		{"mail, encoded", "GET https://a.test/p?email=lena.hofer%2Bvip%40example.com&page=2 -> 500", "GET https://a.test/p?email=l•••%40example.com&page=2 -> 500"},
		{"mail, twice encoded", "?to=lena%2540example.com", "?to=l•••%2540example.com"},
		{"mail in path", "https://app.example.test/u/lena.hofer@example.com?sig=9f2c7a11de", "https://app.example.test/u/l•••@example.com?sig=‹signature›"},
		{"not mail", `user @lena said "meet at 10:30@noon" in room a@b`, ""},
		{"not mail either", "icon@2x.png lodash@4.17.21 step@app.js:12:5", ""},
		{"card and cvv", "card 5555 5555 5555 4444 exp 09/29 cvv 123 declined for order 7031908301661318", "card ‹card ••4444› exp 09/29 cvv ‹cvv› declined for order 7031908301661318"},
		{"amex", "378282246310005 and 3782-822463-10005", "‹card ••0005› and ‹card ••0005›"},
		{"iban", "to DE89 3704 0044 0532 0130 00 today", "to ‹iban ••3000› today"},
		{"not cards", "1773852601815 41111111-1111-4111-8111-111111111111 5f36b2ea290645ee34d943220a14b54ee5ea5be5 8264-1993-5181-9093", ""},
		{"decimals", "0.4111111111111111", ""},
		{"private key", "x -----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY----- y", "x ‹private key› y"},
		{"private key, cut", "-----BEGIN PRIVATE KEY-----\nMIIE", "‹private key›"},
		{"certificate", "-----BEGIN CERTIFICATE-----\nMIIE\n-----END CERTIFICATE-----", ""},
		{"known shapes", "ghp_16C7e42F292c6912E7710c838347Ae178B4a sk_live_4eC39HqLyjWDarjtT1zdp7dc AKIAIOSFODNN7EXAMPLE", "‹token› ‹key› ‹key›"},
		{"names", "Token::Invalid idempotency_key=send:1 author=x tokenizer=bpe secretary: Ann primary key: 5", ""},
		{"counts", "max_tokens=512 tokens: 12", ""},
		{"exception", "botocore.ExpiredToken: The security token is expired", ""},
		{"times", "10:30:00 dead at 2026-03-15T01:00:00.123Z", ""},
		{"stack", "  at push.step0(worker/push.go:40)\n  File \"tasks.py\", line 12, in recalc", ""},
		{"pgx", "failed to connect to `user=app database=orders`: 127.0.0.1:5432: server error (SQLSTATE 28P01)", ""},
		{"keyword dsn", "host=db user=app password=hun'ter2 dbname=orders", "host=db user=app password=‹password› dbname=orders"},
		{"jdbc", "jdbc:postgresql://db/orders?user=app&password=hunter2&ssl=true", "jdbc:postgresql://db/orders?user=app&password=‹password›&ssl=true"},
		{"form field", "user[password]=hunter2&user%5Btoken%5D=abc", "user[password]=‹password›&user%5Btoken%5D=‹token›"},
		{"unique violation", "Key (tenant, token)=(7, abc123) already exists; Key (email)=(lena@example.com)", "Key (tenant, token)=‹token› already exists; Key (email)=(l•••@example.com)"},
		{"curl user", "curl -u alice:hunter2 https://a.test; curl --user 'alice:hunter2' x", "curl -u alice:‹password› https://a.test; curl --user 'alice:‹password›' x"},
		{"address as user", "smtp://lena%40example.com:pw@mail.test:587", "smtp://l•••%40example.com:‹password›@mail.test:587"},
		{"spanish", "Contraseña: secreto1", "Contraseña: ‹password›"},
		{"git", "git@git.example.test:org/repo.git", ""},
		{"empty", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			want := tt.want
			if want == "" {
				want = tt.in
			}
			got := Text(tt.in)
			if got != want {
				t.Errorf("Text(%q)\n got %q\nwant %q", tt.in, got, want)
			}
			if again := Text(got); again != got {
				t.Errorf("not stable:\nonce  %q\ntwice %q", got, again)
			}
			if LooksSecret(tt.in) != (want != tt.in) {
				t.Errorf("LooksSecret(%q) = %v", tt.in, LooksSecret(tt.in))
			}
		})
	}
}

func TestTextTooLong(t *testing.T) {
	t.Parallel()
	got := Text(strings.Repeat("a", MaxBytes+1))
	if want := "‹hidden: 16777217 bytes are more than can be checked›"; got != want {
		t.Errorf("got %q, want %q", got[:min(len(got), 80)], want)
	}
}

func TestVisible(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, in, want string }{
		{"plain", "héllo\n\tworld", "héllo\n\tworld"},
		{"nul", "a\x00b", "a␀b"},
		{"colours", "\x1b[1m\x1b[31mFAIL\x1b[0m step \x1b[38;5;214mlint\x1b[0m exit 2", "FAIL step lint exit 2"},
		{"link", "\x1b]8;;http://example.test\x1b\\log\x1b]8;;\x1b\\", "log"},
		{"link ended by bell", "\x1b]8;;http://example.test\alog\x1b]8;;\a", "log"},
		{"open link", "\x1b]8;;http://example.test and more", "8;;http://example.test and more"},
		{"c1", "\u009b31mred\u009b0m", "red"},
		{"bell and query", "x\n\a\x1b[6n", "x\n␇"},
		{"line ends", "a\r\nb\rc\n", "a\nb\nc\n"},
		{"invalid", "a\xffb\xe2\x80", "a\ufffdb\ufffd\ufffd"},
		{"bidi", "a\u202eb\u2066c", "a‹U+202E›b‹U+2066›c"},
		{"invisible", "pass\u200bword\ufeff", "pass‹U+200B›word‹U+FEFF›"},
		{"joiner in emoji", "👩\u200d💻", "👩\u200d💻"},
		{"joiner alone", "a\u200db", "a‹U+200D›b"},
		{"delete", "a\x7f", "a␡"},
		{"escape at end", "a\x1b", "a"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := Visible(tt.in); got != tt.want {
				t.Errorf("Visible(%q) = %q, want %q", tt.in, got, tt.want)
			}
		})
	}
}
