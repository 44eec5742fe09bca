package policy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/policy"
)

const (
	engines  = "engines: {a: {kind: x, slots: 2}, b: {kind: y}}\n"
	fallback = "  - {name: default, route: auto}\n"
)

// faultsOf lists the faults of a text without the file's name.
func faultsOf(t testing.TB, text string) []string {
	t.Helper()
	_, err := policy.Load("p", []byte(text))
	if err == nil {
		return nil
	}
	var faults policy.FaultList
	require.ErrorAs(t, err, &faults)
	out := make([]string, len(faults))
	for i, f := range faults {
		out[i] = strings.TrimPrefix(f.String(), "p:")
	}
	return out
}

// TestFaults has one policy for each fault, and the fault alone is found.
func TestFaults(t *testing.T) {
	rules := func(lines ...string) string {
		return engines + "rules:\n  - " + strings.Join(lines, "\n  - ") + "\n" + fallback
	}
	latch := func(options string) string {
		return engines + "latches: {l: {" + options + "}}\nrules:\n  - {name: r, when: {l: true}, route: a}\n" + fallback
	}
	own := func(thresholds, test string) string {
		return engines + "thresholds: {" + thresholds + "}\nrules:\n  - {name: r, when: {" + test + "}, route: a}\n" + fallback
	}
	for _, c := range []struct{ name, text, want string }{
		// The language.
		{"unknown section", engines + "rulez: []\nrules:\n" + fallback, "2:1: rulez: unknown key; did you mean rules?"},
		{"unknown key of a rule", rules("{name: r, when: {has_udf: true}, route: a, reson: x}"), "3:48: rules[0].reson: unknown key of a rule; did you mean reason?"},
		{"key twice", engines + "rules:\n" + fallback + "rules:\n" + fallback, "4:1: rules: the key stands here twice"},
		{"test twice", rules("{name: r, when: {has_udf: true, has_udf: false}, route: a}"), "3:37: rules[0].when.has_udf: the key stands here twice"},
		{"pool twice", "engines: {a: {kind: x}, a: {kind: y}}\nrules:\n" + fallback, "1:25: engines.a: the key stands here twice"},
		{
			"name twice", rules("{name: r, when: {has_udf: true}, route: a}", "{name: r, when: {has_window: true}, route: a}"),
			`4:6: rules[1]: the name "r" is used by the rule in line 3 already`,
		},
		{"text wanted", rules("{name: 7, when: {has_udf: true}, route: a}"), "3:12: rules[0].name: must be a text; put it in quotes"},
		{"tag", rules("{name: r, when: {limit: !!int 5}, route: a}"), "3:29: $: YAML tags such as !!int are not supported: leave it out"},

		// Facts.
		{"unknown fact", rules("{name: r, when: {join_table_gt: 4}, route: a}"), `3:22: rules[0].when.join_table_gt: no such fact as "join_table"; did you mean join_tables?`},
		{"another pool's fact", rules("{name: r, when: {c_healthy: true}, route: a}"), `3:22: rules[0].when.c_healthy: no such fact as "c_healthy"; did you mean a_healthy?`},
		{"size", rules("{name: r, when: {estimated_bytes_gt: 5 QB}, route: a}"), `3:42: rules[0].when.estimated_bytes_gt: "5 QB" has no unit that is known (B, kB, MB, GB, TB, PB, KiB, MiB, GiB, TiB, PiB)`},
		{"truth", rules("{name: r, when: {has_udf: yes}, route: a}"), "3:31: rules[0].when.has_udf: must be true or false"},
		{"nothing in a list", rules("{name: r, when: {tenant: []}, route: a}"), "3:30: rules[0].when.tenant: lists no word, so it can never hold"},
		{"empty any_of", rules("{name: r, when: {any_of: []}, route: a}"), "3:22: rules[0].when.any_of: lists nothing"},
		{"an empty part of any_of", rules("{name: r, when: {any_of: [{has_udf: true}, {}]}, route: a}"), "3:48: rules[0].when.any_of[1]: tests nothing"},
		{"an empty not", rules("{name: r, when: {has_udf: true, not: {}}, route: a}"), "3:42: rules[0].when.not: tests nothing"},
		{"words of a closed list", rules("{name: r, when: {statement: [select, insrt]}, route: a}"), `3:33: rules[0].when.statement: "insrt" is no statement; did you mean insert?`},
		{"a class that no session has", rules("{name: r, when: {principal_class: {value: robot, on_missing: match}}, route: a}"), `3:47: rules[0].when.principal_class: "robot" is no principal_class; known are agent, batch, human`},
		{"no SLA at all", engines + "defaults: {sla_seconds: 0}\nrules:\n" + fallback, "2:25: defaults.sla_seconds: must be at least 1ms"},
		{"signals that never grow old", engines + "defaults: {signal_max_age_seconds: 0}\nrules:\n" + fallback, "2:36: defaults.signal_max_age_seconds: must be at least 1ms"},
		{"pools that expressions can't tell apart", "engines: {a: {kind: x}, b-c: {kind: y}, b_c: {kind: y}}\nrules:\n" + fallback, `1:41: engines.b_c: expressions could not tell it from "b-c": they write - as _`},
		{"empty when", rules("{name: r, when: {}, route: a}"), "3:15: rules[0].when: tests nothing; leave `when` out to match everything"},
		{
			"on_missing of known", rules("{name: r, when: {tenant_known: {value: true, on_missing: match}}, route: a}"),
			"3:44: rules[0].when.tenant_known: on_missing says nothing here: whether a fact is known is always known",
		},
		{
			"on_missing misspelt", rules("{name: r, when: {tenant: {value: x, on_missing: matches}}, route: a}"),
			`3:53: rules[0].when.tenant.on_missing: "matches" is none of match, no_match; did you mean match?`,
		},
		{"no rule sets it", rules("{name: r, when: {rule_tags: big}, route: a}"), `3:33: rules[0].when.rule_tags: no rule sets the tag "big"`},

		// Rules.
		{"no route", rules("{name: r, when: {has_udf: true}}"), "3:6: rules[0]: `route` is missing: a pool's name, auto, or reject; a rule without it must set tags or notify_client"},
		{
			"strict and fallback", rules("{name: r, when: {has_udf: true}, route: a, strict: true, fallback: [b]}"),
			"3:6: rules[0]: `strict` allows no other pool and `fallback` names some: keep one of the two",
		},
		{"strict about nothing", rules("{name: r, when: {has_udf: true}, route: auto, strict: true}"), "3:6: rules[0]: `strict` needs a pool to be strict about, not route: auto"},
		{"fallback for nothing", rules("{name: r, when: {has_udf: true}, route: reject, fallback: b}"), "3:6: rules[0]: `fallback` needs a pool to step in for, not route: reject"},
		{"fallback to itself", rules("{name: r, when: {has_udf: true}, route: a, fallback: a}"), "3:6: rules[0]: a can't step in for itself"},
		{"fallback unknown", rules("{name: r, when: {has_udf: true}, route: a, fallback: c}"), `3:58: rules[0].fallback: "c" is no engine of this policy (a, b)`},
		{"on_missing of nothing", engines + "rules:\n  - {name: default, route: auto, on_missing: match}\n", "3:6: rules[0]: `on_missing` says nothing in a rule without `when`"},
		{"no default", engines + "rules:\n  - {name: r, when: {has_udf: true}, route: a}\n", "3:6: rules: no default: the last rule must have no `when`, e.g. `- name: default` with `route: auto`"},
		{
			"only tags at the end", rules("{name: r, when: {has_udf: true}, route: a}")[:len(rules("{name: r, when: {has_udf: true}, route: a}"))-len(fallback)] + "  - {name: t, tags: [x]}\n",
			"4:6: rules: no default: the last rule must have no `when`, e.g. `- name: default` with `route: auto`",
		},

		// Reach.
		{
			"catch-all first", engines + "rules:\n" + fallback + "  - {name: r, when: {has_udf: true}, route: a}\n",
			`4:6: rules[1]: unreachable: rule "default" above has no condition and takes everything`,
		},
		{
			"wider interval above", rules("{name: r, when: {estimated_bytes_gt: 5 GB}, route: a}", "{name: s, when: {estimated_bytes_gte: 6 GB, has_udf: true}, route: b}"),
			`4:6: rules[1]: unreachable: rule "r" in line 3 takes everything that this one matches`,
		},
		{
			"more words above", rules("{name: r, when: {tenant: [x, Y, z]}, route: a}", "{name: s, when: {tenant: [y, x]}, route: b}"),
			`4:6: rules[1]: unreachable: rule "r" in line 3 takes everything that this one matches`,
		},
		{
			"one branch above", rules("{name: r, when: {any_of: [{has_udf: true}, {join_tables_gt: 4}]}, route: a}", "{name: s, when: {join_tables_gt: 9}, route: b}"),
			`4:6: rules[1]: unreachable: rule "r" in line 3 takes everything that this one matches`,
		},
		{
			"all branches below", rules("{name: r, when: {join_tables_gt: 4}, route: a}", "{name: s, when: {any_of: [{join_tables_gt: 9}, {join_tables: 7}]}, route: b}"),
			`4:6: rules[1]: unreachable: rule "r" in line 3 takes everything that this one matches`,
		},
		{
			"negation", rules("{name: r, when: {not: {join_tables_lte: 4}}, route: a}", "{name: s, when: {join_tables_gt: 4}, route: b}"),
			`4:6: rules[1]: unreachable: rule "r" in line 3 takes everything that this one matches`,
		},
		{
			"the same expression", rules("{name: r, when: {expr: sla_ms > 5}, route: a}", "{name: s, when: {expr: sla_ms > 5, has_udf: true}, route: b}"),
			`4:6: rules[1]: unreachable: rule "r" in line 3 takes everything that this one matches`,
		},
		{
			"known above", rules("{name: r, when: {limit_known: true}, route: a}", "{name: s, when: {limit_gt: 5}, route: b}"),
			`4:6: rules[1]: unreachable: rule "r" in line 3 takes everything that this one matches`,
		},
		{
			"a rule that only tags", rules("{name: r, when: {has_udf: true}, route: a}", "{name: s, when: {has_udf: true}, tags: [x]}"),
			`4:6: rules[1]: unreachable: rule "r" in line 3 takes everything that this one matches`,
		},
		{"contradiction", rules("{name: r, when: {join_tables_gt: 4, join_tables_lt: 4}, route: a}"), "3:6: rules[0]: never matches: its tests contradict each other"},
		{"contradicting words", rules("{name: r, when: {all_of: [{tenant: [x, y]}, {tenant: z}]}, route: a}"), "3:6: rules[0]: never matches: its tests contradict each other"},
		{"contradicting truths", rules("{name: r, when: {all_of: [{has_udf: true}, {not: {has_udf: true}}]}, route: a}"), "3:6: rules[0]: never matches: its tests contradict each other"},
		{"contradicting known", rules("{name: r, when: {limit_known: false, limit_gt: 5}, route: a}"), "3:6: rules[0]: never matches: its tests contradict each other"},

		// Thresholds.
		{"no such threshold", own("t: {value: 5, min: 1, max: 9}", "join_tables_gt: $u, limit_gt: $t"), `4:38: rules[0].when.join_tables_gt: no such threshold as "u"; known are heavy_bytes, heavy_join_tables, history_min_runs, memory_kill_forgiven_after, sla_target, t, unseen_queue_ms`},
		{"out of range", own("t: {value: 50 GB, min: 1 GB, max: 20 GB}", "estimated_bytes_gt: $t"), "2:18: thresholds.t: 50 GB is outside the range 1 GB to 20 GB"},
		{"range upside down", own("t: {value: 5, min: 9, max: 1}", "limit_gt: $t"), "2:18: thresholds.t: its min 9 is above its max 1"},
		{"without a range", own("t: {value: 5, min: 1}", "limit_gt: $t"), "2:14: thresholds.t: `max` is missing: a threshold of your own has a value, a min and a max"},
		{"a built-in one misspelt", own("heavy_byte: 5 GB", "limit_gt: 5"), "2:14: thresholds.heavy_byte: unknown threshold; did you mean heavy_bytes?; a threshold of your own is a mapping: {value: 50 GB, min: 1 GB, max: 1 TB}"},
		{"built-in out of range", own("sla_target: 1.5", "limit_gt: 5"), "2:26: thresholds.sla_target: 1.5 is outside the range 0.01 to 0.999"},

		// Latches.
		{"leave not below enter", latch("watch: a_queue_wait_ms, enter_gte: 500, leave_lt: 500"), "2:65: latches.l.leave_lt: leave (500) must be below enter (500), or it would go on and off"},
		{"leave not above enter", latch("watch: a_done_per_second, enter_lt: 5, leave_gt: 4"), "2:64: latches.l.leave_gt: leave (4) must be above enter (5), or it would go on and off"},
		{"both the same way", latch("watch: a_load, enter_gte: 2, leave_gt: 1"), "2:44: latches.l.leave_gt: what enters above must leave below, and the other way round"},
		{"no leave", latch("watch: a_load, enter_gte: 2"), "2:11: latches.l: needs exactly one of leave_gte, leave_gt, leave_lte, leave_lt (or leave for true and false), has 0"},
		{"two enters", latch("watch: a_load, enter_gte: 2, enter_gt: 3, leave_lt: 1"), "2:11: latches.l: needs exactly one of enter_gte, enter_gt, enter_lte, enter_lt (or enter for true and false), has 2"},
		{"not a signal", latch("watch: estimated_bytes, enter_gte: 2, leave_lt: 1"), `2:22: latches.l.watch: "estimated_bytes" is no fact of a pool, and signals alone move a latch`},
		{"compares a truth", latch("watch: a_healthy, enter_gte: 1, leave: true"), "2:33: latches.l.enter_gte: a_healthy is true or false: use enter and leave without a comparison"},
		{"no hysteresis", latch("watch: a_healthy, enter: false, leave: true, leave_hold_seconds: 0"), "2:11: latches.l: without a hold or a number of samples it is no more than a_healthy"},
		{"leaves where it enters", latch("watch: a_healthy, enter: true, leave: true"), "2:53: latches.l.leave: it would leave where it enters"},
		{"kept too long", latch("watch: a_load, enter_gte: 2, leave_lt: 1, keep_seconds: 90000"), "2:11: latches.l: keep_seconds must be above 0, at least as long as the holds (30s) and at most 30m0s"},
		{"a latch's name", engines + "latches: {has_udf: {watch: a_load, enter_gte: 2, leave_lt: 1}}\nrules:\n" + fallback, `2:11: latches.has_udf: the name "has_udf" is taken`},
		{"reads as a comparison", engines + "latches: {busy_lt: {watch: a_load, enter_gte: 2, leave_lt: 1}}\nrules:\n" + fallback, `2:11: latches.busy_lt: the name would read as a comparison of "busy" (_lt)`},

		// Tenants.
		{"nothing of its own", engines + "rules:\n" + fallback + "tenants: {t: {}}\n", "4:11: tenants.t: the tenant has nothing of its own"},
		{
			"a new threshold", engines + "rules:\n" + fallback + "tenants: {t: {thresholds: {mine: 5}}}\n",
			"4:28: tenants.t.thresholds.mine: unknown threshold; known are heavy_bytes, heavy_join_tables, history_min_runs, memory_kill_forgiven_after, sla_target, unseen_queue_ms; a tenant can only override what `thresholds` declares",
		},
		{"out of its range", own("t: {value: 5, min: 1, max: 9}", "limit_gt: $t") + "tenants: {x: {thresholds: {t: 10}}}\n", "6:31: tenants.x.thresholds.t: 10 is outside the range 1 to 9"},
		{
			"a name of the policy's", engines + "rules:\n" + fallback + "tenants: {t: {rules: [{name: default, when: {has_udf: true}, route: a}]}}\n",
			`4:24: tenants.t.rules[0]: the name "default" is used by the rule in line 3 already`,
		},
		{
			"a catch-all first", engines + "rules:\n" + fallback + "tenants:\n  t:\n    rules:\n      - {name: q, route: a}\n      - {name: r, when: {has_udf: true}, route: a}\n",
			`8:10: tenants.t.rules[1]: unreachable: rule "q" above has no condition and takes everything`,
		},

		// Expressions.
		{"no such name", rules("{name: r, when: {expr: 'estimated_bites > 5'}, route: a}"), `3:29: rules[0].when.expr: no such fact as "estimated_bites"; did you mean estimated_bytes?`},
		{"not a truth", rules("{name: r, when: {expr: join_tables + 1.0}, route: a}"), "3:28: rules[0].when.expr: the expression is double, it must be true or false (bool)"},
		{"types", rules(`{name: r, when: {expr: "tenant > 5"}, route: a}`), "3:36: rules[0].when.expr: found no matching overload for '_>_' applied to '(string, int)'"},
		{"syntax", rules(`{name: r, when: {expr: "tenant =="}, route: a}`), ""},
		{"too costly", rules(`{name: r, when: {expr: "tables.all(a, tables.all(b, tables.all(c, a != b + c)))"}, route: a}`), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := faultsOf(t, c.text)
			if c.want == "" { // CEL's words are not ours to fix
				require.NotEmpty(t, got)
				require.Contains(t, got[0], "rules[0].when.expr: ")
				return
			}
			require.Equal(t, []string{c.want}, got)
		})
	}
}

