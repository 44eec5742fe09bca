package chdb_test

import (
	"context"
	"math"
	"math/big"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/ext"
	"github.com/google/uuid"
	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/embedded/chdb/chdbtest"
)

func TestClientReadsBackEveryCommonType(t *testing.T) {
	ctx := t.Context()
	conn := chdbtest.Open(t, shared(t))
	db := database(t, conn)
	type tuple struct {
		A int64  `ch:"a"`
		B string `ch:"b"`
	}
	at := time.Date(2026, 11, 30, 7, 8, 9, 123_000_000, time.UTC)
	huge, _ := new(big.Int).SetString("170141183460469231731687303715884105727", 10)
	id := uuid.MustParse("0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b")
	text, none := "text", (*string)(nil)
	columns := []struct {
		name, typ string
		value     any
		into      any
	}{
		{"i8", "Int8", int8(math.MinInt8), new(int8)},
		{"i64", "Int64", int64(math.MinInt64), new(int64)},
		{"u64", "UInt64", uint64(math.MaxUint64), new(uint64)},
		{"odd", "Int64", int64(9007199254740993), new(int64)},
		{"i128", "Int128", *huge, new(big.Int)},
		{"f64", "Float64", 0.1, new(float64)},
		{"yes", "Bool", true, new(bool)},
		{"d", "Decimal(38, 10)", decimal.RequireFromString("12345678901234567890.0123456789"), new(decimal.Decimal)},
		{"s", "String", "a\n\nb\x00c'`\"\\ü", new(string)},
		{"fixed", "FixedString(26)", "01ARZ3NDEKTSV4RRFFQ69G5FAV", new(string)},
		{"lc", "LowCardinality(String)", "low", new(string)},
		{"n", "Nullable(String)", &text, new(*string)},
		{"nil", "Nullable(String)", none, new(*string)},
		{"arr", "Array(UInt64)", []uint64{1, math.MaxUint64}, new([]uint64)},
		{"nested", "Array(Array(String))", [][]string{{"a"}, {}, {"b", "c"}}, new([][]string)},
		{"m", "Map(LowCardinality(String), Float64)", map[string]float64{"a": 1.5}, new(map[string]float64)},
		{"tup", "Tuple(a Int64, b String)", tuple{-1, "x"}, new(tuple)},
		{"dt", "DateTime('UTC')", at.Truncate(time.Second), new(time.Time)},
		{"dt64", "DateTime64(3, 'UTC')", at, new(time.Time)},
		{"day", "Date32", time.Date(1925, 1, 2, 0, 0, 0, 0, time.UTC), new(time.Time)},
		{"id", "UUID", id, new(uuid.UUID)},
		{"ip", "IPv6", net.ParseIP("2001:db8::1"), new(net.IP)},
		{"e", "Enum8('a' = 1, 'b' = 2)", "b", new(string)},
		{"simple", "SimpleAggregateFunction(max, UInt64)", uint64(7), new(uint64)},
	}
	var ddl, names []string
	var values, into []any
	for _, c := range columns {
		ddl = append(ddl, c.name+" "+c.typ)
		names, values, into = append(names, c.name), append(values, c.value), append(into, c.into)
	}
	require.NoError(t, conn.Exec(ctx, "CREATE TABLE "+db+".t ("+strings.Join(ddl, ", ")+") ENGINE = MergeTree ORDER BY i64"))
	batch, err := conn.PrepareBatch(ctx, "INSERT INTO "+db+".t")
	require.NoError(t, err)
	require.NoError(t, batch.Append(values...))
	require.NoError(t, batch.Send())
	require.NoError(t, conn.QueryRow(ctx, "SELECT "+strings.Join(names, ", ")+" FROM "+db+".t").Scan(into...))
	for i, c := range columns {
		require.EqualExportedValues(t, box{c.value}, box{deref(into[i])}, c.name)
	}
}

func TestClientKeepsColumnsOfAnEmptyResult(t *testing.T) {
	conn := chdbtest.Open(t, shared(t))
	// A LowCardinality column has a state of its own in the stream, which an empty block must not carry.
	rows, err := conn.Query(t.Context(), "SELECT toLowCardinality('a') AS lc, 1 AS n WHERE 0")
	require.NoError(t, err)
	require.False(t, rows.Next())
	require.NoError(t, rows.Err())
	require.NoError(t, rows.Close())
}

func TestClientBatchesWithEveryCompression(t *testing.T) {
	ctx := t.Context()
	engine := shared(t)
	db := database(t, chdbtest.Open(t, engine))
	for _, method := range []clickhouse.CompressionMethod{clickhouse.CompressionNone, clickhouse.CompressionLZ4, clickhouse.CompressionZSTD, clickhouse.CompressionGZIP, clickhouse.CompressionDeflate, clickhouse.CompressionBrotli} {
		t.Run(method.String(), func(t *testing.T) {
			options := engine.Options()
			options.Auth.Database = db
			options.Compression = &clickhouse.Compression{Method: method, Level: 1}
			conn, err := clickhouse.Open(options)
			require.NoError(t, err)
			defer func() { _ = conn.Close() }()
			require.NoError(t, conn.Exec(ctx, "CREATE OR REPLACE TABLE t (n UInt64, s LowCardinality(String)) ENGINE = MergeTree ORDER BY n"))
			const want = 100_000
			batch, err := conn.PrepareBatch(ctx, "INSERT INTO t")
			require.NoError(t, err)
			for i := range want {
				require.NoError(t, batch.Append(uint64(i), strconv.Itoa(i%100)))
			}
			require.NoError(t, batch.Send())
			rows, err := conn.Query(ctx, "SELECT n, s FROM t ORDER BY n")
			require.NoError(t, err)
			got := 0
			for rows.Next() {
				var n uint64
				var s string
				require.NoError(t, rows.Scan(&n, &s))
				require.Equal(t, uint64(got), n)
				require.Equal(t, strconv.Itoa(got%100), s)
				got++
			}
			require.NoError(t, rows.Err())
			require.NoError(t, rows.Close())
			require.Equal(t, want, got)
			var code *clickhouse.Exception
			require.ErrorAs(t, conn.Exec(ctx, "SELECT nosuch"), &code)
			require.EqualValues(t, 47, code.Code)
			_, err = conn.Query(ctx, "SELECT throwIf(number = 900000, 'in the middle') FROM numbers(1000000)")
			if err == nil {
				rows, _ := conn.Query(ctx, "SELECT throwIf(number = 900000, 'in the middle') FROM numbers(1000000)")
				for rows.Next() {
				}
				err = rows.Err()
			}
			require.ErrorAs(t, err, &code, "an error in the middle of a result")
			require.EqualValues(t, 395, code.Code)
		})
	}
}

