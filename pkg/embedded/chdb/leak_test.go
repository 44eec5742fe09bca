package chdb_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/embedded/chdb/chdbtest"
)

func setting(t *testing.T, name string, params ...string) string {
	t.Helper()
	return strings.TrimSpace(ok(t, post(t, shared(t), "SELECT value FROM system.settings WHERE name = '"+name+"'", params...)))
}

func TestNothingLeaksFromARequest(t *testing.T) {
	engine := shared(t)
	before := setting(t, "max_block_size")
	require.Equal(t, "17", setting(t, "max_block_size", "max_block_size", "17"))
	require.Equal(t, before, setting(t, "max_block_size"))

	ok(t, post(t, engine, "SET max_block_size = 19"))
	require.Equal(t, before, setting(t, "max_block_size"), "SET is for its request")

	ok(t, post(t, engine, "SELECT 1 SETTINGS max_block_size = 23"))
	require.Equal(t, before, setting(t, "max_block_size"))

	ok(t, post(t, engine, "USE system"))
	require.Equal(t, "default\n", ok(t, post(t, engine, "SELECT currentDatabase()")))
	require.Equal(t, "system\n", ok(t, post(t, engine, "SELECT currentDatabase()", "database", "system")))
	require.Equal(t, "default\n", ok(t, post(t, engine, "SELECT currentDatabase()")))

	ok(t, post(t, engine, "CREATE TEMPORARY TABLE passing (n UInt8)"))
	require.Equal(t, http.StatusNotFound, post(t, engine, "SELECT * FROM passing").status)

	post(t, engine, "SELECT {x:UInt8}", "param_x", "1")
	require.Equal(t, "456", post(t, engine, "SELECT {x:UInt8}").header.Get("X-ClickHouse-Exception-Code"))

	a := post(t, engine, "SELECT nosuch", "max_block_size", "29")
	require.Equal(t, 404, a.status)
	require.Equal(t, before, setting(t, "max_block_size"), "not after an error either")
}

func TestADeduplicationTokenDoesNotLeak(t *testing.T) {
	engine := shared(t)
	db := database(t, chdbtest.Open(t, engine))
	ok(t, post(t, engine, "CREATE TABLE "+db+".t (n UInt64) ENGINE = MergeTree ORDER BY n SETTINGS non_replicated_deduplication_window = 100"))
	insert := func(rows string, params ...string) {
		ok(t, post(t, engine, rows, append([]string{"query", "INSERT INTO " + db + ".t FORMAT CSV"}, params...)...))
	}
	count := func() string { return strings.TrimSpace(ok(t, post(t, engine, "SELECT count() FROM "+db+".t"))) }
	insert("1\n2\n", "insert_deduplication_token", "a")
	insert("1\n2\n", "insert_deduplication_token", "a")
	require.Equal(t, "2", count(), "the same token once more")
	insert("3\n", "insert_deduplication_token", "b")
	insert("4\n")
	insert("5\n")
	require.Equal(t, "5", count(), "no token is left over")
}

func TestSession(t *testing.T) {
	engine := shared(t)
	in := func(sql string, params ...string) answer {
		return post(t, engine, sql, append([]string{"session_id", "s1"}, params...)...)
	}
	before := setting(t, "max_block_size")
	require.Equal(t, "372", in("SELECT 1", "session_check", "1").header.Get("X-ClickHouse-Exception-Code"))
	ok(t, in("SET max_block_size = 31"))
	ok(t, in("CREATE TEMPORARY TABLE mine (n UInt8)"))
	ok(t, in("INSERT INTO mine VALUES (1), (2)"))
	require.Equal(t, "2\n", ok(t, in("SELECT count() FROM mine")))
	require.Equal(t, "31\n", ok(t, in("SELECT getSetting('max_block_size')")))
	require.Equal(t, "37\n", ok(t, in("SELECT getSetting('max_block_size')", "max_block_size", "37")))
	require.Equal(t, "31\n", ok(t, in("SELECT getSetting('max_block_size')")), "a setting in the URL is for its request")
	require.Equal(t, "q7\n", ok(t, in("SELECT query_id FROM system.processes WHERE query_id = 'q7'", "query_id", "q7")))
	require.Equal(t, before, setting(t, "max_block_size"))
	require.Equal(t, http.StatusNotFound, post(t, engine, "SELECT * FROM mine", "session_id", "s2").status)
	require.Equal(t, "374", in("SELECT 1", "session_timeout", "1e9").header.Get("X-ClickHouse-Exception-Code"))

	done := background(t, forever, "holder", "session_id", "s1")
	require.Equal(t, "373", code(in("SELECT 1")), "one request at a time")
	ok(t, post(t, engine, "KILL QUERY WHERE query_id = 'holder'"))
	require.Equal(t, "394", code(<-done))
	require.Eventually(t, func() bool { return in("SELECT 1").status == 200 }, patience, tick)
	ok(t, in("SELECT 1", "session_timeout", "0"))
	require.Eventually(t, func() bool {
		return in("SELECT 1", "session_check", "1", "session_timeout", "0").header.Get("X-ClickHouse-Exception-Code") == "372"
	}, patience, tick, "the session expires")
}
