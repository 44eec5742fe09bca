package policy

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// edgeForm is what may stand behind enter_gte and its like.
func edgeForm() form {
	s := amountSchema()
	s["anyOf"] = append(s["anyOf"].([]any), map[string]any{"type": "string", "pattern": referencePattern})
	return form{name: "a number, a size or $threshold", schema: s}
}

const referencePattern = `^\$[a-z][a-z0-9_]*$`

// latchText is a latch as it stands in the text.
type latchText struct {
	LatchSpec
	watch        field
	enter, leave []field
}

var latchOptions = func() []option[latchText] {
	opts := []option[latchText]{
		textOption("watch", "The fact of a pool that it follows, e.g. interactive_queue_wait_ms.", func(l *latchText) *string { return &l.Watch }).must(),
	}
	for _, side := range []struct {
		key, does string
		to        func(*latchText) *[]field
	}{
		{"enter", "It goes on when the fact is", func(l *latchText) *[]field { return &l.enter }},
		{"leave", "It goes off when the fact is", func(l *latchText) *[]field { return &l.leave }},
	} {
		for _, op := range []Op{GreaterEqual, Greater, LessEqual, Less} {
			opts = append(opts, option[latchText]{
				key: side.key + "_" + string(op), about: side.does + " " + opWords[op] + " this.", form: edgeForm(),
				read: func(_ *reader, f field, into *latchText) { *side.to(into) = append(*side.to(into), f) },
			})
		}
		opts = append(opts, option[latchText]{
			key: side.key, about: side.does + " this; for facts that are true or false.",
			form: form{name: "true or false", schema: map[string]any{"type": "boolean"}},
			read: func(_ *reader, f field, into *latchText) { *side.to(into) = append(*side.to(into), f) },
		})
	}
	return append(opts,
		spanOption("enter_hold_seconds", "For how long, before it goes on.", func(l *latchText) *time.Duration { return &l.Enter.Hold }).withDefault("0"),
		countOption("enter_samples", "In how many observations in a row, before it goes on.", 1, 1000, func(l *latchText) *int { return &l.Enter.Samples }).withDefault("1"),
		spanOption("leave_hold_seconds", "For how long, before it goes off.", func(l *latchText) *time.Duration { return &l.Leave.Hold }).withDefault("30"),
		countOption("leave_samples", "In how many observations in a row, before it goes off.", 1, 1000, func(l *latchText) *int { return &l.Leave.Samples }).withDefault("1"),
		spanOption("absent_after_seconds", "How long without an observation makes it missing.", func(l *latchText) *time.Duration { return &l.AbsentAfter }).withDefault("60"),
		spanOption("keep_seconds", "How long it stays as it is while the fact is between the two edges; then it is missing.", func(l *latchText) *time.Duration { return &l.KeepFor }).withDefault("1800"),
	)
}()

// LongestKeep bounds how far back the state of a latch may depend on signals: the topic keeps them at least that long.
const LongestKeep = 30 * time.Minute

func (r *reader) latches(section field) []LatchSpec {
	var out []LatchSpec
	for _, f := range r.mapping(section.path, section.value) {
		l := latchText{LatchSpec: LatchSpec{
			Name: f.key, AbsentAfter: time.Minute, KeepFor: LongestKeep, Line: lineOf(f.keyNode), column: columnOf(f.keyNode),
			Enter: Edge{Samples: 1}, Leave: Edge{Samples: 1, Hold: 30 * time.Second},
		}}
		r.latchName(f)
		readOptions(r, f, "a latch", latchOptions, &l)
		for _, o := range r.mappingQuietly(f) {
			if o.key == "watch" {
				l.watch = o
			}
		}
		if r.watched(f, &l) {
			r.edges(f, &l)
		}
		if hold := max(l.Enter.Hold, l.Leave.Hold); l.KeepFor < hold || l.KeepFor > LongestKeep || l.KeepFor <= 0 {
			r.fault(f.keyNode, f.path, fmt.Sprintf("keep_seconds must be above 0, at least as long as the holds (%s) and at most %s", hold, LongestKeep))
		}
		if l.AbsentAfter <= 0 {
			r.fault(f.keyNode, f.path, "absent_after_seconds must be above 0")
		}
		out = append(out, l.LatchSpec)
	}
	return out
}

