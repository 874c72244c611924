package replay

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/redrive-dlq/redrive/dlq/ledger"
	"github.com/redrive-dlq/redrive/dlq/problem"
	"github.com/redrive-dlq/redrive/rbac"
)

const nonceBytes = 16

// newNonce is a page's right to confirm or approve once. It is signed for this
// person and review, so that making one writes nothing.
func newNonce(ctx context.Context, db ledger.DB, p *rbac.Principal, b batchRow) (string, error) {
	key, err := confirmKey(ctx, db)
	if err != nil {
		return "", err
	}
	once := make([]byte, nonceBytes)
	_, _ = rand.Read(once) // never fails
	return base64.RawURLEncoding.EncodeToString(append(once, signNonce(key, once, p, b)...)), nil
}

func signNonce(key, once []byte, p *rbac.Principal, b batchRow) []byte {
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "redrive confirm v1\n%x\nuser %d batch %d review %s", once, p.UserID, b.ID, b.ReviewHash)
	return mac.Sum(nil)
}

func confirmKey(ctx context.Context, db ledger.DB) (key []byte, err error) {
	if err := db.QueryRow(ctx, `SELECT confirm_key FROM redrive.store`).Scan(&key); err != nil {
		return nil, fmt.Errorf("replay: confirmation key: %w", err)
	}
	return key, nil
}

// useNonce takes a page's right to confirm; it comes back when tx rolls back. A
// token needs none. Errors: Conflict when it was used, or is of another person
// or review.
func useNonce(ctx context.Context, tx pgx.Tx, p *rbac.Principal, b batchRow, nonce string, now time.Time) error {
	if p.TokenID != 0 {
		return nil
	}
	key, err := confirmKey(ctx, tx)
	if err != nil {
		return err
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(nonce)
	if err != nil || len(raw) != nonceBytes+sha256.Size || !hmac.Equal(raw[nonceBytes:], signNonce(key, raw[:nonceBytes], p, b)) {
		return problem.New(problem.Conflict, "This page is of an older review or of somebody else. Nothing was changed; open batch %d and confirm again.", b.ID)
	}
	sum := sha256.Sum256(raw)
	tag, err := tx.Exec(ctx, `
		INSERT INTO redrive.confirmations (nonce_sha256, batch_id, review_hash, user_id, made_at, used_at)
		VALUES ($1, $2, $3, $4, $5, $5)
		ON CONFLICT DO NOTHING`, sum[:], b.ID, b.ReviewHash, p.UserID, now)
	if err != nil {
		return fmt.Errorf("replay: use confirmation: %w", err)
	}
	if tag.RowsAffected() == 0 {
		return problem.New(problem.Conflict, "This page was used already. Nothing was changed; open batch %d to see where it stands.", b.ID)
	}
	return nil
}
