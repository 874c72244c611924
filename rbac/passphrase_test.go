package rbac_test

import (
	"context"
	"strings"
	"testing"

	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/rbac"
)

func TestCheckPassphrase(t *testing.T) {
	t.Parallel()
	good := []string{
		"walnut harbour violin sky", "x7#Kq9!mZ2$vB5&n", "наш пароль очень длинный", strings.Repeat("k9 plum! ", 8) + "end of it",
		strings.Repeat("walnut harbour ", 40),
	}
	for _, p := range good[:4] {
		if err := rbac.CheckPassphrase(p, "kim@example.com"); err != nil {
			t.Errorf("%q was refused: %v", p, err)
		}
	}
	bad := []string{
		"", "short", "fourteen chars", "passwordpassword", "Password-Password-1", "correct horse battery staple",
		"Correct Horse Battery Staple 99", "aaaaaaaaaaaaaaaaaa", "abababababababab", "123456789012345678",
		"qwertyuiopasdfgh", "abcdefghijklmnopqrst", "kimkimkimkimkim", "verylonglocalpart123", strings.Repeat("x", 2000),
		"nul in the\x00 middle of", "broken \xff utf eight text", rbac.DemoPassphrase,
	}
	for _, p := range bad {
		err := rbac.CheckPassphrase(p, "verylonglocalpart@example.com")
		if !problem.Is(err, problem.Invalid) {
			t.Errorf("%q was taken", p)
			continue
		}
		if len(p) > 5 && strings.Contains(err.Error(), p) {
			t.Errorf("the answer repeats the passphrase: %v", err)
		}
	}
}

func TestHashParametersAndVerify(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	h := rbac.NewHasher(2)
	encoded, err := h.Hash(ctx, passphrase)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(encoded, "$argon2id$v=19$m=19456,t=2,p=1$") {
		t.Errorf("parameters below the floor: %s", encoded)
	}
	again, err := h.Hash(ctx, passphrase)
	if err != nil || again == encoded {
		t.Errorf("two hashes share a salt: %v", err)
	}
	for pass, want := range map[string]bool{passphrase: true, passphrase + " ": false, "": false} {
		if got, err := h.Verify(ctx, pass, encoded); err != nil || got != want {
			t.Errorf("Verify(%q) = %v, %v; want %v", pass, got, err, want)
		}
	}
	before := h.Calls()
	if ok, err := h.Verify(ctx, passphrase, ""); ok || err != nil {
		t.Errorf("an unknown user matched: %v, %v", ok, err)
	}
	if h.Calls() != before+1 {
		t.Error("an unknown user cost no hash")
	}
	weak := strings.Replace(encoded, "m=19456", "m=64", 1)
	huge := strings.Replace(encoded, "m=19456", "m=4000000", 1)
	for _, hash := range []string{"x", "$argon2i$v=19$m=19456,t=2,p=1$a$b", weak, huge} {
		if _, err := h.Verify(ctx, passphrase, hash); !problem.Is(err, problem.Internal) {
			t.Errorf("hash %q was used: %v", hash, err)
		}
	}
}

func TestHasherStopsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	h := rbac.NewHasher(1)
	refused := 0
	for range 50 {
		if _, err := h.Hash(ctx, passphrase); problem.Is(err, problem.Unavailable) {
			refused++
		}
	}
	if refused == 0 {
		t.Error("a request that ended still got hashes every time")
	}
}
