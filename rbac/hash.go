package rbac

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"

	"golang.org/x/crypto/argon2"

	"github.com/redrive-dlq/redrive/dlq/problem"
)

// The cost of one hash: OWASP's floor for argon2id (19 MiB, 2 passes, 1 lane).
const (
	hashMemoryKiB = 19 * 1024
	hashPasses    = 2
	hashLanes     = 1
	hashSaltBytes = 16
	hashKeyBytes  = 32

	// maxWaiting bounds how many sign-ins queue for the hasher: beyond it they
	// are refused at once, so that a flood can't hold memory or connections.
	maxWaiting = 64
)

// Hasher makes and checks argon2id hashes of passphrases. A semaphore bounds
// how many run at once: each takes 19 MiB and a core. Safe for concurrent use.
type Hasher struct {
	slots   chan struct{}
	waiting atomic.Int64
	calls   atomic.Int64
	dummy   string // hash of a random passphrase, checked for unknown users
}

// NewHasher returns a hasher that runs at most concurrent hashes at once; 0
// means one for each processor.
func NewHasher(concurrent int) *Hasher {
	if concurrent <= 0 {
		concurrent = runtime.GOMAXPROCS(0)
	}
	h := &Hasher{slots: make(chan struct{}, concurrent)}
	h.dummy = encodePHC(randomBytes(hashSaltBytes), randomBytes(hashKeyBytes))
	return h
}

// Calls counts the argon2 computations so far; tests compare known and unknown
// users by it.
func (h *Hasher) Calls() int64 { return h.calls.Load() }

// Hash returns the PHC string of a passphrase under a fresh salt. It returns
// TooMany when the hasher is overrun.
func (h *Hasher) Hash(ctx context.Context, passphrase string) (string, error) {
	salt := randomBytes(hashSaltBytes)
	key, err := h.run(ctx, passphrase, phc{memory: hashMemoryKiB, passes: hashPasses, lanes: hashLanes, salt: salt, size: hashKeyBytes})
	if err != nil {
		return "", err
	}
	return encodePHC(salt, key), nil
}

// Verify reports whether the passphrase belongs to the encoded hash. An empty
// one, for an unknown user, costs the same work and never matches. It returns
// TooMany when the hasher is overrun, Internal for a hash it can't read.
func (h *Hasher) Verify(ctx context.Context, passphrase, encoded string) (bool, error) {
	known := encoded != ""
	if !known {
		encoded = h.dummy
	}
	p, err := parsePHC(encoded)
	if err != nil {
		return false, problem.Wrap(err, problem.Internal, "The stored passphrase can't be read.")
	}
	key, err := h.run(ctx, passphrase, p)
	if err != nil {
		return false, err
	}
	return subtle.ConstantTimeCompare(key, p.key) == 1 && known, nil
}

func (h *Hasher) run(ctx context.Context, passphrase string, p phc) ([]byte, error) {
	if h.waiting.Add(1) > maxWaiting {
		h.waiting.Add(-1)
		return nil, problem.New(problem.TooMany, "Too many people are signing in right now. Try again in a few seconds.")
	}
	defer h.waiting.Add(-1)
	select {
	case h.slots <- struct{}{}:
		defer func() { <-h.slots }()
	case <-ctx.Done():
		return nil, problem.Wrap(ctx.Err(), problem.Unavailable, "The sign-in took too long. Try again.")
	}
	h.calls.Add(1)
	return argon2.IDKey([]byte(passphrase), p.salt, p.passes, p.memory, p.lanes, p.size), nil
}

// phc is an argon2id PHC string, taken apart.
type phc struct {
	memory, passes uint32
	lanes          uint8
	salt, key      []byte
	size           uint32 // of the key, bytes
}

func encodePHC(salt, key []byte) string {
	b := base64.RawStdEncoding
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version,
		hashMemoryKiB, hashPasses, hashLanes, b.EncodeToString(salt), b.EncodeToString(key))
}

// parsePHC refuses parameters below the floor, and ones so high that a row
// written by somebody else could exhaust the machine.
func parsePHC(s string) (phc, error) {
	parts := strings.Split(s, "$")
	if len(parts) != 6 || parts[0] != "" || parts[1] != "argon2id" || parts[2] != "v="+strconv.Itoa(argon2.Version) {
		return phc{}, fmt.Errorf("rbac: not an argon2id hash of version %d", argon2.Version)
	}
	var p phc
	var lanes uint32
	if n, err := fmt.Sscanf(parts[3], "m=%d,t=%d,p=%d", &p.memory, &p.passes, &lanes); err != nil || n != 3 {
		return phc{}, fmt.Errorf("rbac: hash parameters unreadable")
	}
	if p.memory < hashMemoryKiB || p.passes < hashPasses || lanes < hashLanes ||
		p.memory > 256*1024 || p.passes > 16 || lanes > 16 {
		return phc{}, fmt.Errorf("rbac: hash parameters out of bounds: m=%d,t=%d,p=%d", p.memory, p.passes, lanes)
	}
	p.lanes = uint8(lanes)
	var err error
	if p.salt, err = base64.RawStdEncoding.DecodeString(parts[4]); err != nil || len(p.salt) < hashSaltBytes {
		return phc{}, fmt.Errorf("rbac: hash salt unreadable")
	}
	if p.key, err = base64.RawStdEncoding.DecodeString(parts[5]); err != nil || len(p.key) < hashKeyBytes || len(p.key) > 128 {
		return phc{}, fmt.Errorf("rbac: hash key unreadable")
	}
	p.size = uint32(len(p.key))
	return p, nil
}

// randomBytes returns n bytes of the system's randomness; since Go 1.24 that
// never fails.
func randomBytes(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b)
	return b
}
