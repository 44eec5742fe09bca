package chdb_test
import ("testing";"fmt";"reflect"
"github.com/pointsman/pointsman/pkg/embedded/chdb/chdbtest")
func TestProbe(t *testing.T) {
	conn := chdbtest.Open(t, shared(t))
	for _, sql := range []string{"SELECT NULL","SELECT [NULL]","SELECT [1,NULL]","SELECT ()","SELECT INTERVAL 3 DAY","SELECT (1.5,2.5)::Point","SELECT toInt256(5)","SELECT toUInt256(5)","SELECT '{\"a\":{\"b\":1}}'::JSON","SELECT 5::Dynamic","SELECT 5::Variant(UInt8,String)","SELECT toTime64('10:11:12',3)","SELECT 1::BFloat16","SELECT toIPv4('1.2.3.4')","SELECT map('a',[1,2])","SELECT quantilesTDigestState(0.5)(number) FROM numbers(3)","SELECT toLowCardinality(toNullable('x'))","SELECT cast([('a',1)] as Nested(x String, y UInt8))","SELECT true","SELECT toDate('2020-01-01')","SELECT tuple(1,'a')","SELECT now64(9)","SELECT toDateTime('2020-01-01 00:00:00','Asia/Tokyo')", "SELECT 1.5::Decimal(76,5)", "SELECT generateUUIDv7()", "SELECT toFixedString('a',3)","SELECT number % 3 ? 'a' : toLowCardinality('b') from numbers(5)", "SELECT '[1,2]'::QBit(Float32,2)", "EXPLAIN SELECT 1", "SHOW TABLES", "DESCRIBE TABLE system.processes", "SELECT * FROM system.processes", "SELECT * FROM system.columns LIMIT 3","SELECT * FROM system.settings LIMIT 2","SELECT * FROM system.tables LIMIT 2", "SELECT * FROM system.parts LIMIT 2"} {
		rows, err := conn.Query(t.Context(), sql)
		if err != nil { fmt.Println("QERR", sql, err); continue }
		n := 0
		var out []any
		for rows.Next() {
			out = nil
			for _, c := range rows.ColumnTypes() { out = append(out, reflect.New(c.ScanType()).Interface()) }
			if err := rows.Scan(out...); err != nil { fmt.Println("SCAN", sql, err) }
			n++
		}
		if err := rows.Err(); err != nil { fmt.Println("RERR", sql, err); continue }
		s := ""
		if len(out) == 1 { s = fmt.Sprintf("%v", reflect.ValueOf(out[0]).Elem().Interface()) }
		fmt.Println("ok", sql, n, s)
	}
	_ = conn.Exec(t.Context(), "CREATE TABLE IF NOT EXISTS ai (n UInt8) ENGINE=MergeTree ORDER BY n")
	fmt.Println(conn.AsyncInsert(t.Context(), "INSERT INTO ai VALUES (1),(2)", true))
	fmt.Println(conn.AsyncInsert(t.Context(), "INSERT INTO ai VALUES (3)", false))
	fmt.Print(post(t, shared(t), "SELECT count() from ai").body)
	a := post(t, shared(t), "SELECT query_id from system.processes where query_id like 'we%' format TSVRaw", "query_id", "we ird'id\"\\ =-- é")
	fmt.Println(a.body, a.header.Get("X-ClickHouse-Query-Id"))
	a = post(t, shared(t), "SELECT query_id from system.processes where query_id like 'we%' format TSVRaw", "query_id", "we\nird")
	fmt.Println(a.body, a.header.Get("X-ClickHouse-Query-Id"))
}
