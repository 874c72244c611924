package replay

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/redrive-dlq/redrive/dlq/jobtype"
)

const (
	// checkTimeout bounds one query of a check, in milliseconds.
	checkTimeout = 2000
	// checkTimeouts is how many queries of a part may run into it before the
	// rest is left unchecked.
	checkTimeouts = 3
	// checkBudget is how long the checks of a part may take together: the plan's
	// transaction waits for them, and whoever wants to cancel it for that.
	checkBudget = 8 * time.Second
	// checkGroup is how many queries one transaction asks: what it answered stays
	// when the time is up.
	checkGroup = 50
)

// judgeChecks runs the type's declared checks for all that are still eligible:
// read-only queries in the environment's own database.
func (s *Service) judgeChecks(ctx context.Context, j judging, payloads [][]byte, out []Verdict, places []int) error {
	if len(j.Type.Checks) == 0 {
		return nil
	}
	var pool *pgxpool.Pool
	if s.CheckDB != nil {
		pool = s.CheckDB(j.Environment)
	}
	c := checker{pool: pool, until: time.Now().Add(checkBudget)}
	for _, check := range j.Type.Checks {
		var of []int
		var args [][]any
		for _, i := range places {
			if out[i].Code != Eligible {
				continue
			}
			if pool == nil {
				out[i] = Verdict{Code: DependencyUnchecked, Lift: LiftConfigure,
					Detail: fmt.Sprintf("The check %q can't run: this console has no database to ask in %s.", check.Name, j.Environment)}
				continue
			}
			of, args = append(of, i), append(args, checkArgs(check, payloads[i]))
		}
		found, err := c.run(ctx, check, args)
		if err != nil {
			return err
		}
		for n, i := range of {
			switch found[n] {
			case checkEmpty:
				out[i] = Verdict{Code: DependencyMissing, Lift: LiftCreate,
					Detail: fmt.Sprintf("The check %q found nothing: what this job needs isn't there. Create it, or discard the job.", check.Name)}
			case checkFailed:
				out[i] = Verdict{Code: DependencyUnchecked, Lift: LiftConfigure,
					Detail: fmt.Sprintf("The check %q gave no answer for this job: it failed, or was too slow.", check.Name)}
			}
		}
	}
	return nil
}

// checkAnswer is what a check says of one job.
type checkAnswer int

const (
	checkEmpty checkAnswer = iota
	checkFound
	checkFailed
)

// checker runs checks in one database.
type checker struct {
	pool     *pgxpool.Pool
	timeouts int
	until    time.Time // later nothing is asked any more
}

// run asks for many jobs, a group at a time.
func (c *checker) run(ctx context.Context, check jobtype.Check, args [][]any) ([]checkAnswer, error) {
	out := make([]checkAnswer, 0, len(args))
	for group := range slices.Chunk(args, checkGroup) {
		answers, err := c.group(ctx, check, group)
		if err != nil {
			return nil, err
		}
		out = append(out, answers...)
	}
	return out, nil
}

// group asks for some jobs in one read-only transaction. When one of them makes
// it fail, the halves are asked apart, so that one bad job harms only itself.
func (c *checker) group(ctx context.Context, check jobtype.Check, args [][]any) ([]checkAnswer, error) {
	out := make([]checkAnswer, len(args))
	if c.timeouts >= checkTimeouts || !time.Now().Before(c.until) {
		return allFailed(out), nil
	}
	err := c.ask(ctx, check, args, out)
	var pg *pgconn.PgError
	switch {
	case err == nil:
		return out, nil
	case ctx.Err() == nil && !time.Now().Before(c.until):
		return allFailed(out), nil
	case !errors.As(err, &pg):
		return nil, fmt.Errorf("replay: check %q: %w", check.Name, err)
	case pg.Code == "57014":
		c.timeouts++
	}
	if len(args) == 1 {
		out[0] = checkFailed
		return out, nil
	}
	half := len(args) / 2
	for _, part := range []struct{ from, to int }{{0, half}, {half, len(args)}} {
		answers, err := c.group(ctx, check, args[part.from:part.to])
		if err != nil {
			return nil, err
		}
		copy(out[part.from:], answers)
	}
	return out, nil
}

func allFailed(out []checkAnswer) []checkAnswer {
	for i := range out {
		out[i] = checkFailed
	}
	return out
}

// errAsked ends the transaction of a check: it is never committed, so that
// nothing that a check sets for its session outlives it.
var errAsked = errors.New("asked")

func (c *checker) ask(ctx context.Context, check jobtype.Check, args [][]any, out []checkAnswer) error {
	ctx, cancel := context.WithDeadline(ctx, c.until)
	defer cancel()
	err := pgx.BeginTxFunc(ctx, c.pool, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SET LOCAL statement_timeout = `+strconv.Itoa(checkTimeout)); err != nil {
			return err
		}
		if err := readOnlyRole(ctx, tx); err != nil {
			return err
		}
		batch := &pgx.Batch{}
		sql := "SELECT EXISTS (" + strings.TrimRight(strings.TrimSpace(check.SQL), ";") + "\n)"
		for i, a := range args {
			batch.Queue(sql, a...).QueryRow(func(row pgx.Row) error {
				var found bool
				if err := row.Scan(&found); err != nil {
					return err
				}
				if found {
					out[i] = checkFound
				} else {
					out[i] = checkEmpty
				}
				return nil
			})
		}
		if err := tx.SendBatch(ctx, batch).Close(); err != nil {
			return err
		}
		return errAsked
	})
	if errors.Is(err, errAsked) {
		return nil
	}
	return err
}

// readOnlyRole takes the rights to write from a superuser, whom a read-only
// transaction alone holds back from tables but not from files and programs.
func readOnlyRole(ctx context.Context, tx pgx.Tx) error {
	var super bool
	if err := tx.QueryRow(ctx, `SELECT current_setting('is_superuser') = 'on'`).Scan(&super); err != nil || !super {
		return err
	}
	_, err := tx.Exec(ctx, `SET LOCAL ROLE pg_read_all_data`)
	return err
}

// checkArgs are the check's parameters out of a payload, as text that keeps
// numbers exact; what isn't there, or null, is NULL.
func checkArgs(check jobtype.Check, payload []byte) []any {
	d := json.NewDecoder(bytes.NewReader(payload))
	d.UseNumber()
	var document any
	_ = d.Decode(&document) // what is no JSON has no places: all its arguments are NULL
	args := make([]any, len(check.Args))
	for i, pointer := range check.Args {
		args[i] = argument(document, pointer)
	}
	return args
}

func argument(document any, pointer string) any {
	at := document
	for _, part := range strings.Split(pointer, "/")[1:] {
		part = strings.ReplaceAll(strings.ReplaceAll(part, "~1", "/"), "~0", "~")
		switch v := at.(type) {
		case map[string]any:
			at = v[part]
		case []any:
			n, err := strconv.Atoi(part)
			if err != nil || n < 0 || n >= len(v) {
				return nil
			}
			at = v[n]
		default:
			return nil
		}
	}
	switch v := at.(type) {
	case nil:
		return nil
	case string:
		return v
	case json.Number:
		return v.String()
	case bool:
		return strconv.FormatBool(v)
	}
	text, err := json.Marshal(at)
	if err != nil {
		return nil
	}
	return string(text)
}