// TestNotAFault has what looks like a fault and is none.
func TestNotAFault(t *testing.T) {
	rules := func(lines ...string) string {
		return engines + "rules:\n  - " + strings.Join(lines, "\n  - ") + "\n" + fallback
	}
	for name, text := range map[string]string{
		"narrower above":          rules("{name: r, when: {estimated_bytes_gt: 6 GB}, route: a}", "{name: s, when: {estimated_bytes_gt: 5 GB}, route: b}"),
		"missing below":           rules("{name: r, when: {limit_gt: 5}, route: a}", "{name: s, when: {limit_gt: 6}, on_missing: match, route: b}"),
		"missing test below":      rules("{name: r, when: {limit_gt: 5}, route: a}", "{name: s, when: {limit_gt: {value: 6, on_missing: match}}, route: b}"),
		"negation leaves missing": rules("{name: r, when: {limit_lte: 5}, route: a}", "{name: s, when: {not: {limit_lte: {value: 5, on_missing: no_match}}}, route: b}"),
		"tags are many":           rules("{name: r, when: {all_of: [{client_tag: x}, {client_tag: y}]}, route: a}"),
		"another of many":         rules("{name: r, when: {not: {client_tag: [y]}}, route: a}", "{name: s, when: {client_tag: x}, route: b}"),
		"above only tags":         rules("{name: r, when: {has_udf: true}, tags: [x]}", "{name: s, when: {has_udf: true}, route: b}"),
		"a tag between":           rules("{name: r, when: {rule_tags: x}, route: a}", "{name: t, when: {has_udf: true}, tags: [x]}", "{name: s, when: {rule_tags: x}, route: b}"),
		"a tenant's number": engines + "thresholds: {t: {value: 5, min: 1, max: 9}}\nrules:\n  - {name: r, when: {limit_gt: $t}, route: a}\n  - {name: s, when: {limit_gt: 6}, route: b}\n" +
			fallback + "tenants: {x: {thresholds: {t: 8}}}\n",
		"anchors": "engines: {a: &e {kind: x, slots: 2}, b: {<<: *e, kind: y}, c: {<<: [*e, {kind: z, slots: 3}]}}\nrules:\n" +
			"  - {name: r, when: &w {has_udf: true}, route: a, tags: &t [x, y]}\n  - {name: s, when: {not: *w, tenant: *t}, route: b}\n" + fallback,
	} {
		t.Run(name, func(t *testing.T) { require.Empty(t, faultsOf(t, text)) })
	}
}