// latchName refuses names that would read as something else in a condition.
func (r *reader) latchName(f field) {
	fact, op := splitOp(f.key)
	_, isFact := r.names.byName[f.key]
	switch {
	case !nameOf.MatchString(f.key):
		r.fault(f.keyNode, f.path, "a latch's name must be lower-case letters, digits and _")
	case isFact, slices.Contains([]string{"any_of", "all_of", "not", "expr"}, f.key):
		r.fault(f.keyNode, f.path, fmt.Sprintf("the name %q is taken", f.key))
	case op != Equal:
		r.fault(f.keyNode, f.path, fmt.Sprintf("the name would read as a comparison of %q (_%s)", fact, op))
	}
}

// watched finds the fact that a latch follows.
func (r *reader) watched(f field, l *latchText) bool {
	if l.watch.value == nil {
		r.fault(f.keyNode, f.path, "`watch` is missing: the fact of a pool that the latch follows, e.g. interactive_queue_wait_ms")
		return false
	}
	var known []string
	for _, pool := range r.clusters {
		for id, s := range PoolFacts {
			name := pool + "_" + s.Name
			if name == l.Watch {
				l.Pool, l.Fact = pool, PoolFact(id)
				return true
			}
			known = append(known, name)
		}
	}
	if l.Watch != "" {
		r.fault(l.watch.value, l.watch.path, fmt.Sprintf("%q is no fact of a pool, and signals alone move a latch%s", l.Watch, suggest(l.Watch, known)))
	}
	return false
}

// edges reads the two edges, and checks that there is room between them.
func (r *reader) edges(f field, l *latchText) {
	before := len(r.faults)
	for _, side := range []struct {
		key    string
		fields []field
		to     *Edge
	}{{"enter", l.enter, &l.Enter}, {"leave", l.leave, &l.Leave}} {
		if len(side.fields) != 1 {
			r.fault(f.keyNode, f.path, fmt.Sprintf("needs exactly one of %s_gte, %[1]s_gt, %[1]s_lte, %[1]s_lt (or %[1]s for true and false), has %d", side.key, len(side.fields)))
			continue
		}
		r.edge(side.fields[0], l, side.to)
	}
	if len(r.faults) > before {
		return
	}
	up := l.Enter.Op == GreaterEqual || l.Enter.Op == Greater
	leavesDown := l.Leave.Op == LessEqual || l.Leave.Op == Less
	switch at := l.leave[0]; {
	case l.Enter.Op == Equal:
		if l.Enter.Number == l.Leave.Number {
			r.fault(at.value, at.path, "it would leave where it enters")
		} else if l.Enter.Hold+l.Leave.Hold == 0 && l.Enter.Samples+l.Leave.Samples == 2 {
			r.fault(f.keyNode, f.path, "without a hold or a number of samples it is no more than "+l.Watch)
		}
	case up != leavesDown:
		r.fault(at.keyNode, at.path, "what enters above must leave below, and the other way round")
	case up && l.Leave.Number >= l.Enter.Number:
		r.fault(at.value, at.path, fmt.Sprintf("leave (%s) must be below enter (%s), or it would go on and off", formatNumber(l.Leave.Number), formatNumber(l.Enter.Number)))
	case !up && l.Leave.Number <= l.Enter.Number:
		r.fault(at.value, at.path, fmt.Sprintf("leave (%s) must be above enter (%s), or it would go on and off", formatNumber(l.Leave.Number), formatNumber(l.Enter.Number)))
	}
}

func (r *reader) edge(f field, l *latchText, to *Edge) {
	isBool := PoolFacts[l.Fact].Kind == BoolKind
	_, op, compared := strings.Cut(f.key, "_")
	switch {
	case isBool && compared:
		r.fault(f.keyNode, f.path, fmt.Sprintf("%s is true or false: use enter and leave without a comparison", l.Watch))
	case isBool:
		to.Op, to.Number = Equal, BoolFact(r.truth(f)).Number
	case !compared:
		r.fault(f.keyNode, f.path, fmt.Sprintf("%s is a number: use %s_gte, %[2]s_gt, %[2]s_lte or %[2]s_lt", l.Watch, f.key))
	default:
		to.Op = Op(op)
		to.Number, to.Threshold = r.amount(f)
	}
}
