package replay

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/pointsman/pointsman/pkg/event"
)

// table is rows of cells under a title, the way both renderings want it.
type table struct {
	title string
	head  []string
	rows  [][]string
	// left is how many columns from the left are words; the others are numbers.
	left int
	more int
}

// mostRows bounds the tables of groups; what is left out is counted.
const mostRows = 10

// kinds are the kinds of cases. Of requests that were made up a share would mean nothing.
func (r Report) kinds() table {
	t := table{head: []string{r.things(), "number", "share"}, left: 1}
	for _, k := range r.Kinds {
		t.rows = append(t.rows, []string{kindWords[k.Kind], count(k.N), share(k.N, r.Decisions)})
	}
	if r.Mode == MadeUp {
		t.dropLast()
	}
	return t
}

// dropLast takes the last column off.
func (t *table) dropLast() {
	t.head = t.head[:len(t.head)-1]
	for i, row := range t.rows {
		t.rows[i] = row[:len(row)-1]
	}
}

// tables are the report's tables that have anything to say.
func (r Report) tables() []table {
	var out []table
	add := func(t table) {
		if len(t.rows) > mostRows {
			t.more, t.rows = len(t.rows)-mostRows, t.rows[:mostRows]
		}
		if len(t.rows) > 0 {
			out = append(out, t)
		}
	}
	places := table{title: "Where they lead", head: []string{"place", "before", "after", "difference"}, left: 1}
	for _, p := range r.Places {
		places.rows = append(places.rows, []string{clean(p.Name), count(p.Before), count(p.After), strings.TrimPrefix(fmt.Sprintf("%+d", p.After-p.Before), "+0")})
	}
	if r.Mode == MadeUp {
		moves := r.moves("Changed, by place", r.Moves)
		moves.dropLast()
		add(moves)
		return out
	}
	if r.Identical < r.Decisions {
		add(places)
	}
	add(r.moves("Changed, by place", r.Moves))
	add(r.moves("Changed, by rule", r.Rules))
	add(groups("Changed, by tenant", "tenant", r.Tenants))
	add(groups("Changed, by fingerprint", "fingerprint", r.Fingerprints))
	return out
}

func (r Report) moves(title string, moves []Move) table {
	t := table{title: title, head: []string{"from", "to", r.things(), "of all"}, left: 2}
	for _, m := range moves {
		t.rows = append(t.rows, []string{clean(m.From), clean(m.To), count(m.N), share(m.N, r.Decisions)})
	}
	return t
}

// groups are those with a change; the others are only counted.
func groups(title, head string, all []Group) table {
	t := table{title: title, head: []string{head, "decisions", "changed", "share"}, left: 1}
	for _, g := range all {
		if g.Changed == 0 {
			break
		}
		name := clean(g.Name)
		if name == "" {
			name = "(none)"
		}
		if g.Statement != "" {
			name += " " + clean(what(g.Statement, g.Tables))
		}
		t.rows = append(t.rows, []string{name, count(g.N), count(g.Changed), share(g.Changed, g.N)})
	}
	return t
}

// what says what a query does: its statement and tables, never its text.
func what(statement string, tables []string) string {
	if len(tables) == 0 {
		return statement
	}
	const most = 3
	if len(tables) > most {
		return fmt.Sprintf("%s of %s and %d more", statement, strings.Join(tables[:most], ", "), len(tables)-most)
	}
	return statement + " of " + strings.Join(tables, ", ")
}

// things are what was decided: recorded decisions, or requests that were made up.
func (r Report) things() string {
	if r.Mode == MadeUp {
		return "requests"
	}
	return "decisions"
}

// headline is the result in a sentence.
func (r Report) headline() string {
	n, things := count(r.Decisions), r.things()
	switch {
	case r.Decisions == 0:
		return "Nothing was compared."
	case r.Mode == Checked && r.Identical == r.Decisions:
		return fmt.Sprintf("All %s %s come out the same, byte for byte.", n, things)
	case r.Mode == Checked:
		return fmt.Sprintf("%s of %s %s do not come out the same, and %s lead elsewhere (%s).",
			count(r.Decisions-r.Identical), n, things, count(r.Changed), share(r.Changed, r.Decisions))
	case r.Identical == r.Decisions:
		return fmt.Sprintf("No difference: all %s %s are the same, byte for byte.", n, things)
	case r.Mode == MadeUp && r.Changed > 0:
		return fmt.Sprintf("%s of %s made-up requests around the thresholds of both lead elsewhere.", count(r.Changed), n)
	case r.Changed == 0:
		return fmt.Sprintf("All %s %s lead to the same place.", n, things)
	default:
		return fmt.Sprintf("%s of %s %s lead elsewhere (%s).", count(r.Changed), n, things, share(r.Changed, r.Decisions))
	}
}

