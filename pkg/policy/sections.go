package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pointsman/pointsman/pkg/budget"
)

func (r *reader) rules(section field, pools []Pool) []Rule {
	names := make([]string, len(pools))
	for i, p := range pools {
		names[i] = p.Name
	}
	var out []Rule
	for _, item := range r.sequence(section) {
		rule := Rule{Line: item.value.GetToken().Position.Line}
		routed := false
		for _, f := range r.mapping(item.path, item.value) {
			switch f.key {
			case "name":
				rule.Name = r.text(f)
				rule.Line = f.keyNode.GetToken().Position.Line
			case "when":
				rule.When = r.condition(f, names)
				if rule.When.Always() {
					r.fault(f.keyNode, f.path, "tests nothing; leave `when` out to match everything")
				}
			case "route":
				routed = true
				rule.Action, rule.Pool = r.route(f, names)
			case "reason":
				rule.Reason = r.text(f)
			case "notify_client":
				rule.Notify = r.truth(f)
			case "strict":
				rule.Strict = r.truth(f)
			default:
				r.fault(f.keyNode, f.path, "unknown key of a rule")
			}
		}
		if rule.Name == "" {
			r.fault(item.value, item.path, "`name` is missing")
		}
		if !routed {
			r.fault(item.value, item.path, "`route` is missing: an engine's name, auto, or reject")
		}
		out = append(out, rule)
	}
	return out
}

func (r *reader) route(f field, pools []string) (Action, string) {
	switch to := r.text(f); {
	case to == "reject":
		return ToReject, ""
	case to == "auto":
		return ToRanking, ""
	case slices.Contains(pools, to):
		return ToPool, to
	default:
		r.fault(f.value, f.path, fmt.Sprintf("%q is no engine of this policy (%s), nor auto, nor reject", to, strings.Join(pools, ", ")))
		return "", ""
	}
}

func (r *reader) condition(f field, pools []string) Condition {
	var c Condition
	for _, t := range r.mapping(f.path, f.value) {
		switch t.key {
		case "any_of", "all_of":
			var subs []Condition
			for _, item := range r.sequence(t) {
				subs = append(subs, r.condition(item, pools))
			}
			if t.key == "any_of" {
				c.AnyOf = append(c.AnyOf, subs...)
			} else {
				c.AllOf = append(c.AllOf, subs...)
			}
		case "not":
			c.None = append(c.None, r.condition(t, pools))
		default:
			// A faulty test is kept: without it the rule would look like a catch-all, and one fault would read as three.
			c.Tests = append(c.Tests, r.test(t, pools))
		}
	}
	return c
}

func (r *reader) test(t field, pools []string) Test {
	fact, op := splitOp(t.key)
	kind, ok := kindOf(fact, pools)
	switch {
	case !ok:
		r.fault(t.keyNode, t.path, fmt.Sprintf("no such fact as %q", fact))
		return Test{Fact: fact}
	case kind != numberKind && op != Equal:
		r.fault(t.keyNode, t.path, fmt.Sprintf("%s is %s and can't be compared with %s", fact, kind, op))
		return Test{Fact: fact}
	case kind == numberKind:
		return Test{Fact: fact, Op: op, Number: r.number(t)}
	case kind == boolKind:
		want := 0.0
		if r.truth(t) {
			want = 1
		}
		return Test{Fact: fact, Op: Equal, Number: want}
	default:
		return Test{Fact: fact, Op: In, Words: r.words(t)}
	}
}

func (r *reader) budgets(section field) Budgets {
	var out Budgets
	for _, f := range r.mapping(section.path, section.value) {
		switch f.key {
		case "agent_session":
			b := &budget.Limits{}
			for _, o := range r.mapping(f.path, f.value) {
				switch o.key {
				case "max_queries":
					b.MaxQueries = int64(r.within(o, 1, 1e12))
				case "max_bytes":
					b.MaxBytes = r.size(o)
				case "max_wall_ms":
					b.MaxWall = r.span(o)
				default:
					r.fault(o.keyNode, o.path, "unknown key of a session budget")
				}
			}
			out.AgentSession = b
		case "batch_principal":
			for _, o := range r.mapping(f.path, f.value) {
				if o.key != "max_concurrent" {
					r.fault(o.keyNode, o.path, "unknown key of a batch principal's budget")
					continue
				}
				out.BatchMaxConcurrent = int(r.within(o, 1, 1e6))
			}
		default:
			r.fault(f.keyNode, f.path, "unknown budget; known are agent_session and batch_principal")
		}
	}
	return out
}

func (r *reader) defaults(section field, d *Defaults) {
	for _, f := range r.mapping(section.path, section.value) {
		switch f.key {
		case "sla_seconds":
			d.SLA = r.span(f)
		case "timeout_seconds":
			d.Timeout = r.span(f)
		case "signal_max_age_seconds":
			d.SignalMaxAge = r.span(f)
		default:
			r.fault(f.keyNode, f.path, "unknown default; known are sla_seconds, timeout_seconds, signal_max_age_seconds")
		}
	}
}

func (r *reader) thresholds(section field, t *Thresholds) {
	for _, f := range r.mapping(section.path, section.value) {
		switch f.key {
		case "heavy_bytes":
			t.HeavyBytes = r.size(f)
		case "heavy_join_tables":
			t.HeavyJoinTables = int64(r.within(f, 1, 1000))
		case "sla_target":
			t.SLATarget = r.within(f, 0.01, 0.999)
		case "history_min_runs":
			t.HistoryMinRuns = int64(r.within(f, 1, 1e6))
		case "memory_kill_forgiven_after":
			t.MemoryKillForgivenAfter = int64(r.within(f, 1, 1e6))
		default:
			r.fault(f.keyNode, f.path, "unknown threshold")
		}
	}
}
