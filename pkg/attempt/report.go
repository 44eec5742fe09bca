package attempt

import (
	"fmt"
	"slices"
	"strings"
)

// Report writes the machine as Markdown: a diagram, each transition with its reason, and per state the events that are
// handled and those that are missing, so that a forgotten pair is seen in review.
func Report() string {
	var b strings.Builder
	b.WriteString("# State machines\n\nGenerated from the tables by `go generate ./pkg/attempt`; a test compares this page with them.\n\n## An attempt\n\n")
	b.WriteString("```mermaid\nstateDiagram-v2\n  [*] --> " + string(Start) + "\n")
	for _, from := range states {
		for _, to := range states {
			if labels := labels(from, to); len(labels) > 0 {
				fmt.Fprintf(&b, "  %s --> %s: %s\n", from, to, strings.Join(labels, ", "))
			}
		}
		if from.Terminal() {
			fmt.Fprintf(&b, "  %s --> [*]\n", from)
		}
	}
	b.WriteString("```\n\n`abandoned` leads from every state that is no end to itself and is left out of the picture: the next owner goes on from the ledger.\n")
	b.WriteString("\n### Transitions\n\n| state | event | next | effects | why |\n| --- | --- | --- | --- | --- |\n")
	for _, s := range states {
		for _, e := range events {
			if t, ok := table[s][e]; ok {
				fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", s, e, t.Next, join(t.Do), t.Why)
			}
		}
	}
	b.WriteString("\n### Handled and missing pairs\n\nA missing pair is an error of the program, not of a Task: it is counted, and the attempt is handed to its next owner.\n")
	for _, s := range states {
		var handled, missing []string
		for _, e := range events {
			if _, ok := table[s][e]; ok {
				handled = append(handled, string(e))
			} else {
				missing = append(missing, string(e))
			}
		}
		fmt.Fprintf(&b, "\n**%s**\n", s)
		if s.Terminal() {
			b.WriteString("- an end: it takes no event\n")
			continue
		}
		fmt.Fprintf(&b, "- handled: %s\n- missing: %s\n", strings.Join(handled, ", "), strings.Join(missing, ", "))
	}
	return b.String()
}

func labels(from, to State) []string {
	var out []string
	for _, e := range events {
		if t, ok := table[from][e]; ok && t.Next == to && e != Abandoned {
			out = append(out, string(e))
		}
	}
	return slices.Clip(out)
}

func join(do []Effect) string {
	out := make([]string, len(do))
	for i, e := range do {
		out[i] = string(e)
	}
	return strings.Join(out, ", ")
}
