package jobtype

import (
	"slices"
	"strconv"
	"strings"
)

func readChecks(v value) []Check {
	var out []Check
	for _, item := range v.items() {
		var c Check
		var sql value
		item.fields(map[string]func(value){
			"name": func(v value) { c.Name = v.text() },
			"sql":  func(v value) { c.SQL, sql = v.text(), v },
			"args": func(v value) { c.Args = v.pointers() },
		})
		switch {
		case c.Name == "" || c.SQL == "":
			item.fault("needs a name and a sql query")
			continue
		case slices.ContainsFunc(out, func(o Check) bool { return o.Name == c.Name }):
			item.fault("check %q stands twice", c.Name)
			continue
		}
		if wrong := queryFault(c.SQL, len(c.Args)); wrong != "" {
			sql.fault("%s", wrong)
			continue
		}
		out = append(out, c)
	}
	return out
}

// queryFault says what is wrong with a check's query, as far as that can be
// seen without a database; that it can't write is the read-only transaction's
// guard, not this.
func queryFault(sql string, args int) string {
	code := outsideQuotes(sql)
	words := strings.Fields(strings.ToLower(code))
	if len(words) == 0 || words[0] != "select" && words[0] != "with" {
		return "must be a query that begins with select or with"
	}
	if before, _ := strings.CutSuffix(strings.TrimSpace(code), ";"); strings.Contains(before, ";") {
		return "must be one statement"
	}
	used := map[int]bool{}
	for i, part := range strings.Split(code, "$") {
		digits := len(part) - len(strings.TrimLeft(part, "0123456789"))
		if i == 0 || digits == 0 {
			continue
		}
		n, err := strconv.Atoi(part[:digits])
		if err != nil || n < 1 || n > args {
			return "uses $" + part[:digits] + ", and args lists " + strconv.Itoa(args)
		}
		used[n] = true
	}
	for n := 1; n <= args; n++ {
		if !used[n] {
			return "doesn't use $" + strconv.Itoa(n) + ", and args lists " + strconv.Itoa(args)
		}
	}
	return ""
}

// outsideQuotes blanks SQL's comments, quoted names and texts.
func outsideQuotes(sql string) string {
	var b strings.Builder
	for len(sql) > 0 {
		n := quotedEnd(sql)
		if n > 0 {
			b.WriteByte(' ')
			sql = sql[n:]
			continue
		}
		b.WriteByte(sql[0])
		sql = sql[1:]
	}
	return b.String()
}

// quotedEnd is the length of the comment or quotation that sql begins with, or
// 0; one that never ends goes to the end.
func quotedEnd(sql string) int {
	open, end := "", ""
	switch {
	case strings.HasPrefix(sql, "--"):
		open, end = "--", "\n"
	case strings.HasPrefix(sql, "/*"):
		open, end = "/*", "*/"
	case sql[0] == '\'' || sql[0] == '"':
		open, end = sql[:1], sql[:1]
	case sql[0] == '$':
		tag := strings.IndexByte(sql[1:], '$')
		if tag < 0 || strings.ContainsAny(sql[1:tag+1], " \t\r\n,;()=<>") || tag > 0 && sql[1] >= '0' && sql[1] <= '9' {
			return 0
		}
		open = sql[:tag+2]
		end = open
	default:
		return 0
	}
	i := strings.Index(sql[len(open):], end)
	if i < 0 {
		return len(sql)
	}
	return len(open) + i + len(end)
}