func TestAliases(t *testing.T) {
	p, err := policy.Load("p", []byte("engines: {a: &e {kind: x, slots: 2, spills: true}, b: {<<: *e, kind: y}}\nrules:\n"+fallback))
	require.NoError(t, err)
	require.Equal(t, "y", p.Pools[1].Kind, "its own key wins")
	require.Equal(t, 2, p.Pools[1].Slots)
	require.True(t, p.Pools[1].Spills)

	bomb := "x0: &x0 [a]\n"
	for i := 1; i < 40; i++ {
		bomb += fmt.Sprintf("x%d: &x%d [*x%d, *x%d, *x%d, *x%d]\n", i, i, i-1, i-1, i-1, i-1)
	}
	for name, c := range map[string]struct{ text, want string }{
		"unknown":    {engines + "rules: *nowhere\n", "refers to no anchor above it"},
		"itself":     {engines + "rules: &r [*r]\n", "stands inside of what it stands for"},
		"twice":      {"engines: {a: &e {kind: x}, b: &e {kind: y}}\nrules:\n" + fallback, "&e stands here twice"},
		"bomb":       {bomb, "more than 200000 values"},
		"merge list": {"engines: {a: {kind: x, <<: [1]}}\nrules:\n" + fallback, "<< merges a mapping"},
		"merge text": {"engines: {a: {kind: x, <<: y}}\nrules:\n" + fallback, "<< merges a mapping"},
	} {
		t.Run(name, func(t *testing.T) {
			got := faultsOf(t, c.text)
			require.NotEmpty(t, got)
			require.Contains(t, strings.Join(got, "\n"), c.want)
		})
	}
}

func TestTextsThatWouldHurtTheParser(t *testing.T) {
	for name, text := range map[string]string{
		"brackets": strings.Repeat("[", 1_000_000), "braces": strings.Repeat("{a: ", 100_000), "dashes": strings.Repeat("- ", 30_000),
		"long line": "a: " + strings.Repeat("x", 100_000), "large": strings.Repeat("# nothing\n", 500_000), "zero": "a: \x00",
		"two documents": engines + "---\n" + engines, "nothing": "# nothing\n",
	} {
		t.Run(name, func(t *testing.T) { require.NotEmpty(t, faultsOf(t, text)) })
	}
}

func TestFaultsAreErrors(t *testing.T) {
	_, err := policy.Load("p.yaml", []byte("rules: ["))
	var faults policy.FaultList
	require.ErrorAs(t, err, &faults)
	require.Equal(t, 1, faults[0].Line)
	require.Contains(t, faults[0].Message, "not YAML")
	_, err = policy.Load("p.yaml", []byte("engines:\n  a: {kind: x}\n b: 3\n"))
	require.ErrorAs(t, err, &faults)
	require.Equal(t, 3, faults[0].Line, "the parser knows the place: %s", err)
}
