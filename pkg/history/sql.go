package history

import (
	"embed"
	"encoding/hex"
	"strings"

	"github.com/pointsman/pointsman/pkg/failure"
)

//go:embed sql/*.sql
var statements embed.FS

// statement reads one of the embedded statements. A missing one is a mistake in the program that any test finds.
func statement(name string) string {
	text, err := statements.ReadFile("sql/" + name + ".sql")
	if err != nil {
		panic("history: no statement " + name)
	}
	return strings.TrimSpace(string(text))
}

// stops are the classes of failures after which a run would have taken at least as long as it had run, as an Array(String) parameter.
func stops() string {
	var parts []string
	for _, c := range failure.Classes() {
		if c.StoppedForTime() {
			parts = append(parts, "'"+string(c)+"'")
		}
	}
	return "[" + strings.Join(parts, ",") + "]"
}

// hexList writes texts as an Array(String) parameter, each in hexadecimal: how often a parameter's escapes are taken off depends on
// the protocol, and hexadecimal needs none.
func hexList(texts []string) string {
	parts := make([]string, len(texts))
	for i, s := range texts {
		parts[i] = "'" + hex.EncodeToString([]byte(s)) + "'"
	}
	return "[" + strings.Join(parts, ",") + "]"
}
