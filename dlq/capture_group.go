package dlq

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/redrive-dlq/redrive/dlq/failure"
)

const foldVersion = 1

func fingerprint(jobType string, f failure.Failure) (string, string) {
	sum := sha256.Sum256([]byte(jobType + "\x00" + f.RootClass() + "\x00" + f.RootMessage()))
	return hex.EncodeToString(sum[:16]), f.RootMessage()
}
