package policy

import (
	"fmt"
	"slices"
	"strings"
	"time"
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

var defaultOptions = []option[Defaults]{
	spanOption("sla_seconds", "The SLA of a request that states none.", func(d *Defaults) *time.Duration { return &d.SLA }).withDefault("30"),
	spanOption("timeout_seconds", "The timeout of a request that states none.", func(d *Defaults) *time.Duration { return &d.Timeout }).withDefault("600"),
	spanOption("signal_max_age_seconds", "How old a signal may be before it counts as stale.", func(d *Defaults) *time.Duration { return &d.SignalMaxAge }).withDefault("10"),
	choiceOption("no_candidate", "What becomes of a request that no engine can take: it is rejected, or it waits at one that is only busy or not ready.",
		[]NoCandidate{RejectTask, WaitForPool}, func(d *Defaults) *NoCandidate { return &d.NoCandidate }).withDefault("reject"),
}

var thresholdOptions = []option[Thresholds]{
	sizeOption("heavy_bytes", "The scan from which a query is heavy.", func(t *Thresholds) *int64 { return &t.HeavyBytes }).withDefault("500 GB"),
	countOption("heavy_join_tables", "The number of joined tables above which a query is heavy.", 1, 1000, func(t *Thresholds) *int64 { return &t.HeavyJoinTables }).withDefault("4"),
	numberOption("sla_target", "The probability of an SLA hit that is good enough.", 0.01, 0.999, func(t *Thresholds) *float64 { return &t.SLATarget }).withDefault("0.9"),
	countOption("history_min_runs", "The sample size from which a fingerprint's own history leads.", 1, 1e6, func(t *Thresholds) *int64 { return &t.HistoryMinRuns }).withDefault("3"),
	countOption("memory_kill_forgiven_after", "How many later successes outweigh a memory kill.", 1, 1e6, func(t *Thresholds) *int64 { return &t.MemoryKillForgivenAfter }).withDefault("3"),
}
