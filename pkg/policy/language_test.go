package policy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/pointsman/pointsman/pkg/policy"
)

// one is a policy of one rule, r, and a default.
func one(when string, more ...string) string {
	return engines + "rules:\n  - {name: r, when: " + when + ", route: a" + strings.Join(more, "") + "}\n" + fallback
}

// TestMissingFacts: P10. What a missing fact means is Kleene's logic, settled where the policy says so.
func TestMissingFacts(t *testing.T) {
	for _, c := range []struct {
		when, more string
		facts      known
		matches    bool
	}{
		{`{estimated_bytes_lt: 5}`, "", known{}, false},
		{`{estimated_bytes_gte: 5}`, "", known{}, false},
		{`{not: {estimated_bytes_gte: 5}}`, "", known{}, false},
		{`{not: {estimated_bytes_gte: 5}}`, "", known{"estimated_bytes": n(4)}, true},
		{`{not: {not: {estimated_bytes_gte: 5}}}`, "", known{}, false},
		{`{not: {a_healthy: true}}`, "", known{}, false}, // an engine that nobody has seen is not a sick one
		{`{a_healthy: true}`, "", known{}, false},        // nor a healthy one
		{`{a_queue_wait_ms_lt: 500}`, "", known{}, false},
		{`{a_load_lt: 1}`, "", known{}, false},

		{`{estimated_bytes_lt: {value: 5, on_missing: match}}`, "", known{}, true},
		{`{estimated_bytes_lt: {value: 5, on_missing: match}}`, "", known{"estimated_bytes": n(9)}, false},
		{`{not: {estimated_bytes_lt: {value: 5, on_missing: match}}}`, "", known{}, false},
		{`{not: {estimated_bytes_lt: {value: 5, on_missing: no_match}}}`, "", known{}, true},
		{`{estimated_bytes_lt: 5}`, ", on_missing: match", known{}, true},
		{`{not: {estimated_bytes_lt: 5}}`, ", on_missing: match", known{}, true},
		{`{estimated_bytes_lt: 5, has_udf: true}`, ", on_missing: match", known{"has_udf": b(false)}, false},
		{`{estimated_bytes_lt: 5}`, ", on_missing: no_match", known{}, false},

		{`{any_of: [{estimated_bytes_lt: 5}, {has_udf: true}]}`, "", known{"has_udf": b(true)}, true},
		{`{any_of: [{estimated_bytes_lt: 5}, {has_udf: true}]}`, "", known{"has_udf": b(false)}, false},
		{`{not: {any_of: [{estimated_bytes_lt: 5}, {has_udf: true}]}}`, "", known{"has_udf": b(false)}, false},
		{`{not: {all_of: [{estimated_bytes_lt: 5}, {has_udf: true}]}}`, "", known{"has_udf": b(false)}, true},

		{`{estimated_bytes_known: false}`, "", known{}, true},
		{`{estimated_bytes_known: true}`, "", known{}, false},
		{`{not: {estimated_bytes_known: true}}`, "", known{}, true},
		{`{estimated_bytes_known: true}`, "", known{"estimated_bytes": n(0)}, true}, // zero is known
		{`{estimated_bytes_lt: 5}`, "", known{"estimated_bytes": n(0)}, true},

		{`{not: {client_tag: batch}}`, "", known{"client_tag": ws()}, true}, // no tags is known
		{`{client_tag_known: true}`, "", known{"client_tag": ws()}, true},
		{`{not: {tenant: x}}`, "", known{"tenant": w("")}, false}, // no tenant is not known to be another
	} {
		t.Run(c.when+c.more, func(t *testing.T) {
			got := ruleFor(t, loadText(t, one(c.when, c.more)), c.facts)
			require.Equal(t, map[bool]string{true: "r", false: "default"}[c.matches], got)
		})
	}
}

func TestComparisons(t *testing.T) {
	for _, c := range []struct {
		when  string
		facts known
		want  bool
	}{
		{`{join_tables: 4}`, known{"join_tables": n(4)}, true},
		{`{join_tables_lt: 4}`, known{"join_tables": n(4)}, false},
		{`{join_tables_lte: 4}`, known{"join_tables": n(4)}, true},
		{`{join_tables_gt: 4}`, known{"join_tables": n(4)}, false},
		{`{join_tables_gte: 4}`, known{"join_tables": n(4)}, true},
		{`{join_tables_gt: 2, join_tables_lt: 5}`, known{"join_tables": n(4)}, true},
		{`{estimated_bytes_lt: 1.5 GiB}`, known{"estimated_bytes": n(1610612735)}, true},
		{`{estimated_bytes_lt: 1.5GiB}`, known{"estimated_bytes": n(1610612736)}, false},
		{`{session_bytes_remaining_lt: 0}`, known{"session_bytes_remaining": n(-1)}, true},
		{`{statement: [INSERT, merge]}`, known{"statement": w("insert")}, true},
		{`{client_tag: etl}`, known{"client_tag": ws("a", "ETL")}, true},
		{`{tables: sales.orders}`, known{"tables": ws("sales.orders", "x")}, true},
		{`{all_of: [{client_tag: x}, {client_tag: y}]}`, known{"client_tag": ws("y", "x")}, true},
	} {
		t.Run(c.when, func(t *testing.T) {
			require.Equal(t, map[bool]string{true: "r", false: "default"}[c.want], ruleFor(t, loadText(t, one(c.when)), c.facts))
		})
	}
}

