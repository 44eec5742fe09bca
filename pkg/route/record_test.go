package route_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/pointsman/pointsman/pkg/budget"
	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/fingerprint/lex"
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
