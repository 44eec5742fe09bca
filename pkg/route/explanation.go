package route

import (
	"strings"

	"github.com/pointsman/pointsman/pkg/classify"
	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/policy"
)

// Explanation is a decision with what it does not carry itself: why the verdict, which changes would have mattered, and all of it
// in words.
type Explanation struct {
	Decision event.RouteDecision `json:"decision"`
	Verdict  *VerdictWhy         `json:"verdict,omitempty"`
	// Rules says of every rule what became of it, and why; empty if it did not come to the rules.
	Rules []policy.RuleTrace `json:"rules,omitempty"`
	// Counterfactuals are the smallest changes that would have made each loser equal in the factor it lost by.
	Counterfactuals []Counterfactual `json:"counterfactuals,omitempty"`
	Text            string           `json:"text"`
}

// VerdictWhy says what a query is expected to be, by which row of the classifier's table, and why.
type VerdictWhy struct {
	Verdict classify.Verdict `json:"verdict"`
	Row     string           `json:"row,omitempty"`
	Why     string           `json:"why"`
}

// ExplainInput decides, and says why in full.
func ExplainInput(in Input) Explanation {
	in.Policy = in.Policy.For(in.Task.Tenant)
	e := Explanation{Decision: decide(in)}
	d := &e.Decision
	var b strings.Builder
	b.WriteString(Explain(*d))
	w := words{&b}
	if d.Verdict != "" {
		s := newScene(&in)
		weight := s.features()
		row := classify.Classify(&weight, &in.Policy.Thresholds)
		e.Verdict = &VerdictWhy{Verdict: row.Verdict, Row: row.ID, Why: row.Why(&weight, &in.Policy.Thresholds)}
		w.line("Verdict %s: %s.", e.Verdict.Verdict, e.Verdict.Why)
		e.Rules = in.Policy.Trace(s.ruleFacts())
		w.line("Rules:")
		for _, r := range e.Rules {
			w.line("  line %d: %s", r.Line, r)
		}
	}
	if d.Kind == event.Route {
		e.Counterfactuals = whatIf(in, d)
	}
	if len(e.Counterfactuals) > 0 {
		w.line("What would have changed it:")
		for _, c := range e.Counterfactuals {
			w.line("  %s", c.Text)
		}
	}
	e.Text = b.String()
	return e
}