func TestExpressions(t *testing.T) {
	for _, c := range []struct {
		expr  string
		facts known
		want  bool
	}{
		{`estimated_bytes > 5`, known{"estimated_bytes": n(6)}, true},
		{`estimated_bytes > 5.5 && !has_udf`, known{"estimated_bytes": n(6), "has_udf": b(false)}, true},
		{`estimated_bytes > 5`, known{}, false},
		{`!(estimated_bytes > 5)`, known{}, false},
		{`estimated_bytes > 5 || has_udf`, known{"has_udf": b(true)}, true},
		{`has_udf || estimated_bytes > 5`, known{"has_udf": b(true)}, true},
		{`!estimated_bytes_known`, known{}, true},
		{`"etl" in client_tag`, known{"client_tag": ws("x", "etl")}, true},
		{`size(client_tag) == 0`, known{"client_tag": ws()}, true},
		{`tables.exists(t, t.startsWith("raw."))`, known{"tables": ws("x", "raw.y")}, true},
		{`tables.all(t, t.startsWith("raw."))`, known{"tables": ws("x", "raw.y")}, false},
		{`tenant in ["a", "b"] && user.lowerAscii() == "ann"`, known{"tenant": w("b"), "user": w("ANN")}, true},
		{`estimated_bytes / 1e9 > thresholds.mine * 2.0`, known{"estimated_bytes": n(11e9)}, true},
		{`estimated_bytes / 1e9 > thresholds.mine * 2.0`, known{"estimated_bytes": n(9e9)}, false},
		{`a_queue_wait_ms > 100 && a_healthy`, known{"a_queue_wait_ms": n(101), "a_healthy": b(true)}, true},
		{`tables[7] == "x"`, known{"tables": ws("x")}, false}, // it fails, and so says nothing
	} {
		t.Run(c.expr, func(t *testing.T) {
			text := one("{expr: '"+c.expr+"'}") + "thresholds: {mine: {value: 5, min: 1, max: 9}}\n"
			require.Equal(t, map[bool]string{true: "r", false: "default"}[c.want], ruleFor(t, loadText(t, text), c.facts))
		})
	}
	p := loadText(t, one("{expr: {value: estimated_bytes > 5, on_missing: match}}"))
	require.Equal(t, "r", ruleFor(t, p, known{}))
}

// TestExpressionsAreBounded: an expression that costs more than it may when it runs, since a fact is larger than was assumed,
// is unknown.
func TestExpressionsAreBounded(t *testing.T) {
	p := loadText(t, one(`{expr: 'tables.all(t, t.contains("x"))'}`))
	few, many := make([]string, 50), make([]string, 200_000)
	for i := range many {
		many[i] = "x"
	}
	copy(few, many)
	require.Equal(t, "r", ruleFor(t, p, known{"tables": ws(few...)}))
	require.Equal(t, "default", ruleFor(t, p, known{"tables": ws(many...)}))
}

