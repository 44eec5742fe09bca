package replay

import (
	"cmp"
	"maps"
	"slices"

	"github.com/pointsman/pointsman/pkg/event"
)

// tally counts cases as they come; it keeps none but the samples.
type tally struct {
	total        Report
	kinds        map[Kind]int
	places       map[string]*Place
	moves, rules map[[2]string]int
	tenants      map[string]*Group
	fingerprints map[string]*Group
	hashes       map[string]bool
	expected     Expected
	check        Check
	gaps         Gaps
	// samples keeps the earliest case of each way to change: partitions are read in any order, and a report that is made again says the same.
	samples map[way]*Sample
	most    int
	madeUp  bool
}

// way is one way to change: what the samples are grouped by.
type way struct {
	kind                Kind
	from, to            string
	ruleBefore, ruleNow string
	codeBefore, codeNow string
}

func newTally(samples int) tally {
	return tally{
		kinds: map[Kind]int{}, places: map[string]*Place{}, moves: map[[2]string]int{}, rules: map[[2]string]int{},
		tenants: map[string]*Group{}, fingerprints: map[string]*Group{}, hashes: map[string]bool{}, samples: map[way]*Sample{}, most: samples,
	}
}

func (t *tally) checked(exact bool) {
	if exact {
		t.check.Reproduced++
	} else {
		t.check.Different++
	}
}

func (t *tally) unchecked(hash string) {
	t.check.Unchecked++
	if t.check.Unknown == nil {
		t.check.Unknown = map[string]int{}
	}
	t.check.Unknown[hash]++
}

// add counts a case.
func (t *tally) add(c Case) {
	r := &t.total
	r.Decisions++
	if c.Facts != nil {
		t.madeUp = true
	}
	if c.Identical {
		r.Identical++
	}
	if now := c.Input.Now; r.First.IsZero() || now.Before(r.First) {
		r.First = now
	}
	if c.Input.Now.After(r.Last) {
		r.Last = c.Input.Now
	}
	if c.BeforePolicy != nil {
		t.hashes[c.BeforePolicy.Hash] = true
	} else {
		t.hashes[c.Input.PolicyHash] = true
	}
	kind := c.Kind()
	t.kinds[kind]++
	from, to := place(c.Before), place(c.After)
	entry(t.places, from).Before++
	entry(t.places, to).After++
	groups := []*Group{entry(t.tenants, c.Input.Task.Tenant), entry(t.fingerprints, c.Input.Fingerprint)}
	if f := groups[1]; f.Statement == "" {
		f.Statement, f.Tables = c.After.Statement, c.After.Tables
	}
	for _, g := range groups {
		g.N++
	}
	t.expect(c)
	if kind.Changed() {
		r.Changed++
		if kind == OtherRejection {
			from, to = from+" ("+rejectionCode(c.Before)+")", to+" ("+rejectionCode(c.After)+")"
		}
		t.moves[[2]string{from, to}]++
		t.rules[[2]string{orNone(c.Before.Rule), orNone(c.After.Rule)}]++
		for _, g := range groups {
			g.Changed++
		}
	}
	if kind != Same {
		t.sample(c, kind, from, to)
	}
}

// sample keeps the earliest case of a way to change, and counts the others.
func (t *tally) sample(c Case, kind Kind, from, to string) {
	w := way{kind: kind, from: from, to: to, ruleBefore: c.Before.Rule, ruleNow: c.After.Rule}
	if r := c.Before.Reasons; len(r) > 0 {
		w.codeBefore = r[0].Code
	}
	if r := c.After.Reasons; len(r) > 0 {
		w.codeNow = r[0].Code
	}
	s, ok := t.samples[w]
	if !ok {
		s = &Sample{}
		t.samples[w] = s
	}
	if !ok || earlier(c, s) {
		*s = Sample{
			TaskID: c.Input.Task.ID, Attempt: c.Input.Attempt, At: c.Input.Now, Tenant: c.Input.Task.Tenant, Fingerprint: c.Input.Fingerprint,
			Statement: c.After.Statement, Tables: c.After.Tables, Kind: kind, Before: answer(c.Before), After: answer(c.After), Why: Why(c), Facts: c.Facts,
			Like: s.Like,
		}
	}
	s.Like++
}

