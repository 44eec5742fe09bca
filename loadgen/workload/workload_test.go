package workload

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/pointsman/pointsman/pkg/query"
)

var update = flag.Bool("update", false, "rewrite golden files")

func generate(t *testing.T, opts Options) []Arrival {
	t.Helper()
	arrivals, err := Generate(opts)
	require.NoError(t, err)
	return arrivals
}

func byKind(arrivals []Arrival) map[Kind][]Arrival {
	out := map[Kind][]Arrival{}
	for _, a := range arrivals {
		out[a.Kind] = append(out[a.Kind], a)
	}
	return out
}

func TestDefaultWorkload(t *testing.T) {
	arrivals := generate(t, Options{Seed: 1})
	require.Len(t, arrivals, 600)
	counts := map[Kind]int{}
	for kind, list := range byKind(arrivals) {
		counts[kind] = len(list)
	}
	require.Empty(t, cmp.Diff(map[Kind]int{
		CAB: 456, Dashboard: 40, Transformation: 1, Scan: 5, AgentStep: 22, Runaway: 30, Medium: 6, Burst: 32, Tight: 8,
	}, counts))
}

// check holds for every workload.
func check(t require.TestingT, arrivals []Arrival, window time.Duration) {
	ids, tenants := map[string]bool{}, Tenants()
	for i, a := range arrivals {
		require.NoError(t, a.Task.Validate(query.Limits{}))
		require.False(t, ids[a.Task.ID], "id %s twice", a.Task.ID)
		ids[a.Task.ID] = true
		require.GreaterOrEqual(t, a.At, time.Duration(0))
		require.LessOrEqual(t, a.At, time.Duration(float64(window)*0.7), "%s comes too late to finish", a.Kind)
		if i > 0 {
			require.GreaterOrEqual(t, a.At, arrivals[i-1].At)
		}
		require.Equal(t, "clickhouse", a.Task.Dialect)
		require.NotNil(t, a.Task.SLASeconds)
		require.LessOrEqual(t, *a.Task.SLASeconds, *a.Task.TimeoutSeconds)
		require.Contains(t, tenants, a.Task.Tenant)
		require.NotEmpty(t, a.Task.Tags)
		require.False(t, placeholder.MatchString(a.Task.SQL), a.Task.SQL)
	}
}

func TestAnyWorkload(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		opts := Options{
			Window: time.Duration(rapid.Int64Range(int64(minWindow), int64(10*time.Minute)).Draw(t, "window")),
			Count:  rapid.IntRange(fixedArrivals()+minTrace, 900).Draw(t, "count"),
			Seed:   rapid.Uint64().Draw(t, "seed"),
			Prefix: rapid.StringMatching(`[a-z0-9._-]{1,20}`).Draw(t, "prefix"),
		}
		arrivals, err := Generate(opts)
		require.NoError(t, err)
		require.Len(t, arrivals, opts.Count)
		check(t, arrivals, opts.Window)
		again, err := Generate(opts)
		require.NoError(t, err)
		require.Empty(t, cmp.Diff(arrivals, again))
	})
}

func TestMoreThanTheTraceHas(t *testing.T) {
	check(t, generate(t, Options{Seed: 1, Count: 12_000}), time.Minute)
}

func TestCountDoesNotChangeTheOtherParts(t *testing.T) {
	small, large := byKind(generate(t, Options{Seed: 1, Count: 400})), byKind(generate(t, Options{Seed: 1, Count: 900}))
	for _, kind := range []Kind{Dashboard, Transformation, Scan, AgentStep, Runaway, Medium, Burst, Tight} {
		require.Len(t, large[kind], len(small[kind]))
		for i := range small[kind] {
			a, b := small[kind][i], large[kind][i]
			a.Task.ID, b.Task.ID = "", "" // ids number the whole workload
			require.Empty(t, cmp.Diff(a, b))
		}
	}
}

func TestSeedAndPrefix(t *testing.T) {
	a, b := generate(t, Options{Seed: 1}), generate(t, Options{Seed: 2})
	require.NotEqual(t, a[100].Task.SQL, b[100].Task.SQL)
	for i, x := range generate(t, Options{Seed: 1, Prefix: "run7"}) {
		require.True(t, strings.HasPrefix(x.Task.ID, "run7-1-"))
		require.Equal(t, a[i].Task.SQL, x.Task.SQL, "only ids depend on the prefix")
		if x.Task.Session != nil {
			require.True(t, strings.HasPrefix(x.Task.Session.ID, "run7-1-"))
		}
	}
}