func TestNamedThresholdsAndTenants(t *testing.T) {
	text := engines + `
thresholds:
  sla_target: 0.8
  small: {value: 50 GB, min: 1 GB, max: 1 TB}
rules:
  - {name: tagged, when: {sla_ms_lt: 1000}, tags: [hasty]}
  - {name: small, when: {estimated_bytes_lt: $small}, route: a}
  - {name: celsmall, when: {expr: "estimated_bytes < thresholds.small * 2.0"}, route: a}
  - {name: heavy, when: {estimated_bytes_gte: $heavy_bytes}, route: b}
  - {name: default, route: auto}
tenants:
  big:
    thresholds: {small: 200 GB, sla_target: 0.99}
    defaults: {sla_seconds: 7}
    rules:
      - {name: own, when: {client_tag: mine}, route: b, strict: true}
`
	p := loadText(t, text)
	require.Equal(t, []string{"big"}, p.Tenants())
	require.Same(t, p, p.For("other"))
	big := p.For("big")
	require.Equal(t, p.Hash, big.Hash)
	require.Equal(t, 0.99, big.Thresholds.SLATarget)
	require.Equal(t, 0.8, p.Thresholds.SLATarget)
	require.Equal(t, 7.0, big.Defaults.SLA.Seconds())
	require.Equal(t, 30.0, p.Defaults.SLA.Seconds())
	for _, c := range []struct {
		facts     known
		all, ours string
	}{
		{known{"estimated_bytes": n(49e9)}, "small", "small"},
		{known{"estimated_bytes": n(90e9)}, "celsmall", "small"},
		{known{"estimated_bytes": n(150e9)}, "default", "small"},
		{known{"estimated_bytes": n(300e9)}, "default", "celsmall"},
		{known{"estimated_bytes": n(900e9)}, "heavy", "heavy"},
		{known{"client_tag": ws("mine")}, "default", "own"},
	} {
		require.Equal(t, c.all, ruleFor(t, p, c.facts))
		require.Equal(t, c.ours, ruleFor(t, big, c.facts))
	}
	changed := loadText(t, strings.Replace(text, "value: 50 GB", "value: 51 GB", 1))
	require.NotEqual(t, p.Hash, changed.Hash, "a threshold is part of the hash")
}

func TestRulesThatOnlyTag(t *testing.T) {
	p := loadText(t, engines+`rules:
  - {name: large, when: {estimated_bytes_gt: 5 GB}, tags: [large, slow], notify_client: true}
  - {name: late, when: {sla_ms_gt: 60000}, tags: [slow, patient]}
  - {name: both, when: {all_of: [{rule_tags: large}, {rule_tags: patient}]}, route: b, tags: [night]}
  - {name: default, route: a}
`)
	m := p.Match(factsOf(t, p, known{"estimated_bytes": n(6e9), "sla_ms": n(90000)}))
	require.Equal(t, "both", m.Rule.Name)
	require.Equal(t, []string{"large", "slow", "patient", "night"}, m.Tags)
	require.True(t, m.Notify())
	require.Len(t, m.Passed, 2)
	m = p.Match(factsOf(t, p, known{"estimated_bytes": n(6e9), "sla_ms": n(1)}))
	require.Equal(t, "default", m.Rule.Name)
	require.Equal(t, []string{"large", "slow"}, m.Tags)
	m = p.Match(factsOf(t, p, known{}))
	require.Empty(t, m.Tags)
	require.False(t, m.Notify())
}

// TestTrace: P1. Rules below the one that decided were not reached, and those above say which test failed, and on what.
func TestTrace(t *testing.T) {
	p := loadText(t, engines+`rules:
  - {name: vip, when: {user: admin}, route: a}
  - {name: tagging, when: {has_udf: true}, tags: [x]}
  - {name: sized, when: {has_udf: true, estimated_bytes_lt: 50 GB}, route: b}
  - {name: branches, when: {any_of: [{join_tables_gt: 4}, {tenant: [x, y]}]}, route: b}
  - {name: negated, when: {not: {has_udf: true}}, route: b}
  - {name: computed, when: {expr: "join_tables > 7"}, route: b}
  - {name: default, route: auto}
`)
	say := func(k known) []string {
		var out []string
		for _, r := range p.Trace(factsOf(t, p, k)) {
			out = append(out, r.String())
		}
		return out
	}
	require.Equal(t, []string{
		"vip matched", "tagging was not reached", "sized was not reached", "branches was not reached", "negated was not reached",
		"computed was not reached", "default was not reached",
	}, say(known{"user": w("admin")}))
	require.Equal(t, []string{
		"vip did not match: wants user is admin, but it is bob",
		"tagging matched, and only tags or notifies",
		"sized did not match: wants estimated_bytes is below 50 GB, which is not known",
		"branches did not match: wants join_tables is above 4, but it is 2; wants tenant is one of x, y, but it is z",
		"negated did not match: wants not (has_udf is true), but it is true",
		"computed did not match: wants `join_tables > 7`, which is not so",
		"default matched",
	}, say(known{"user": w("bob"), "has_udf": b(true), "join_tables": n(2), "tenant": w("z")}))
	got := p.Trace(factsOf(t, p, known{"user": w("bob"), "has_udf": b(true), "join_tables": n(2), "tenant": w("z")}))
	require.Equal(t, policy.RuleUnknown, got[2].Result)
	require.Equal(t, policy.RuleFailed, got[3].Result)
}

