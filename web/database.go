package web

import (
	"context"
	"errors"
	"net"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// unavailable reports whether an error says that the database is away, busy or
// slow, so that trying again may help. Classes of SQLSTATE: PostgreSQL,
// appendix A.
func unavailable(err error) bool {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		switch {
		case strings.HasPrefix(pg.Code, "08"), strings.HasPrefix(pg.Code, "53"), strings.HasPrefix(pg.Code, "57"):
			return true // connection, resources, operator intervention (timeouts too)
		case pg.Code == "40001", pg.Code == "40P01", pg.Code == "55P03", pg.Code == "25006":
			return true // serialisation, deadlock, lock not available, read-only standby
		}
		return false
	}
	var connect *pgconn.ConnectError
	var network net.Error
	return errors.As(err, &connect) || errors.As(err, &network) ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) ||
		strings.Contains(err.Error(), "closed pool") || strings.Contains(err.Error(), "conn closed")
}

// bytesInWords writes a limit as people read it: "64 KiB".
func bytesInWords(n int64) string {
	switch {
	case n > 0 && n%(1<<20) == 0:
		return strconv.FormatInt(n>>20, 10) + " MiB"
	case n > 0 && n%(1<<10) == 0:
		return strconv.FormatInt(n>>10, 10) + " KiB"
	}
	return strconv.FormatInt(n, 10) + " bytes"
}
