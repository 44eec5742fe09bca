package replay

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// Text renders the report for a terminal.
func (r Report) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n%s\n", r.subject(), r.headline())
	writeRows(&b, table{left: 1, rows: r.kinds().rows})
	for i, c := range r.PolicyChanges {
		if i == 0 {
			b.WriteString("\nWhat the policies say differently\n")
		}
		fmt.Fprintf(&b, "  %s\n", clean(c))
	}
	for _, t := range r.tables() {
		fmt.Fprintf(&b, "\n%s\n", t.title)
		writeRows(&b, table{left: t.left, rows: append([][]string{t.head}, t.rows...)})
		if t.more > 0 {
			fmt.Fprintf(&b, "  and %d more\n", t.more)
		}
	}
	if e := r.Expected; e != nil {
		fmt.Fprintf(&b, "\nWhat the decisions themselves expect (%s routed both times)\n", count(e.N))
		writeRows(&b, table{left: 1, rows: e.rows()})
	}
	for i, s := range r.Samples {
		if i == 0 {
			b.WriteString("\nIn words\n")
		}
		fmt.Fprintf(&b, "  %d. %s\n     before: %s\n     after:  %s\n", i+1, s.title(), answerWords(s.Before), answerWords(s.After))
		for _, w := range s.Why {
			fmt.Fprintf(&b, "     - %s\n", clean(w))
		}
	}
	for i, n := range r.notes() {
		if i == 0 {
			b.WriteString("\nNotes\n")
		}
		fmt.Fprintf(&b, "  %s\n", n)
	}
	return b.String()
}

func (e *Expected) rows() [][]string {
	return [][]string{
		{"", "before", "after"},
		{"SLA met", Percent(e.HitBefore), Percent(e.HitAfter)},
		{"mean cost", fmt.Sprintf("%.4g", e.CostBefore), fmt.Sprintf("%.4g", e.CostAfter)},
	}
}

func (s Sample) title() string {
	var parts []string
	if len(s.Facts) > 0 {
		parts = append(parts, strings.Join(s.Facts, ", "))
	} else {
		parts = append(parts, fmt.Sprintf("Task %s, attempt %d", s.TaskID, s.Attempt))
		if s.Tenant != "" {
			parts = append(parts, "tenant "+s.Tenant)
		}
		if s.Statement != "" {
			parts = append(parts, what(s.Statement, s.Tables))
		}
		parts = append(parts, s.At.UTC().Format("15:04:05.000"))
	}
	text := strings.Join(parts, ", ")
	if s.Like > 1 {
		text += fmt.Sprintf(" (and %s more like it)", count(s.Like-1))
	}
	return clean(text)
}

// writeRows aligns words to the left and numbers to the right.
func writeRows(b *strings.Builder, t table) {
	var widths []int
	for _, row := range t.rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range t.rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if cells[i] = pad + cell; i < t.left {
				cells[i] = cell + pad
			}
		}
		b.WriteString(strings.TrimRight("  "+strings.Join(cells, "  "), " ") + "\n")
	}
}

// Markdown renders the report for a pull request.
func (r Report) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "### %s\n\n%s.\n\n", r.headline(), r.subject())
	writeMarkdown(&b, r.kinds())
	if len(r.PolicyChanges) > 0 {
		b.WriteString("\n```diff\n")
		for _, c := range r.PolicyChanges {
			b.WriteString(strings.ReplaceAll(clean(c), "```", "` ` `") + "\n")
		}
		b.WriteString("```\n")
	}
	for i, t := range r.tables() {
		// The first two say what happens; who it happens to is for those who ask.
		if i < 2 {
			fmt.Fprintf(&b, "\n**%s**\n\n", t.title)
			writeMarkdown(&b, t)
			continue
		}
		fmt.Fprintf(&b, "\n<details><summary>%s</summary>\n\n", t.title)
		writeMarkdown(&b, t)
		if t.more > 0 {
			fmt.Fprintf(&b, "\nand %d more\n", t.more)
		}
		b.WriteString("\n</details>\n")
	}
	if e := r.Expected; e != nil {
		fmt.Fprintf(&b, "\n**What the decisions themselves expect** (%s routed both times)\n\n", count(e.N))
		rows := e.rows()
		writeMarkdown(&b, table{head: rows[0], rows: rows[1:], left: 1})
	}
	for i, s := range r.Samples {
		if i == 0 {
			b.WriteString("\n**In words**\n\n")
		}
		fmt.Fprintf(&b, "%d. %s\n   - before: %s\n   - after: %s\n", i+1, escape(s.title()), escape(answerWords(s.Before)), escape(answerWords(s.After)))
		for _, w := range s.Why {
			fmt.Fprintf(&b, "   - %s\n", escape(clean(w)))
		}
	}
	for i, n := range r.notes() {
		if i == 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "> - %s\n", n)
	}
	return b.String()
}

func writeMarkdown(b *strings.Builder, t table) {
	line := func(cells []string) {
		b.WriteString("|")
		for _, c := range cells {
			b.WriteString(" " + escape(c) + " |")
		}
		b.WriteString("\n")
	}
	line(t.head)
	b.WriteString("|")
	for i := range t.head {
		if i < t.left {
			b.WriteString("---|")
		} else {
			b.WriteString("---:|")
		}
	}
	b.WriteString("\n")
	for _, row := range t.rows {
		line(row)
	}
}

// escape keeps names that producers chose from being read as markup.
func escape(s string) string {
	return strings.NewReplacer("|", `\|`, "<", "&lt;", ">", "&gt;", "`", "\\`", "*", `\*`, "_", `\_`, "[", `\[`, "@", "&#64;").Replace(s)
}

func sortedKeys(m map[string]int) []string { return slices.Sorted(maps.Keys(m)) }
