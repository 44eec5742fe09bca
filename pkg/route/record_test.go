package route_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/pointsman/pointsman/pkg/budget"
	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/fingerprint/lex"
	"github.com/pointsman/pointsman/pkg/policy"
	"github.com/pointsman/pointsman/pkg/query"
	"github.com/pointsman/pointsman/pkg/route"
	"github.com/pointsman/pointsman/pkg/shape"
)

// recorded writes an input, reads it, and gives it its policy back.
func recorded(t require.TestingT, in route.Input) route.Input {
	data, err := event.Marshal(in)
	require.NoError(t, err)
	var back route.Input
	require.NoError(t, json.Unmarshal(data, &back))
	require.Equal(t, in.Policy.Hash, back.PolicyHash)
	require.Nil(t, back.Policy)
	back.Policy = in.Policy
	again, err := event.Marshal(back)
	require.NoError(t, err)
	require.Equal(t, string(data), string(again), "what was read writes the same")
	return back
}

// texts are queries whose shapes have everything in them.
var texts = []string{
	"SELECT 1",
	"SELECT a, count(DISTINCT b) FROM db.s.t JOIN u USING (k) WHERE d BETWEEN '2026-01-01' AND '2026-02-01' AND x IN (1, 2.50, 'ü') GROUP BY a LIMIT 10",
	"SELECT row_number() OVER (PARTITION BY a ORDER BY b), my_udf(c) FROM t WHERE c IS NOT NULL AND flag = true OFFSET 3",
	"INSERT INTO w SELECT * FROM t UNION ALL SELECT * FROM u",
	"WITH RECURSIVE r AS (SELECT 1) SELECT * FROM r, t WHERE a < 9223372036854775807",
	"SELECT '<&>\u2028' FROM t WHERE name LIKE 'a%'", "SELECT (", "",
}

// everything is a policy with a part of each kind.
const everything = `
engines:
  interactive: {kind: clickhouse, slots: 4, max_memory_per_query: 150 MB, max_queue_wait_ms: 9000, bytes_per_second: 100 MB, cost_per_second: 1}
  batch: {kind: clickhouse, slots: 2, spills: true, sleeps_at_zero: true, wake_ms: 4000, bytes_per_second: 60 MB, cost_per_second: 2}
thresholds: {large: {value: 50 GB, min: 1 GB, max: 1 TB}}
latches:
  spill: {watch: interactive_queue_wait_ms, enter_gte: 5000, leave_lte: 1000}
rules:
  - {name: tag, when: {has_group_by: true}, tags: [grouped]}
  - {name: spilled, when: {spill: true}, route: batch, fallback: interactive}
  - {name: large, when: {estimated_bytes_gt: $large}, route: batch}
  - {name: hinted, when: {expr: "attempt > 1 && engine_hint == 'batch'"}, route: batch, strict: true}
  - {name: default, route: auto}
exploration: {share: 0.2, new_share: 0.2}
budgets: {agent_session: {max_queries: 100, max_bytes: 1 TB, max_repeats: 3}, tenant: {max_queries: 10, max_concurrent: 4}}
tenants: {sales: {thresholds: {large: 2 GB}}}
defaults: {no_candidate: wait}
`

// drawnRecord varies what drawn leaves alone: the Task's optional parts, the shape, the session.
func drawnRecord(t *rapid.T, tb testing.TB) route.Input {
	in := drawn(t, tb)
	in.Task.SQL = rapid.SampledFrom(texts).Draw(t, "sql")
	in.Shape = shape.Of(in.Task.SQL, lex.Auto)
	in.Now = in.Now.Add(time.Duration(rapid.Int64Range(0, 1e9).Draw(t, "ns")))
	in.Seed = rapid.Uint64().Draw(t, "seed")
	in.Attempt = rapid.IntRange(1, 3).Draw(t, "attempt")
	if in.Attempt > 1 {
		in.LastFailure = &event.Failure{Class: "memory", Message: rapid.String().Draw(t, "message")}
		in.TaskDigest = "digest-of-the-first"
	}
	in.Task.EngineHint = rapid.SampledFrom([]string{"", "batch", "clickhouse", "nowhere"}).Draw(t, "hint")
	in.Task.Tags = rapid.SliceOfN(rapid.SampledFrom([]string{"dashboard", "etl", "ümlaut"}), 0, 3).Draw(t, "tags")
	in.Task.Extra = rapid.SampledFrom([]query.Extra{nil, {"note": json.RawMessage(`{"a": [1,  2], "big": 9007199254740993}`)}}).Draw(t, "extra")
	in.Task.Intent = rapid.SampledFrom([]json.RawMessage{nil, json.RawMessage(`{ "from": "t" }`)}).Draw(t, "intent")
	if rapid.Bool().Draw(t, "session") {
		in.Task.Session = &query.Session{ID: "s", Class: rapid.SampledFrom([]query.SessionClass{query.Agent, query.Human, ""}).Draw(t, "class")}
		in.Session = &route.SessionAccount{Usage: budget.Usage{
			Queries: rapid.Int64Range(0, 300).Draw(t, "queries"), Bytes: rapid.Int64Range(0, 1<<50).Draw(t, "used"),
			WallMs: rapid.Int64Range(0, 1e7).Draw(t, "wall"),
		}, Admitted: rapid.Bool().Draw(t, "admitted")}
	}
	in.Policy = rapid.SampledFrom([]*policy.Policy{in.Policy, load(tb, everything)}).Draw(t, "policy")
	in.Latches = rapid.MapOf(rapid.SampledFrom([]string{"spill", "another"}), rapid.Custom(func(t *rapid.T) policy.Latch {
		return policy.Latch{Known: rapid.Bool().Draw(t, "known"), On: rapid.Bool().Draw(t, "on"), Since: now, At: now, Value: 7}
	})).Draw(t, "latches")
	if rapid.Bool().Draw(t, "counted") {
		in.Tenant = &route.TenantAccount{
			WindowMs: 3_600_000, Running: rapid.Int64Range(0, 5).Draw(t, "running"), Admitted: rapid.Bool().Draw(t, "tenantAdmitted"),
			Slices: []budget.Slice{{Leaves: now.Add(time.Minute), Queries: rapid.Int64Range(0, 20).Draw(t, "tenantQueries"), Bytes: 1e9, ExecMs: 5000}},
		}
	}
	in.Inflight = rapid.MapOf(rapid.SampledFrom([]string{"interactive", "batch"}), rapid.IntRange(1, 50)).Draw(t, "inflight")
	return in
}