func earlier(c Case, s *Sample) bool {
	return cmp.Or(c.Input.Now.Compare(s.At), cmp.Compare(c.Input.Task.ID, s.TaskID), cmp.Compare(c.Input.Attempt, s.Attempt)) < 0
}

func answer(d event.RouteDecision) Answer {
	return Answer{Kind: d.Kind, Target: d.Target, Rule: d.Rule, Reasons: d.Reasons}
}

// expect sums what the two decisions expect of their winners.
func (t *tally) expect(c Case) {
	hitB, costB, okB := winnerExpects(c.Before)
	hitA, costA, okA := winnerExpects(c.After)
	if !okB || !okA {
		return
	}
	e := &t.expected
	e.N++
	e.HitBefore, e.HitAfter, e.CostBefore, e.CostAfter = e.HitBefore+hitB, e.HitAfter+hitA, e.CostBefore+costB, e.CostAfter+costA
}

func winnerExpects(d event.RouteDecision) (hit, cost float64, ok bool) {
	for i := range d.Candidates {
		c := &d.Candidates[i]
		if d.Kind == event.Route && c.Target == d.Target && c.Estimate != nil {
			h, okH := c.Estimate.PHit.Get()
			k, okK := c.Estimate.Cost.Get()
			return h, k, okH && okK
		}
	}
	return 0, 0, false
}

func (t *tally) report() Report {
	r := t.total
	r.Mode, r.Check, r.Gaps = Tried, t.check, t.gaps
	if r.Decisions > 0 {
		r.Share = float64(r.Changed) / float64(r.Decisions)
	}
	for _, k := range kinds {
		if n := t.kinds[k]; n > 0 {
			r.Kinds = append(r.Kinds, KindCount{k, n})
		}
	}
	r.Places = sorted(t.places, func(a, b Place) int {
		return cmp.Or(cmp.Compare(b.Before+b.After, a.Before+a.After), cmp.Compare(a.Name, b.Name))
	})
	r.Moves, r.Rules = movesOf(t.moves), movesOf(t.rules)
	byChanged := func(a, b Group) int {
		return cmp.Or(cmp.Compare(b.Changed, a.Changed), cmp.Compare(b.N, a.N), cmp.Compare(a.Name, b.Name))
	}
	r.Tenants, r.Fingerprints = sorted(t.tenants, byChanged), sorted(t.fingerprints, byChanged)
	if len(t.hashes) == 1 {
		for hash := range t.hashes {
			r.Before = hash
		}
	}
	if e := t.expected; e.N > 0 && !t.madeUp && r.Identical < r.Decisions {
		n := float64(e.N)
		r.Expected = &Expected{e.N, e.HitBefore / n, e.HitAfter / n, e.CostBefore / n, e.CostAfter / n}
	}
	r.Samples = sorted(t.samples, func(a, b Sample) int {
		return cmp.Or(boolFirst(a.Kind.Changed(), b.Kind.Changed()), cmp.Compare(b.Like, a.Like), a.At.Compare(b.At), cmp.Compare(a.TaskID, b.TaskID))
	})
	if len(r.Samples) > t.most {
		r.Samples = r.Samples[:t.most]
	}
	return r
}

func boolFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	default:
		return 1
	}
}

func orNone(rule string) string { return cmp.Or(rule, "(none)") }

type named interface{ Place | Group }

// entry is the entry of a name, made if there is none yet.
func entry[T named](m map[string]*T, name string) *T {
	e, ok := m[name]
	if !ok {
		e = new(T)
		switch e := any(e).(type) {
		case *Place:
			e.Name = name
		case *Group:
			e.Name = name
		}
		m[name] = e
	}
	return e
}

func sorted[K comparable, T any](m map[K]*T, order func(a, b T) int) []T {
	out := make([]T, 0, len(m))
	for _, v := range m {
		out = append(out, *v)
	}
	slices.SortFunc(out, order)
	return out
}

func movesOf(m map[[2]string]int) []Move {
	out := make([]Move, 0, len(m))
	for _, k := range slices.Collect(maps.Keys(m)) {
		out = append(out, Move{k[0], k[1], m[k]})
	}
	slices.SortFunc(out, func(a, b Move) int {
		return cmp.Or(cmp.Compare(b.N, a.N), cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To))
	})
	return out
}
