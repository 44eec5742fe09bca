package query_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/pointsman/pointsman/pkg/query"
)

const seed = `{"dataset":"orders","queryType":"aggregation","sql":"SELECT channel, SUM(payment_amount) FROM orders GROUP BY channel","tenant":"tenant_a","user":"user_1001","slaSeconds":10}`

func TestSeedRequestDecodes(t *testing.T) {
	var task query.Task
	require.NoError(t, json.Unmarshal([]byte(seed), &task))
	require.Equal(t, "orders", task.Dataset)
	require.Equal(t, 10*time.Second, task.SLA(time.Minute))
	require.Equal(t, time.Minute, task.Timeout(time.Minute), "no timeout was given: the default counts")
	require.NoError(t, task.Validate(query.Limits{}))
}

func TestUnknownFieldsSurvive(t *testing.T) {
	in := `{"sql":"SELECT 1 WHERE a<b","tenant":"t","zeta":{"b":1,"a":9007199254740993},"alpha":[1,2],"consistency":"linearizable"}`
	var task query.Task
	require.NoError(t, json.Unmarshal([]byte(in), &task))
	out, err := task.MarshalJSON()
	require.NoError(t, err)
	require.Equal(t, `{"sql":"SELECT 1 WHERE a<b","tenant":"t","consistency":"linearizable","alpha":[1,2],"zeta":{"b":1,"a":9007199254740993}}`, string(out)) //nolint:testifylint // the bytes count: order and escapes are part of the contract
}

func TestKnownFieldInAnotherCaseIsNotKeptTwice(t *testing.T) {
	var task query.Task
	require.NoError(t, json.Unmarshal([]byte(`{"SQL":"SELECT 1","Tenant":"t"}`), &task))
	require.Empty(t, task.Extra)
	require.Equal(t, "SELECT 1", task.SQL)
}

// TestUnknownFieldsAreThoseOfAMap holds the scan of members against encoding/json, over objects of every layout.
func TestUnknownFieldsAreThoseOfAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.Deferred(func() *rapid.Generator[any] {
			return rapid.OneOf(
				rapid.Map(rapid.String(), func(s string) any { return s }), rapid.Map(rapid.Float64Range(-1e9, 1e9), func(f float64) any { return f }),
				rapid.Map(rapid.Bool(), func(b bool) any { return b }), rapid.Just[any](nil),
				rapid.Map(rapid.SliceOfN(rapid.String(), 0, 3), func(s []string) any { return s }),
				rapid.Map(rapid.MapOfN(rapid.String(), rapid.String(), 0, 3), func(m map[string]string) any { return m }),
			)
		})
		object := rapid.MapOfN(rapid.String(), value, 0, 6).Draw(t, "object")
		data, err := json.Marshal(object)
		require.NoError(t, err)
		if rapid.Bool().Draw(t, "spread") {
			data, err = json.MarshalIndent(object, " ", "\t")
			require.NoError(t, err)
		}
		var want map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(data, &want))
		var none struct{}
		got, err := query.DecodeObject(data, &none)
		require.NoError(t, err)
		require.Len(t, got, len(want))
		for name, raw := range want {
			require.Equal(t, string(raw), string(got[name]), name)
		}
	})
}

func FuzzDecodeObject(f *testing.F) {
	for _, in := range []string{seed, `{}`, `{"a":{"b":[1,"}"]},"\u0062":"\\\""}`, ` { "x" : -1e3 , "y" : null } `, `{"a":1}x`, `[`, `{"a"`} {
		f.Add(in)
	}
	f.Fuzz(func(t *testing.T, in string) {
		var none struct{}
		got, err := query.DecodeObject([]byte(in), &none)
		var want map[string]json.RawMessage
		if mapErr := json.Unmarshal([]byte(in), &want); (mapErr == nil && want != nil) != (err == nil) {
			t.Fatalf("%v, but as a map %v", err, mapErr)
		}
		if err == nil && len(got) != len(want) {
			t.Fatalf("%v, but as a map %v", got, want)
		}
		if err != nil {
			return
		}
		type plain query.Task
		var task query.Task
		var first plain
		err = task.UnmarshalJSON([]byte(in))
		if wrong := json.Unmarshal([]byte(in), &first); wrong != nil {
			require.Error(t, err, "a Task is read as encoding/json reads it")
			require.Equal(t, query.DescribeJSONError(wrong), query.DescribeJSONError(err))
			return
		}
		require.NoError(t, err)
		task.Extra = nil
		require.Equal(t, query.Task(first), task)
	})
}

func TestRoundTripIsStable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		task := query.Task{
			ID: rapid.StringMatching(`[a-z0-9]{0,8}`).Draw(t, "id"), SQL: rapid.String().Draw(t, "sql"),
			Tenant: rapid.String().Draw(t, "tenant"), Tags: rapid.SliceOfN(rapid.String(), 0, 3).Draw(t, "tags"),
		}
		if len(task.Tags) == 0 {
			task.Tags = nil
		}
		first, err := json.Marshal(task)
		require.NoError(t, err)
		var back query.Task
		require.NoError(t, json.Unmarshal(first, &back))
		second, err := json.Marshal(back)
		require.NoError(t, err)
		require.Equal(t, string(first), string(second))
	})
}

