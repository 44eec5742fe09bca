package clickhouse

import (
	"reflect"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/chcol"
	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/embedded/chdb"
	"github.com/pointsman/pointsman/pkg/embedded/chdb/chdbtest"
	"github.com/pointsman/pointsman/pkg/engine"
)

// TestTimesOfOpenTypes: what a column may hold besides changes neither a date nor an instant, and no zone makes another day of a date.
func TestTimesOfOpenTypes(t *testing.T) {
	tokyo := time.FixedZone("Tokyo", 9*60*60)
	day, night := time.Date(2026, 11, 30, 0, 0, 0, 0, tokyo), time.Date(2026, 11, 30, 1, 2, 3, 0, tokyo)
	json := chcol.NewJSON()
	json.SetValueAtPath("d", day)
	json.SetValueAtPath("more.d", chcol.NewDynamicWithType(day, "Date"))
	json.SetValueAtPath("more.t", chcol.NewDynamicWithType(night, "DateTime64(9)"))
	for _, c := range []struct {
		typ         string
		value, want any
	}{
		{"Dynamic", chcol.NewDynamicWithType(day, "Date"), "2026-11-30"},
		{"Dynamic", chcol.NewDynamicWithType([]time.Time{day}, "Array(Date32)"), []any{"2026-11-30"}},
		{"Dynamic", chcol.NewDynamicWithType(night, "DateTime"), night.UTC()},
		{"Dynamic", chcol.NewDynamic(nil), nil},
		{"Variant(Date, String)", chcol.NewVariantWithType(day, "Date"), "2026-11-30"},
		{"JSON(d Date)", json, map[string]any{"d": "2026-11-30", "more": map[string]any{"d": "2026-11-30", "t": night.UTC()}}},
		{"Array(JSON(d Date))", []chcol.JSON{*json}, []any{map[string]any{"d": "2026-11-30", "more": map[string]any{"d": "2026-11-30", "t": night.UTC()}}}},
	} {
		require.Equal(t, c.want, timesOf(c.typ).convert(reflect.ValueOf(c.value)), c.typ)
	}
}

// TestOpenTypesKeepInstants asks the engine itself.
func TestOpenTypesKeepInstants(t *testing.T) {
	server := chdbtest.Start(t, chdb.Config{Name: "open"})
	e, err := Open(Config{Name: "c", Addrs: []string{server.Addr()}})
	require.NoError(t, err)
	t.Cleanup(func() { _ = e.Close() })
	rows, err := e.Submit(t.Context(), engine.Query{ID: "open/1", SQL: `SELECT CAST('{"d":"2026-11-30","t":"2026-11-30 01:02:03","n":9007199254740993}' AS JSON(d Date)),
		CAST(toDate('2026-11-30') AS Dynamic)`})
	require.NoError(t, err)
	require.True(t, rows.Next(), "%v", rows.Err())
	values, err := rows.Values()
	require.NoError(t, err)
	require.Equal(t, []any{
		map[string]any{"d": "2026-11-30", "t": time.Date(2026, 11, 30, 1, 2, 3, 0, time.UTC), "n": int64(9007199254740993)}, "2026-11-30",
	}, values)
	require.False(t, rows.Next())
	require.NoError(t, rows.Close())
}

// TestTimesBehindTheirDriver: the driver's count of nanoseconds ends in 2262, the engine's times in 2299.
func TestTimesBehindTheirDriver(t *testing.T) {
	server := chdbtest.Start(t, chdb.Config{Name: "late"})
	e, err := Open(Config{Name: "c", Addrs: []string{server.Addr()}})
	require.NoError(t, err)
	t.Cleanup(func() { _ = e.Close() })
	rows, err := e.Submit(t.Context(), engine.Query{ID: "late/1", SQL: `SELECT toDateTime64('2299-12-31 23:59:59.123', 3, 'UTC'), toDateTime64('2262-04-11 23:47:16.8', 1, 'UTC'),
		toDateTime64('2262-04-11 23:47:17', 0, 'UTC'), toDateTime64('1900-01-01 00:00:00.5', 8, 'UTC'), [toNullable(toDateTime64('2299-12-31 23:59:59', 0, 'UTC'))],
		toDate32('2299-12-31'), map(toDate('2026-11-30'), 1), map(toDateTime('2026-11-30 09:15:00', 'UTC'), 1)`})
	require.NoError(t, err)
	require.True(t, rows.Next(), "%v", rows.Err())
	values, err := rows.Values()
	require.NoError(t, err)
	require.Equal(t, []any{
		time.Date(2299, 12, 31, 23, 59, 59, 123000000, time.UTC), time.Date(2262, 4, 11, 23, 47, 16, 800000000, time.UTC),
		time.Date(2262, 4, 11, 23, 47, 17, 0, time.UTC), time.Date(1900, 1, 1, 0, 0, 0, 500000000, time.UTC),
		[]any{time.Date(2299, 12, 31, 23, 59, 59, 0, time.UTC)},
		time.Date(2299, 12, 31, 0, 0, 0, 0, time.UTC),
		map[string]any{"2026-11-30": uint64(1)},
		map[string]any{"2026-11-30T09:15:00Z": uint64(1)},
	}, values)
	require.NoError(t, rows.Close())
}

// TestWhatIsPastAColumnsLimit: it comes as what it is, and so do the columns behind it.
func TestWhatIsPastAColumnsLimit(t *testing.T) {
	server := chdbtest.Start(t, chdb.Config{Name: "limits"})
	e, err := Open(Config{Name: "c", Addrs: []string{server.Addr()}})
	require.NoError(t, err)
	t.Cleanup(func() { _ = e.Close() })
	rows, err := e.Submit(t.Context(), engine.Query{ID: "limits/1", SQL: `SELECT CAST('{"a":1,"b":[2],"c":{"d":"x"}}' AS JSON(max_dynamic_paths=1)),
		CAST(if(number = 0, CAST(1 AS Dynamic), CAST('x' AS Dynamic)) AS Dynamic(max_types=1)), 7 FROM numbers(2) ORDER BY number`})
	require.NoError(t, err)
	object := map[string]any{"a": int64(1), "b": []any{int64(2)}, "c": map[string]any{"d": "x"}}
	for _, want := range []any{uint64(1), "x"} {
		require.True(t, rows.Next(), "%v", rows.Err())
		values, err := rows.Values()
		require.NoError(t, err)
		require.Equal(t, []any{object, want, uint64(7)}, values)
	}
	require.False(t, rows.Next())
	require.NoError(t, rows.Close())
	require.NotContains(t, e.settings(engine.Query{}, false), flattened, "which servers before 25.6 refuse")
	require.Equal(t, "0", e.settings(engine.Query{Settings: map[string]string{flattened: "0"}}, true)[flattened], "a resource profile has the last word")
}
