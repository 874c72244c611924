package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/redrive-dlq/redrive/rbac"
)

type userCmd struct {
	Add userAddCmd `cmd:"" help:"Add a person; the passphrase is read from standard input."`
}

type userAddCmd struct {
	Email    string   `arg:"" help:"E-mail address to sign in with."`
	Name     string   `help:"Name to show."`
	Role     []string `help:"viewer, operator, oncall, approver, auditor or admin; may be repeated." required:""`
	Database string   `help:"PostgreSQL address." required:"" env:"REDRIVE_DATABASE_URL"`
}

// Run adds the person.
func (u *userAddCmd) Run(ctx context.Context, log *slog.Logger) error {
	var grants []rbac.Grant
	for _, r := range u.Role {
		if !rbac.Role(r).Valid() {
			return fmt.Errorf("%q is no role; the roles are viewer, operator, oncall, approver, auditor and admin", r)
		}
		grants = append(grants, rbac.Grant{Role: rbac.Role(r)})
	}
	pool, err := open(ctx, u.Database)
	if err != nil {
		return err
	}
	defer pool.Close()
	fmt.Fprint(os.Stderr, "Passphrase (at least 15 characters), then Enter: ")
	line, err := bufio.NewReader(os.Stdin).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read the passphrase: %w", err)
	}
	passphrase := strings.TrimRight(line, "\r\n")
	people := rbac.New(pool, nil, rbac.NewHasher(1))
	id, err := people.CreateUser(ctx, rbac.CommandLine("user-add"), rbac.NewUser{Email: u.Email, Name: u.Name, Passphrase: passphrase, Grants: grants})
	if err != nil {
		return err
	}
	log.InfoContext(ctx, "person added", "id", id, "email", u.Email)
	return nil
}