func TestMondayMinute(t *testing.T) {
	parts := byKind(generate(t, Options{Seed: 1}))

	sessions := map[string]int{}
	for _, a := range parts[Dashboard] {
		require.Contains(t, a.Task.Tags, "interactive")
		require.Equal(t, query.Human, a.Task.SessionClass())
		require.Contains(t, []float64{1, 2}, *a.Task.SLASeconds)
		sessions[a.Task.SessionID()]++
	}
	require.Len(t, sessions, dashboardLoads)

	agents := map[string]bool{}
	questions := map[string]bool{}
	for _, a := range parts[AgentStep] {
		require.Equal(t, query.Agent, a.Task.SessionClass())
		agents[a.Task.SessionID()] = true
		questions[a.Task.SQL] = true
	}
	require.Len(t, agents, 1, "one session, so that its queries stay in order on one partition")
	require.Len(t, questions, 22, "each is another question")
	require.Contains(t, parts[AgentStep][0].Task.SQL, "system.columns")
	require.Contains(t, parts[AgentStep][11].Task.SQL, "SELECT *", "the twelfth is the one that doesn't prune")

	texts := map[string]bool{}
	for i, a := range parts[Scan] {
		require.Contains(t, a.Task.Tags, "adhoc")
		texts[a.Task.SQL] = true
		if i > 0 {
			require.Greater(t, a.At-parts[Scan][i-1].At, 7*time.Second, "time for history to be written")
		}
	}
	require.Len(t, texts, 5, "other days each time, so that only the fingerprint tells that it is the same query")

	require.Contains(t, parts[Transformation][0].Task.Tags, "batch")
	require.Less(t, parts[Transformation][0].At, parts[Dashboard][0].At, "it is running when the dashboards come")
}

func TestBurstIsABurst(t *testing.T) {
	parts := byKind(generate(t, Options{Seed: 1}))
	burst, tight := parts[Burst], parts[Tight]
	require.Less(t, burst[len(burst)-1].At-burst[0].At, 2*time.Second)
	require.Greater(t, tight[0].At, burst[3].At, "some queue before the first tight query")
	require.Less(t, tight[len(tight)-1].At-burst[0].At, 2500*time.Millisecond)
	for _, a := range tight {
		require.True(t, *a.Task.SLASeconds >= 2 && *a.Task.SLASeconds <= 3)
	}
	require.Less(t, parts[Medium][len(parts[Medium])-1].At, burst[0].At, "history comes first")
}

// The thinned trace keeps its proportions: every template, the busy tenants busiest, arrivals over the whole span.
func TestTraceKeepsItsForm(t *testing.T) {
	traced := byKind(generate(t, Options{Seed: 1}))[CAB]
	templates, tenants := map[string]int{}, map[string]int{}
	for _, a := range traced {
		templates[a.Task.Tags[1]]++
		tenants[a.Task.Tenant]++
	}
	require.Len(t, templates, Templates)
	require.InDelta(t, 0.44, float64(tenants["tenant_08"])/float64(len(traced)), 0.06)
	require.Less(t, traced[0].At, time.Second)
	require.Greater(t, traced[len(traced)-1].At, 41*time.Second)
}

func TestBadOptions(t *testing.T) {
	for name, opts := range map[string]Options{
		"window short": {Window: time.Second},
		"count small":  {Count: 10},
		"count huge":   {Count: 1 << 40},
		"prefix":       {Prefix: "a b"},
		"prefix long":  {Prefix: strings.Repeat("x", 65)},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Generate(opts)
			require.Error(t, err)
		})
	}
}

// The contract is the JSON that goes to the topic: these lines must not change by accident.
func TestGoldenTasks(t *testing.T) {
	var got bytes.Buffer
	seen := map[Kind]bool{}
	for _, a := range generate(t, Options{Seed: 1}) {
		if !seen[a.Kind] {
			seen[a.Kind] = true
			raw, err := a.Task.MarshalJSON()
			require.NoError(t, err)
			got.Write(append(raw, '\n'))
		}
	}
	golden := filepath.Join("testdata", "first_of_each_kind.ndjson")
	if *update {
		require.NoError(t, os.WriteFile(golden, got.Bytes(), 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(string(want), got.String()))
}

func TestFixedArrivalsCountsThem(t *testing.T) {
	n := 0
	for kind, list := range byKind(generate(t, Options{Seed: 9})) {
		if kind != CAB {
			n += len(list)
		}
	}
	require.Equal(t, n, fixedArrivals())
	require.Len(t, texts("agent"), agentSteps)
	require.Len(t, texts("dashboard"), dashboardTiles)
	require.Len(t, texts("cab"), Templates)
	require.True(t, slices.IsSorted(scanStarts))
}
