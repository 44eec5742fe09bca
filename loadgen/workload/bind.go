package workload

import (
	"embed"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

//go:embed sql
var files embed.FS

// text reads an embedded statement; it panics for a name that isn't there, which only a typing error here can cause.
func text(name string) string {
	raw, err := files.ReadFile("sql/" + name + ".sql")
	if err != nil {
		panic(err)
	}
	return strings.TrimSuffix(string(raw), "\n")
}

// texts reads all statements of a folder, ordered by file name.
func texts(dir string) []string {
	entries, err := files.ReadDir("sql/" + dir)
	if err != nil {
		panic(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, text(dir+"/"+strings.TrimSuffix(e.Name(), ".sql")))
	}
	return out
}

var (
	placeholder = regexp.MustCompile(`:(\d+)`)
	number      = regexp.MustCompile(`^-?\d+(\.\d+)?$`)
)

// bind puts literals in place of :1, :2, … as the drivers of the trace did. An argument that is not used is allowed.
func bind(sql string, args ...any) (string, error) {
	var failed error
	bound := placeholder.ReplaceAllStringFunc(sql, func(match string) string {
		n, err := strconv.Atoi(match[1:])
		if err != nil || n < 1 || n > len(args) {
			failed = fmt.Errorf("placeholder %s has no argument: %d are given", match, len(args))
			return match
		}
		literal, err := literalOf(args[n-1])
		if err != nil {
			failed = fmt.Errorf("argument %s: %w", match, err)
		}
		return literal
	})
	return bound, failed
}

func literalOf(arg any) (string, error) {
	switch v := arg.(type) {
	case string:
		return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(v) + "'", nil
	case int:
		return strconv.Itoa(v), nil
	case json.Number:
		if number.MatchString(v.String()) {
			return v.String(), nil
		}
	}
	return "", fmt.Errorf("no literal for %v of type %T", arg, arg)
}

// mustBind is for the statements and arguments of this package, which a test goes through one by one.
func mustBind(sql string, args ...any) string {
	bound, err := bind(sql, args...)
	if err != nil {
		panic(err)
	}
	return bound
}