// condition draws a condition over three facts.
func condition(t *rapid.T, depth int) string {
	number := func() int { return rapid.IntRange(0, 3).Draw(t, "n") }
	missing := rapid.SampledFrom([]string{"", "", "match", "no_match"}).Draw(t, "missing")
	value := func(v any) string {
		if missing == "" {
			return fmt.Sprint(v)
		}
		return fmt.Sprintf("{value: %v, on_missing: %s}", v, missing)
	}
	list := func(kind string) string {
		return fmt.Sprintf("{%s: [%s, %s]}", kind, condition(t, depth-1), condition(t, depth-1))
	}
	kind := rapid.IntRange(0, 8).Draw(t, "kind")
	if depth == 0 {
		kind %= 5
	}
	switch kind {
	case 0, 1:
		return fmt.Sprintf("{join_tables%s: %s}", rapid.SampledFrom([]string{"", "_lt", "_lte", "_gt", "_gte"}).Draw(t, "op"), value(number()))
	case 2:
		return fmt.Sprintf("{has_udf: %s}", value(rapid.Bool().Draw(t, "bool")))
	case 3:
		return fmt.Sprintf("{tenant: %s}", value(rapid.SampledFrom([]string{"[x]", "[x, y]", "[z, y]"}).Draw(t, "words")))
	case 4:
		return fmt.Sprintf("{client_tag: %s}", value(rapid.SampledFrom([]string{"[x]", "[x, y]", "[z, y]"}).Draw(t, "words")))
	case 5:
		return list("any_of")
	case 6:
		return list("all_of")
	case 7:
		return fmt.Sprintf("{join_tables_known: %v}", rapid.Bool().Draw(t, "bool"))
	default:
		return "{not: " + condition(t, depth-1) + "}"
	}
}

// TestUnreachableRulesAreUnreachable tries every combination of facts on rules that Load says can't be reached, or never
// match: it must never be wrong about that. Where it says nothing, that is no promise.
func TestUnreachableRulesAreUnreachable(t *testing.T) {
	combinations := func(do func(known)) {
		for _, joins := range []float64{-1, 0, 1, 1.5, 2, 3, 4} {
			for _, udf := range []int{-1, 0, 1} {
				for _, tenant := range []string{"", "x", "y", "z", "q"} {
					for _, tags := range [][]string{nil, {"x"}, {"y"}, {"z"}, {"x", "z"}, {"q"}, {"x", "y"}} {
						k := known{"tenant": w(tenant), "client_tag": ws(tags...)}
						if joins >= 0 {
							k["join_tables"] = n(joins)
						}
						if udf >= 0 {
							k["has_udf"] = b(udf == 1)
						}
						do(k)
					}
				}
			}
		}
	}
	found := map[string]int{}
	check := func(rt *rapid.T) {
		missing := func() string { return rapid.SampledFrom([]string{"", "", ", on_missing: match"}).Draw(rt, "rule") }
		first, second := condition(rt, 2), condition(rt, 2)
		rules := func(order ...string) string { return engines + "rules:\n" + strings.Join(order, "") + fallback }
		r1 := fmt.Sprintf("  - {name: r1, when: %s, route: a%s}\n", first, missing())
		r2 := fmt.Sprintf("  - {name: r2, when: %s, route: b%s}\n", second, missing())
		for _, fault := range faultsOf(t, rules(r1, r2)) {
			// Alone, each of the two may still be loaded.
			alone1, err1 := policy.Load("p", []byte(rules(r1)))
			alone2, err2 := policy.Load("p", []byte(rules(r2)))
			switch {
			case strings.Contains(fault, "rules[1]: unreachable") && err1 == nil && err2 == nil:
				found["unreachable"]++
				combinations(func(k known) {
					if ruleFor(t, alone2, k) == "r2" && ruleFor(t, alone1, k) != "r1" {
						rt.Fatalf("%s\n%s%s%v", fault, r1, r2, k)
					}
				})
			case strings.Contains(fault, "rules[0]: never matches"):
				found["never"]++
				// The same rule with another condition beside it that always holds in one branch can be loaded.
				p, err := policy.Load("p", []byte(rules(strings.Replace(r1, "when: "+first, "when: {any_of: ["+first+", {limit_gt: 99}]}", 1))))
				if err != nil {
					continue
				}
				combinations(func(k known) {
					k["limit"] = n(1)
					if ruleFor(t, p, k) == "r1" {
						rt.Fatalf("%s\n%s%v", fault, r1, k)
					}
				})
			}
		}
	}
	// What is drawn is chance: it goes on until the property was put to the test.
	for range 100 {
		if rapid.Check(t, check); found["unreachable"] >= 5 && found["never"] >= 5 {
			return
		}
	}
	t.Fatalf("nothing to check was drawn: %v", found)
}
