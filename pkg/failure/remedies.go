package failure

import (
	"fmt"
	"strings"

	"github.com/pointsman/pointsman/pkg/event"
)

// Remedies writes what follows each class as a Markdown table, for docs/execution.md.
func Remedies() string {
	var b strings.Builder
	b.WriteString("| class | a read | a write that was not sent | a write that was | why |\n| --- | --- | --- | --- | --- |\n")
	for _, c := range classes {
		r := advice[c]
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", c, listed(r.read), listed(r.unsentWrite), listed(r.sentWrite), r.why)
	}
	return b.String()
}

func listed(list []event.Remedy) string {
	if len(list) == 0 {
		return "fail"
	}
	words := make([]string, len(list))
	for i, r := range list {
		words[i] = string(r)
	}
	return strings.Join(words, ", ")
}