// TestARecordedInputDecidesTheSame is what replay stands on.
func TestARecordedInputDecidesTheSame(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		in := drawnRecord(rt, t)
		want, err := event.Marshal(route.Decide(in))
		require.NoError(rt, err)
		have, err := event.Marshal(route.Decide(recorded(rt, in)))
		require.NoError(rt, err)
		require.Equal(rt, string(want), string(have))
	})
}

// TestSignalsWrittenBeforehand: half of an input is shared by many, and written once.
func TestSignalsWrittenBeforehand(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		in := drawnRecord(rt, t)
		signals, err := json.Marshal(in.Signals)
		require.NoError(rt, err)
		data, err := in.MarshalWith(signals)
		require.NoError(rt, err)
		plain, err := event.Marshal(in)
		require.NoError(rt, err)
		require.JSONEq(rt, string(plain), string(data))
	})
}

// TestEventsAreThoseOfEncodingJSON holds what is written and read against encoding/json: records of before stay what they were, and
// their digests too.
func TestEventsAreThoseOfEncodingJSON(t *testing.T) {
	type (
		task     query.Task
		decision event.RouteDecision
		input    route.Input
	)
	first := func(rt *rapid.T, v any) string {
		var out bytes.Buffer
		enc := json.NewEncoder(&out)
		enc.SetEscapeHTML(false)
		require.NoError(rt, enc.Encode(v))
		return strings.TrimSuffix(out.String(), "\n")
	}
	rapid.Check(t, func(rt *rapid.T) {
		in := drawnRecord(rt, t)
		d := route.Decide(in)
		data, err := event.Marshal(d)
		require.NoError(rt, err)
		require.Equal(rt, first(rt, decision(d)), string(data))
		var got event.RouteDecision
		var want decision
		require.NoError(rt, got.UnmarshalJSON(data))
		require.NoError(rt, json.Unmarshal(data, &want))
		require.Equal(rt, event.RouteDecision(want), got)

		data, err = event.Marshal(in)
		require.NoError(rt, err)
		in.PolicyHash = in.Policy.Hash
		require.Equal(rt, first(rt, input(in)), string(data))
		var read route.Input
		var plain input
		require.NoError(rt, read.UnmarshalJSON(data))
		require.NoError(rt, json.Unmarshal(data, &plain))
		require.Equal(rt, route.Input(plain), read)

		in.Task.Extra = nil
		data, err = event.Marshal(in.Task)
		require.NoError(rt, err)
		require.Equal(rt, first(rt, task(in.Task)), string(data))
	})
}

// FuzzInputJSON reads whatever text as an input: what is read is written the same ever after, and decides without a panic.
func FuzzInputJSON(f *testing.F) {
	data, err := event.Marshal(input(f))
	require.NoError(f, err)
	f.Add(data)
	f.Add([]byte(`{"task":{"id":"t"},"attempt":1,"fingerprint":"","shape":{},"history":{"found":{"a|b|c":{}}},"now":"2026-01-01T00:00:00Z","seed":18446744073709551615}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var in route.Input
		if json.Unmarshal(data, &in) != nil {
			return
		}
		in.Policy = load(t, twoPools)
		want, err := event.Marshal(route.Decide(in))
		require.NoError(t, err)
		have, err := event.Marshal(route.Decide(recorded(t, in)))
		require.NoError(t, err)
		require.Equal(t, string(want), string(have))
	})
}

func TestAnInputOfTomorrowKeepsWhatWeDoNotKnow(t *testing.T) {
	in := input(t)
	data, err := event.Marshal(in)
	require.NoError(t, err)
	data = append(data[:len(data)-1], []byte(`,"moonPhase":"full"}`)...)
	var back route.Input
	require.NoError(t, json.Unmarshal(data, &back))
	require.Contains(t, back.Extra, "moonPhase")
	require.Error(t, json.Unmarshal([]byte(`[]`), &back))
	require.Error(t, json.Unmarshal([]byte(`{"now":7}`), &back))
}