func TestValidate(t *testing.T) {
	f := func(v float64) *float64 { return &v }
	ok := query.Task{SQL: "SELECT 1", Tenant: "t"}
	with := func(edit func(*query.Task)) query.Task { c := ok; edit(&c); return c }
	for _, c := range []struct {
		name  string
		task  query.Task
		field string
	}{
		{"no sql and no intent", with(func(t *query.Task) { t.SQL = " \n" }), "sql"},
		{"null intent is none", with(func(t *query.Task) { t.SQL = ""; t.Intent = json.RawMessage("null") }), "sql"},
		{"no tenant", with(func(t *query.Task) { t.Tenant = "" }), "tenant"},
		{"negative sla", with(func(t *query.Task) { t.SLASeconds = f(-1) }), "slaSeconds"},
		{"zero sla", with(func(t *query.Task) { t.SLASeconds = f(0) }), "slaSeconds"},
		{"absurd sla", with(func(t *query.Task) { t.SLASeconds = f(1e12) }), "slaSeconds"},
		{"sla is no number", with(func(t *query.Task) { t.SLASeconds = f(math.NaN()) }), "slaSeconds"},
		{"timeout of years", with(func(t *query.Task) { t.TimeoutSeconds = f(1e9) }), "timeoutSeconds"},
		{"id with a slash", with(func(t *query.Task) { t.ID = "a/1" }), "id"},
		{"id too long", with(func(t *query.Task) { t.ID = strings.Repeat("a", 129) }), "id"},
		{"user with a newline", with(func(t *query.Task) { t.User = "a\nb" }), "user"},
		{"result format unknown", with(func(t *query.Task) { t.ResultFormat = "xlsx" }), "resultFormat"},
		{"consistency unknown", with(func(t *query.Task) { t.Consistency = "maybe" }), "consistency"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := c.task.Validate(query.Limits{})
			var fe *query.FieldError
			require.ErrorAs(t, err, &fe)
			require.Equal(t, c.field, fe.Field)
		})
	}
	require.NoError(t, ok.Validate(query.Limits{}))
	require.NoError(t, with(func(t *query.Task) { t.SQL = ""; t.Intent = json.RawMessage(`{"metric":"x"}`) }).Validate(query.Limits{}))

	big := with(func(t *query.Task) { t.SQL = strings.Repeat("x", 5<<20) })
	require.ErrorIs(t, big.Validate(query.Limits{}), query.ErrTooLarge)
}

func TestDescribeJSONError(t *testing.T) {
	for in, want := range map[string]string{
		`{"sql":1}`:            "sql: a JSON number was given where a string is expected",
		`{"slaSeconds":"ten"}`: "slaSeconds: a JSON string was given where a number is expected",
		`[1]`:                  "the document must be a JSON object",
		`{"sql"`:               "not JSON: unexpected end of JSON input at byte 6",
		`null`:                 "the document must be a JSON object",
	} {
		var task query.Task
		err := task.UnmarshalJSON([]byte(in))
		require.Error(t, err, in)
		require.Equal(t, want, query.DescribeJSONError(err))
	}
}

func TestIDs(t *testing.T) {
	require.Equal(t, "t-84daa7ea", query.IDFromKey("t", "k")[:10], "ids are derived the same for ever")
	require.NotEqual(t, query.IDFromKey("a", "bc"), query.IDFromKey("ab", "c"))
	require.NotEqual(t, query.IDFromRecord("requests", 1, 2), query.IDFromRecord("requests", 12, 0))
	require.True(t, query.ValidID(query.IDFromRecord("requests", 1, 2)))

	id, n, err := query.SplitAttemptID(query.AttemptID("a.b", 3))
	require.NoError(t, err)
	require.Equal(t, "a.b", id)
	require.Equal(t, 3, n)
	for _, bad := range []string{"a", "a/", "a/x", "a/-1"} {
		_, _, err := query.SplitAttemptID(bad)
		require.Error(t, err, bad)
	}
}

func TestIDIn(t *testing.T) {
	o := query.Origin{EventSource: "bi", EventID: "e1", Topic: "requests", Partition: 2, Offset: 7}
	require.Equal(t, "own", query.Task{ID: "own", IdempotencyKey: "k"}.IDIn(o))
	require.Equal(t, query.IDFromKey("t", "k"), query.Task{Tenant: "t", IdempotencyKey: "k"}.IDIn(o))
	require.Equal(t, query.IDFromKey("ce:bi", "e1"), query.Task{}.IDIn(o))
	o.EventID = ""
	require.Equal(t, query.IDFromRecord("requests", 2, 7), query.Task{}.IDIn(o))
}

func TestDigest(t *testing.T) {
	at := time.Unix(1, 0)
	a := query.Task{ID: "x", SQL: "SELECT 1", Tenant: "t"}
	b := a
	b.SubmittedAt, b.ID = &at, "y"
	require.Equal(t, a.Digest(), b.Digest(), "id and stamp are not what is asked for")
	b.SQL = "SELECT 2"
	require.NotEqual(t, a.Digest(), b.Digest())
}

// TestNamesThatAreNoUTF8: what is read is written the same ever after, whatever a producer calls its fields.
func TestNamesThatAreNoUTF8(t *testing.T) {
	var first, second query.Task
	require.NoError(t, first.UnmarshalJSON([]byte("{\"sql\":\"SELECT 1\",\"a\xff\xfe\":1}")))
	once, err := first.MarshalJSON()
	require.NoError(t, err)
	require.NoError(t, second.UnmarshalJSON(once))
	again, err := second.MarshalJSON()
	require.NoError(t, err)
	require.Equal(t, string(once), string(again))
	require.Equal(t, first.Digest(), second.Digest())
}
