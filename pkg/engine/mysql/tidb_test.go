//go:build tidb

package mysql_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/engine/enginetest"
	"github.com/pointsman/pointsman/pkg/engine/mysql"
	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/failure"
	"github.com/pointsman/pointsman/test/ports"
	real "github.com/pointsman/pointsman/test/real/tidb"
)

// TestTiDB runs the suite on TiDB's own SQL layer (make test-tidb).
func TestTiDB(t *testing.T) {
	server := real.Start(t)
	server.Exec("CREATE TABLE work.types (a bigint, b bigint unsigned, c decimal(30,10), d varchar(9), e date, f datetime(6), g timestamp(6) NULL, h bit(8), i json, j double, k varbinary(4))",
		"SET time_zone = '+00:00'", "INSERT INTO work.types VALUES (9007199254740993, 18446744073709551615, 12345678901234567890.0123456789, NULL, '2026-11-30', '2026-11-30 09:15:00.5', NULL, b'101', '{\"a\": 1}', 0.1, x'00ff')",
		"CREATE TABLE work.many (n bigint)", "INSERT INTO work.many VALUES (0),(1),(2),(3),(4),(5),(6),(7),(8),(9)")
	tens := func(n int) string { // 10^n rows, numbered
		sql, from := "a0.n", "many a0"
		for i := 1; i < n; i++ {
			sql, from = fmt.Sprintf("(%s) * 10 + a%d.n", sql, i), fmt.Sprintf("%s, many a%d", from, i)
		}
		return "SELECT " + sql + " AS n, REPEAT('x', 100) AS s FROM " + from
	}
	client := func(t *testing.T, addr string) engine.Engine {
		return client(t, mysql.Config{Addr: addr, Flavour: mysql.TiDB, DialTimeout: 5 * time.Second})
	}
	enginetest.Exercise(t, enginetest.Fixture{
		Record: "mysql-tidb", Engine: "TiDB", Proof: "real SQL layer, version 7.5, store in memory",
		Exceptions: map[string]string{"ReadsDoNotWrite": "TiDB's variables for read-only transactions do nothing"},
		Kind:       string(mysql.TiDB),
		Open:       func(t *testing.T) engine.Engine { return client(t, server.Addr) },
		Dead:       func(t *testing.T) engine.Engine { return client(t, ports.Closed(t)) },
		Addr:       server.Addr, OpenAt: client,
		One: "SELECT 1 AS n", Empty: "SELECT a FROM types WHERE a < 0", NoResult: "CREATE TABLE IF NOT EXISTS nothing (n int)",
		Types: "SELECT a, b, c, d, e, f, TIMESTAMP(f), h, i, j, k FROM types",
		Columns: []event.Column{
			{Name: "a", Type: "BIGINT"}, {Name: "b", Type: "BIGINT UNSIGNED"}, {Name: "c", Type: "DECIMAL"}, {Name: "d", Type: "VARCHAR"},
			{Name: "e", Type: "DATE"}, {Name: "f", Type: "DATETIME"}, {Name: "TIMESTAMP(f)", Type: "DATETIME"}, {Name: "h", Type: "BIT"},
			{Name: "i", Type: "JSON"}, {Name: "j", Type: "DOUBLE"}, {Name: "k", Type: "VARBINARY"},
		},
		Values: []any{
			int64(9007199254740993), uint64(18446744073709551615), json.Number("12345678901234567890.0123456789"), nil,
			time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC), "2026-11-30T09:15:00.500000", "2026-11-30T09:15:00.500000", uint64(5), `{"a": 1}`, 0.1, "0x00ff",
		},
		Wrong: "SELECT * FROM no_such_table", Syntax: "SELEKT 1",
		Greedy: "SELECT COUNT(DISTINCT n, s) FROM (" + tens(5) + ") t", MemoryLimit: 4 << 20,
		// A SLEEP that is killed gives a row and no error, in MySQL too: it would be no proof.
		Slow:  "SELECT COUNT(*) FROM (" + tens(5) + ") t JOIN (" + tens(5) + ") u ON t.n <> u.n",
		Large: tens(5), LargeRows: 100_000,
		Breaks: "SELECT n, s, EXP(n - 89000) FROM (" + tens(5) + ") t", BreaksClass: failure.Semantic,
		Echo:    "SELECT %d",
		Explain: "SELECT n FROM many LIMIT 10", ExplainsRows: true,
		Setting: "SELECT CAST(@@tidb_max_chunk_size AS CHAR)", SettingName: "tidb_max_chunk_size", SettingValue: "64",
	})
}
