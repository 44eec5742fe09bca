package clickhouse_test

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/embedded/chdb"
	"github.com/pointsman/pointsman/pkg/embedded/chdb/chdbtest"
	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/engine/clickhouse"
)

// A row leaves nothing to the next one, values that are given stay as they are, and what is lent is what is given.
func TestRowsFollowEachOther(t *testing.T) {
	server := chdbtest.Start(t, chdb.Config{Name: "lends"})
	e := open(t, clickhouse.Config{Name: "c", Addrs: []string{server.Addr()}})
	t.Cleanup(func() { _ = e.Close() })
	rows, err := e.Submit(t.Context(), engine.Query{ID: "lends/1", SQL: `SELECT number, toInt8(number) - 1, number / 2, toFloat32(number) / 10, toString(number), number = 1,
		toDate('2026-11-30') + number, toDateTime('2026-11-30 09:15:00', 'UTC') + number, toDecimal64(number, 2) / 4,
		if(number = 1, NULL, number), if(number = 1, NULL, toString(number)), if(number = 1, NULL, toDate('2026-11-30') + number),
		if(number = 1, NULL, toDecimal64(number, 2)), CAST(if(number = 1, NULL, toString(number)) AS LowCardinality(Nullable(String))),
		range(2 - number), map(toString(number), number), (number, if(number = 0, 'x', NULL)), toUInt128(number) * 1000, if(number = 1, NULL, number = 0)
		FROM numbers(3) ORDER BY number`})
	require.NoError(t, err)
	lender := rows.(engine.Lender)
	var got [][]any
	for rows.Next() {
		values, err := rows.Values()
		require.NoError(t, err)
		got = append(got, values)
		lent, err := lender.Lent()
		require.NoError(t, err)
		require.Len(t, lent, len(values))
		for i, v := range lent {
			if v := reflect.ValueOf(v); v.Kind() == reflect.Pointer {
				lent[i] = v.Elem().Interface()
			}
		}
		require.Equal(t, values, lent)
	}
	require.NoError(t, rows.Err())
	require.NoError(t, rows.Close())
	day := func(n int) time.Time { return time.Date(2026, 11, 30+n, 0, 0, 0, 0, time.UTC) }
	second := func(n int) time.Time { return time.Date(2026, 11, 30, 9, 15, n, 0, time.UTC) }
	number := func(s string) any { return json.Number(s) }
	require.Equal(t, [][]any{
		{
			uint64(0), int64(-1), 0.0, 0.0, "0", uint64(0), day(0), second(0), number("0.00"), uint64(0), "0", day(0), number("0.00"), "0",
			[]any{int64(0), int64(1)},
			map[string]any{"0": uint64(0)},
			[]any{uint64(0), "x"},
			number("0"), uint64(1),
		},
		{
			uint64(1), int64(0), 0.5, 0.1, "1", uint64(1), day(1), second(1), number("0.25"), nil, nil, nil, nil, nil,
			[]any{int64(0)},
			map[string]any{"1": uint64(1)},
			[]any{uint64(1), nil},
			number("1000"), nil,
		},
		{
			uint64(2), int64(1), 1.0, 0.2, "2", uint64(0), day(2), second(2), number("0.50"), uint64(2), "2", day(2), number("2.00"), "2",
			[]any{},
			map[string]any{"2": uint64(2)},
			[]any{uint64(2), nil},
			number("2000"), uint64(0),
		},
	}, got)
}