// subject says what was looked at.
func (r Report) subject() string {
	var b strings.Builder
	before, after := fileAndHash(r.BeforeName, r.Before), fileAndHash(r.AfterName, r.After)
	switch {
	case r.Mode == Checked:
		b.WriteString("Recorded decisions against their own policies")
	case r.Mode == Tried && r.Check.Different > 0:
		fmt.Fprintf(&b, "Policy %s against what the policies of the record decide now", after)
	case r.Mode == Tried && r.Before == "":
		fmt.Fprintf(&b, "Policy %s against the recorded decisions of several policies", after)
	case r.Mode == Tried:
		fmt.Fprintf(&b, "Policy %s against the recorded decisions of policy %s", after, before)
	default:
		fmt.Fprintf(&b, "Policy %s against policy %s", after, before)
	}
	if !r.First.IsZero() {
		fmt.Fprintf(&b, ", %s to %s UTC", moment(r.First), moment(r.Last))
	}
	return b.String()
}

// fileAndHash is a policy by its file and hash.
func fileAndHash(file, hash string) string {
	if file == "" {
		return hash
	}
	return clean(file) + " (" + hash + ")"
}

var kindWords = map[Kind]string{
	Moved: "go elsewhere", Rejected: "are rejected, and were routed", Admitted: "are routed, and were rejected",
	OtherRejection: "are rejected for another reason", OtherReasons: "same place, for other reasons", OtherFallbacks: "same place, other fallbacks",
	Same: "no difference",
}

// notes are what a reader must know to believe the numbers.
func (r Report) notes() []string {
	var out []string
	note := func(n int, one, many string) {
		switch {
		case n == 1:
			out = append(out, "1 "+one)
		case n > 1:
			out = append(out, count(n)+" "+many)
		}
	}
	if r.Mode == Checked && r.Check.Different > 0 {
		out = append(out, "This version of pointsman decides otherwise than the one that made them, or something that decides is not in the record.")
	}
	if r.Mode == Tried {
		if n := r.Check.Reproduced + r.Check.Different; n > 0 {
			out = append(out, fmt.Sprintf("%s of %s decisions come out the same with the policy they were made by, byte for byte.", count(r.Check.Reproduced), count(n)))
		}
		note(r.Check.Different, "decision does not: this version decides otherwise than the one that made it. It is compared with what its own policy decides now.",
			"decisions do not: this version decides otherwise than the one that made them. They are compared with what their own policies decide now.")
	}
	for _, hash := range sortedKeys(r.Check.Unknown) {
		out = append(out, fmt.Sprintf("The text of policy %s is not in the record; %s decisions were made by it and could not be checked against it.", hash, count(r.Check.Unknown[hash])))
	}
	g := r.Gaps
	note(g.WithoutPolicy, "decision was made without a policy (invalid request, attempts used up) and is left out.",
		"decisions were made without a policy (invalid requests, attempts used up) and are left out.")
	note(g.Cancels, "wish to cancel is left out.", "wishes to cancel are left out.")
	note(g.Repeats, "decision was made twice after a crash; the first counts.", "decisions were made twice after a crash; the first counts.")
	note(g.InputMissing, "decision has no input in the record and is left out.", "decisions have no input in the record and are left out.")
	note(g.DecisionMissing, "input has no decision in the record and is left out.", "inputs have no decision in the record and are left out.")
	note(g.Uncounted, "decision was recorded without an account of what the policy tried limits; that limit was not applied to it.",
		"decisions were recorded without an account of what the policy tried limits; that limit was not applied to them.")
	note(g.Newer, "input holds facts of a newer version, which this one does not weigh.", "inputs hold facts of a newer version, which this one does not weigh.")
	note(g.Unreadable, "record could not be read.", "records could not be read.")
	return out
}

// count writes a number with separators.
func count(n int) string {
	s := strconv.Itoa(n)
	start := 0
	if n < 0 {
		start = 1
	}
	for i := len(s) - 3; i > start; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func share(n, of int) string {
	if of == 0 {
		return "-"
	}
	return Percent(float64(n) / float64(of))
}

// Percent writes a share for people: enough digits that a small one is not zero.
func Percent(s float64) string {
	p := s * 100
	switch {
	case p == 0 || p >= 10:
		return strconv.FormatFloat(p, 'f', 1, 64) + " %"
	case p >= 0.1:
		return strconv.FormatFloat(p, 'f', 2, 64) + " %"
	default:
		return strconv.FormatFloat(p, 'g', 2, 64) + " %"
	}
}

func moment(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05") }

// answerWords is an answer in a line.
func answerWords(a Answer) string {
	place := a.String()
	if a.Kind == event.Reject {
		place = "rejected"
	}
	rule := ""
	if a.Rule != "" {
		rule = ", rule " + a.Rule
	}
	texts := make([]string, 0, len(a.Reasons))
	for _, r := range a.Reasons {
		texts = append(texts, stop(r.Text))
	}
	if len(texts) == 0 {
		return clean(place + rule)
	}
	return clean(place + rule + ": " + strings.Join(texts, "; "))
}

// clean keeps a terminal, or a page, safe from what producers name things.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == unicode.ReplacementChar {
			return '?'
		}
		return r
	}, s)
}