func TestClientParameters(t *testing.T) {
	conn := chdbtest.Open(t, shared(t))
	for _, value := range []string{"plain", "it's \"quoted\" `so`", `back\slash \n`, "tab\tand\nnewline\n\nblank", "ü€", "'); DROP TABLE x; --", ""} {
		var s string
		var n uint64
		require.NoError(t, conn.QueryRow(t.Context(), "SELECT {s:String}, {n:UInt64}", clickhouse.Named("s", value), clickhouse.Named("n", uint64(math.MaxUint64))).Scan(&s, &n))
		require.Equal(t, value, s)
		require.Equal(t, uint64(math.MaxUint64), n)
		require.NoError(t, conn.QueryRow(t.Context(), "SELECT ?", value).Scan(&s))
		require.Equal(t, value, s, "bound by the client")
	}
}

func TestClientErrorsCarryTheCode(t *testing.T) {
	conn := chdbtest.Open(t, shared(t))
	for sql, want := range map[string]int32{
		"SELECT nosuch":                        47,
		"SELECT * FROM nosuch":                 60,
		"SELECT * FROM nosuch.t":               81,
		"SELEC 1":                              62,
		"SELECT throwIf(1)":                    395,
		"SELECT 1 SETTINGS nosuch = 1":         115,
		"SELECT intDiv(1, 0)":                  153,
		"CREATE TABLE x (n Nosuch) ENGINE = L": 50,
		"INSERT INTO nosuch VALUES (1)":        60,
		"SELECT sleepEachRow(1) FROM numbers(3) SETTINGS max_execution_time = 0.1, max_block_size = 1": 159,
	} {
		err := conn.Exec(t.Context(), sql)
		var e *clickhouse.Exception
		require.ErrorAs(t, err, &e, sql)
		require.Equal(t, want, e.Code, "%s: %v", sql, err)
		require.Equal(t, 1, strings.Count(err.Error()+"Code:", "Code:"), err)
	}
}

func TestClientQueryIDAndSettings(t *testing.T) {
	conn := chdbtest.Open(t, shared(t))
	ctx := clickhouse.Context(t.Context(), clickhouse.WithQueryID("attempt-1"), clickhouse.WithSettings(clickhouse.Settings{"max_block_size": 7, "log_comment": "mine"}))
	var id, comment, block string
	require.NoError(t, conn.QueryRow(ctx, "SELECT query_id, Settings['log_comment'], Settings['max_block_size'] FROM system.processes WHERE query LIKE '%attempt%' OR query_id = 'attempt-1'").Scan(&id, &comment, &block))
	require.Equal(t, []string{"attempt-1", "mine", "7"}, []string{id, comment, block})
}

func TestClientExternalTable(t *testing.T) {
	conn := chdbtest.Open(t, shared(t))
	table, err := ext.NewTable("ids", ext.Column("id", "UInt64"), ext.Column("name", "String"))
	require.NoError(t, err)
	require.NoError(t, table.Append(uint64(7), "seven"))
	require.NoError(t, table.Append(uint64(8), "ei\n\nght"))
	ctx := clickhouse.Context(t.Context(), clickhouse.WithExternalTable(table))
	var n uint64
	var names []string
	require.NoError(t, conn.QueryRow(ctx, "SELECT count(), groupArray(name) FROM ids WHERE id > {least:UInt64}", clickhouse.Named("least", "6")).Scan(&n, &names))
	require.Equal(t, uint64(2), n)
	require.Equal(t, []string{"seven", "ei\n\nght"}, names)
	require.Error(t, conn.QueryRow(t.Context(), "SELECT count() FROM ids").Scan(&n), "it went away with its request")
}

func TestDatabaseSQL(t *testing.T) {
	db := clickhouse.OpenDB(shared(t).Options())
	defer func() { _ = db.Close() }()
	require.NoError(t, db.PingContext(t.Context()))
	var n int64
	require.NoError(t, db.QueryRowContext(t.Context(), "SELECT sum(number) FROM numbers(?)", 10).Scan(&n))
	require.EqualValues(t, 45, n)
}

func TestClientStopsItsQueryByContext(t *testing.T) {
	conn := chdbtest.Open(t, shared(t))
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	ctx = clickhouse.Context(ctx, clickhouse.WithQueryID("abandoned"))
	err := conn.Exec(ctx, "SELECT count() FROM numbers_mt(100000000000) WHERE NOT ignore(sipHash64(number))")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Eventually(t, func() bool { return !runs(t, conn, "abandoned") }, 5*time.Second, 20*time.Millisecond)
}
