// Package classify says before anything runs whether a query is light or heavy, by a table of rules a person can read.
//
// It is core. Heavy recall comes before light precision: one heavy query in a pool for light ones hurts everybody in it,
// a light query in a heavy pool only itself. What follows from a verdict is pkg/route's.
package classify

import (
	"fmt"

	"github.com/pointsman/pointsman/pkg/policy"
	"github.com/pointsman/pointsman/pkg/signal"
)

// Verdict is what a query is expected to be.
type Verdict string

// The verdicts.
const (
	Light Verdict = "light"
	Heavy Verdict = "heavy"
	// Unclear means that too little is known to call the query light.
	Unclear Verdict = "unclear"
)

// Features are what the rules look at. Absent values are unknown, and no rule fires on them.
type Features struct {
	ScanBytes  signal.Value
	JoinTables signal.Value
	// MemoryKills counts the runs of this fingerprint that a memory limit killed on any pool and that no later success
	// outweighs.
	MemoryKills signal.Value
	// PeakMemoryBytes is the most this fingerprint has used anywhere; LightMemoryBytes what the smallest pool allows.
	PeakMemoryBytes  signal.Value
	LightMemoryBytes signal.Value
	// Covered is 1 when a materialised aggregate can answer it.
	Covered signal.Value
}

// Rule is one row of the table.
type Rule struct {
	ID      string
	Verdict Verdict
	When    func(*Features, *policy.Thresholds) bool
	Why     func(*Features, *policy.Thresholds) string
}

// Rules are tried in order, the first that fires decides.
var Rules = []Rule{
	{
		ID: "memory_killed_before", Verdict: Heavy,
		When: func(f *Features, _ *policy.Thresholds) bool { return over(f.MemoryKills, 0) },
		Why: func(f *Features, _ *policy.Thresholds) string {
			return fmt.Sprintf("a memory limit killed it before (%s)", f.MemoryKills)
		},
	},
	{
		ID: "reflection", Verdict: Light,
		When: func(f *Features, _ *policy.Thresholds) bool { return over(f.Covered, 0) },
		Why:  func(*Features, *policy.Thresholds) string { return "a materialised aggregate answers it" },
	},
	{
		ID: "peak_memory", Verdict: Heavy,
		When: func(f *Features, _ *policy.Thresholds) bool {
			limit, ok := f.LightMemoryBytes.Get()
			return ok && limit > 0 && over(f.PeakMemoryBytes, limit)
		},
		Why: func(f *Features, _ *policy.Thresholds) string {
			return fmt.Sprintf("it has used %s before, over the light pools' %s", f.PeakMemoryBytes, f.LightMemoryBytes)
		},
	},
	{
		ID: "scan_bytes", Verdict: Heavy,
		When: func(f *Features, t *policy.Thresholds) bool { return over(f.ScanBytes, float64(t.HeavyBytes)) },
		Why: func(f *Features, t *policy.Thresholds) string {
			return fmt.Sprintf("it scans %s, over the threshold of %d bytes", f.ScanBytes, t.HeavyBytes)
		},
	},
	{
		ID: "join_tables", Verdict: Heavy,
		When: func(f *Features, t *policy.Thresholds) bool { return over(f.JoinTables, float64(t.HeavyJoinTables)) },
		Why: func(f *Features, t *policy.Thresholds) string {
			return fmt.Sprintf("it joins %s tables, over the threshold of %d", f.JoinTables, t.HeavyJoinTables)
		},
	},
	{
		ID: "scan_unknown", Verdict: Unclear,
		When: func(f *Features, _ *policy.Thresholds) bool { _, ok := f.ScanBytes.Get(); return !ok },
		Why:  func(*Features, *policy.Thresholds) string { return "nothing is known of its size" },
	},
}

// light is what a query is without a rule that fires.
var light = Rule{Verdict: Light, Why: func(*Features, *policy.Thresholds) string { return "no sign of weight" }}

// Classify returns the rule that gives the verdict. Without a rule that fires a query is light.
func Classify(f *Features, t *policy.Thresholds) *Rule {
	for i := range Rules {
		if Rules[i].When(f, t) {
			return &Rules[i]
		}
	}
	return &light
}

func over(v signal.Value, limit float64) bool {
	n, ok := v.Get()
	return ok && n > limit
}
