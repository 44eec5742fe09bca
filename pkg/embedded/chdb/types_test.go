package chdb_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/embedded/chdb/chdbtest"
)

// TestUncommonTypesReachTheClient has the types that the client can read but not write, and those
// whose Native form has a state of its own, next to a second column that shows whether the reader
// is still in step.
func TestUncommonTypesReachTheClient(t *testing.T) {
	conn := chdbtest.Open(t, shared(t))
	for expression, want := range map[string]string{
		"NULL":                                  "<nil>",
		"[NULL]":                                "[<nil>]",
		"INTERVAL 3 DAY":                        "3 Days",
		"(1.5, 2.5)::Point":                     "[1.5 2.5]",
		"toInt256(-5)":                          "-5",
		`'{"a":{"b":1}}'::JSON`:                 "{map[a.b:{1 Int64}]}",
		"toUInt8(5)::Dynamic":                   "{5 UInt8}",
		"5::Variant(UInt8, String)":             "{5 UInt8}",
		"toTime64('10:11:12', 3)":               "10h11m12s",
		"1::BFloat16":                           "1",
		"toIPv4('1.2.3.4')":                     "1.2.3.4",
		"map('a', [1, 2])":                      "map[a:[1 2]]",
		"[('a', 1)]::Nested(x String, y UInt8)": "[map[x:a y:1]]",
		"toDateTime('2020-01-01 00:00:00', 'Asia/Tokyo')":      "2019-12-31 15:00:00 +0000 UTC", // the instant; revision 0 drops the zone
		"toDateTime64('2020-01-01 00:00:00', 3, 'Asia/Tokyo')": "2020-01-01 00:00:00 +0900 JST",
		"1.5::Decimal(76, 5)":                                  "1.5",
		"[toLowCardinality('a'), 'b']":                         "[a b]",
		"map(toLowCardinality('a'), toLowCardinality('b'))":    "map[a:b]",
		"'[1,2]'::QBit(Float32, 2)":                            "[1 2]",
		"tuple(1, 'a')":                                        "[1 a]",
	} {
		rows, err := conn.Query(t.Context(), "SELECT "+expression+" AS v, number FROM numbers(3)")
		require.NoError(t, err, expression)
		count := uint64(0)
		for rows.Next() {
			value := reflect.New(rows.ColumnTypes()[0].ScanType())
			var number uint64
			require.NoError(t, rows.Scan(value.Interface(), &number), expression)
			require.Equal(t, count, number, expression)
			require.Equal(t, want, fmt.Sprint(value.Elem().Interface()), expression)
			count++
		}
		require.NoError(t, rows.Err(), expression)
		require.NoError(t, rows.Close())
		require.Equal(t, uint64(3), count, expression)
	}
}

func TestATypeTheClientCannotReadIsAnError(t *testing.T) {
	engine := shared(t)
	sql := "SELECT quantilesTDigestState(0.5)(number) AS state FROM numbers(3)"
	_, err := chdbtest.Open(t, engine).Query(t.Context(), sql)
	var e *clickhouse.Exception
	require.ErrorAs(t, err, &e)
	require.EqualValues(t, 50, e.Code)
	require.Contains(t, e.Message, "state")
	require.NotEmpty(t, ok(t, post(t, engine, sql+" FORMAT RowBinary")), "another format carries it")
}

func TestAsyncInsert(t *testing.T) {
	conn := chdbtest.Open(t, shared(t))
	db := database(t, conn)
	require.NoError(t, conn.Exec(t.Context(), "CREATE TABLE "+db+".t (n UInt8) ENGINE = MergeTree ORDER BY n"))
	for _, wait := range []bool{true, false} {
		ctx := clickhouse.Context(t.Context(), clickhouse.WithAsync(wait))
		require.NoError(t, conn.Exec(ctx, "INSERT INTO "+db+".t VALUES (1), (2)"))
	}
	var n uint64
	require.NoError(t, conn.QueryRow(t.Context(), "SELECT count() FROM "+db+".t").Scan(&n))
	require.Equal(t, uint64(4), n)
}

func TestStrangeQueryIDs(t *testing.T) {
	for _, id := range []string{"with space", `'"\=--;é`, "new\nline", strings.Repeat("x", 2000), "--max_threads=1"} {
		got := ok(t, post(t, shared(t), "SELECT query_id FROM system.processes WHERE query_id = {id:String} FORMAT RowBinary", "query_id", id, "param_id", strings.NewReplacer(`\`, `\\`, "\n", `\n`).Replace(id)))
		require.True(t, strings.HasSuffix(got, id), "%q in %q", id, got)
	}
	require.Equal(t, "36", code(post(t, shared(t), "SELECT 1", "query_id", "a\x00b")))
}
