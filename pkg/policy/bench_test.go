package policy_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/policy"
)

// many is a policy of 20 pools, a latch for each, and so many rules with conditions of several tests.
func many(rules int, expressions bool) string {
	var b strings.Builder
	b.WriteString("engines:\n")
	for i := range 20 {
		fmt.Fprintf(&b, "  pool%d: {kind: clickhouse, slots: 8, max_queue_wait_ms: 20000, bytes_per_second: 2 GB}\n", i)
	}
	b.WriteString("thresholds:\n  small: {value: 50 GB, min: 1 GB, max: 1 TB}\nlatches:\n")
	for i := range 20 {
		fmt.Fprintf(&b, "  full%d: {watch: pool%d_queue_wait_ms, enter_gte: 2000, leave_lt: 500}\n", i, i)
	}
	b.WriteString("rules:\n")
	for i := range rules {
		expr := ""
		if expressions && i%10 == 0 {
			expr = fmt.Sprintf("expr: 'tables.exists(t, t.startsWith(\"raw%d.\"))', ", i)
		}
		fmt.Fprintf(&b, `  - name: rule_%d
    when:
      %sclient_tag: [tag%d, other%d]
      estimated_bytes_gte: %d GB
      any_of:
        - full%d: true
        - pool%d_queue_wait_ms_gt: %d
        - all_of: [{has_udf: true}, {not: {tenant: [t%d, t%d]}}]
    route: pool%d
    reason: "because of this and that"
`, i, strings.ReplaceAll(strings.TrimSuffix(expr, ", "), "\n", "")+map[bool]string{true: "\n      ", false: ""}[expr != ""], i, i, i+1, i%20, i%20, 100+i, i, i+1, i%20)
	}
	b.WriteString("  - {name: default, route: auto}\n")
	return b.String()
}

// plain is a policy of so many rules of one line.
func plain(rules int) string {
	var b strings.Builder
	b.WriteString(engines + "rules:\n")
	for i := range rules {
		fmt.Fprintf(&b, "  - {name: r%d, when: {client_tag: tag%d, estimated_bytes_gte: %d GB}, route: a}\n", i, i, i+1)
	}
	return b.String() + fallback
}

// BenchmarkLoad loads a policy of 500 rules; a reload must take less than 50 ms.
func BenchmarkLoad(b *testing.B) {
	for name, text := range map[string]string{
		"rules=500": many(500, false), "rules=500,expressions=50": many(500, true), "rules=500,plain": plain(500),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if _, err := policy.Load("p", []byte(text)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkMatch matches the last of 50 and of 500 rules.
func BenchmarkMatch(b *testing.B) {
	for _, rules := range []int{50, 500} {
		b.Run(fmt.Sprintf("rules=%d", rules), func(b *testing.B) {
			p, err := policy.Load("p", []byte(many(rules, false)))
			require.NoError(b, err)
			b.ReportAllocs()
			for b.Loop() {
				f := p.NewFacts()
				f.Set(policy.ClientTag, policy.WordsFact("interactive", "bi"))
				f.Set(policy.EstimatedBytes, policy.NumberFact(3e12))
				f.Set(policy.Tenant, policy.WordFact("acme"))
				if m := p.Match(f); m.Rule.Name != "default" {
					b.Fatal(m.Rule.Name)
				}
			}
		})
	}
}

func BenchmarkExpression(b *testing.B) {
	p, err := policy.Load("p", []byte(one(`{expr: 'tables.exists(t, t.startsWith("raw.")) && estimated_bytes > 5.0'}`)))
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		f := p.NewFacts()
		f.Set(policy.Tables, policy.WordsFact("sales.orders", "raw.events"))
		f.Set(policy.EstimatedBytes, policy.NumberFact(3e12))
		if m := p.Match(f); m.Rule.Name != "r" {
			b.Fatal(m.Rule.Name)
		}
	}
}

// TestLoadIsQuick is a coarse guard: ten times what is measured on a slow machine. The benchmark has the number.
func TestLoadIsQuick(t *testing.T) {
	text := []byte(many(500, false))
	_, err := policy.Load("p", text)
	require.NoError(t, err)
	best := time.Hour
	for range 5 {
		start := time.Now()
		_, _ = policy.Load("p", text)
		best = min(best, time.Since(start))
	}
	require.Less(t, best, 500*time.Millisecond)
}
