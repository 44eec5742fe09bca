package classify_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/classify"
	"github.com/pointsman/pointsman/pkg/policy"
	"github.com/pointsman/pointsman/pkg/signal"
)

func TestClassify(t *testing.T) {
	at := time.Unix(0, 0)
	n := func(v float64) signal.Value { return signal.Of(v, signal.Count, "test", at) }
	th := policy.Thresholds{HeavyBytes: 1000, HeavyJoinTables: 4}
	for _, c := range []struct {
		name    string
		f       classify.Features
		verdict classify.Verdict
		rule    string
	}{
		{"small", classify.Features{ScanBytes: n(999), JoinTables: n(2)}, classify.Light, ""},
		{"zero bytes are known", classify.Features{ScanBytes: n(0)}, classify.Light, ""},
		{"unknown is not light", classify.Features{}, classify.Unclear, "scan_unknown"},
		{"a stale size is not known", classify.Features{ScanBytes: n(1).Aged(at.Add(time.Hour), time.Second)}, classify.Unclear, "scan_unknown"},
		{"killed before", classify.Features{ScanBytes: n(1), MemoryKills: n(1)}, classify.Heavy, "memory_killed_before"},
		{"peak over the light pools", classify.Features{ScanBytes: n(1), PeakMemoryBytes: n(11), LightMemoryBytes: n(10)}, classify.Heavy, "peak_memory"},
		{"an aggregate answers it, whatever the raw scan", classify.Features{ScanBytes: n(9999), JoinTables: n(9), Covered: n(1)}, classify.Light, "reflection"},
		{"no aggregate answers it", classify.Features{ScanBytes: n(9999), Covered: n(0)}, classify.Heavy, "scan_bytes"},
		{"an aggregate, and it was killed all the same", classify.Features{MemoryKills: n(1), Covered: n(1)}, classify.Heavy, "memory_killed_before"},
		{"large", classify.Features{ScanBytes: n(1001)}, classify.Heavy, "scan_bytes"},
		{"wide join", classify.Features{ScanBytes: n(1), JoinTables: n(5)}, classify.Heavy, "join_tables"},
		{"wide join of unknown size", classify.Features{JoinTables: n(5)}, classify.Heavy, "join_tables"},
	} {
		t.Run(c.name, func(t *testing.T) {
			rule := classify.Classify(&c.f, &th)
			require.Equal(t, c.verdict, rule.Verdict)
			require.Equal(t, c.rule, rule.ID)
			require.NotEmpty(t, rule.Why(&c.f, &th))
		})
	}
}
