//go:build real

package mysql_test

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/engine/enginetest"
	"github.com/pointsman/pointsman/pkg/engine/mysql"
	"github.com/pointsman/pointsman/pkg/failure"
	real "github.com/pointsman/pointsman/test/real/mariadb"
)

// provoked are statements and what the server says of them.
var provoked = []struct {
	sql, code string
	class     failure.Class
	settings  map[string]string
	readOnly  bool
}{
	{sql: "CREATE DATABASE work", code: "1007", class: failure.Semantic},
	{sql: "DROP DATABASE nowhere", code: "1008", class: failure.Semantic},
	{sql: "SELECT * FROM nowhere.t", code: "1146", class: failure.Semantic},
	{sql: "USE nowhere", code: "1049", class: failure.Semantic},
	{sql: "INSERT INTO child VALUES (NULL)", code: "1048", class: failure.Semantic},
	{sql: "CREATE TABLE parent (n int)", code: "1050", class: failure.Semantic},
	{sql: "DROP TABLE no_such_table", code: "1051", class: failure.Semantic},
	{sql: "SELECT id FROM parent a JOIN parent b", code: "1052", class: failure.Semantic},
	{sql: "SELECT no_such_column FROM parent", code: "1054", class: failure.Semantic},
	{sql: "SELECT id, s FROM parent GROUP BY id HAVING COUNT(*) > 0", code: "1055", class: failure.Semantic, settings: map[string]string{"sql_mode": "ONLY_FULL_GROUP_BY"}},
	{sql: "CREATE TABLE twice (n int, n int)", code: "1060", class: failure.Semantic},
	{sql: "INSERT INTO parent VALUES (1, 'x')", code: "1062", class: failure.Semantic},
	{sql: "SELEKT 1", code: "1064", class: failure.Semantic},
	{sql: "SELECT 1; SELECT 2", code: "1064", class: failure.Semantic},
	{sql: "SELECT 1 FROM parent, parent", code: "1066", class: failure.Semantic},
	{sql: "ALTER TABLE parent DROP COLUMN no_such_column", code: "1091", class: failure.Semantic},
	{sql: "SELECT COUNT(*) FROM parent a JOIN seq_1_to_1000000 b", code: "1104", class: failure.Resources, settings: map[string]string{"max_join_size": "10", "sql_big_selects": "0"}},
	{sql: "SELECT SUM(COUNT(id)) FROM parent", code: "1111", class: failure.Semantic},
	{sql: "INSERT INTO full SELECT REPEAT('x', 1000) FROM seq_1_to_10000", code: "1114", class: failure.Resources},
	{sql: "INSERT INTO parent VALUES (1)", code: "1136", class: failure.Semantic},
	{sql: "SELECT id, COUNT(*) FROM parent", code: "1140", class: failure.Semantic, settings: map[string]string{"sql_mode": "ONLY_FULL_GROUP_BY"}},
	{sql: "SELECT * FROM no_such_table", code: "1146", class: failure.Semantic},
	{sql: "LOAD DATA LOCAL INFILE '/etc/hostname' INTO TABLE parent", code: "1148", class: failure.Semantic},
	{sql: "SET SESSION no_such_variable = 1", code: "1193", class: failure.Semantic},
	{sql: "SELECT * FROM parent UNION SELECT 1", code: "1222", class: failure.Semantic},
	{sql: "SET SESSION sort_buffer_size = 'plenty'", code: "1232", class: failure.Semantic},
	{sql: "SET SESSION max_connections = 1", code: "1229", class: failure.Semantic},
	{sql: "SELECT (SELECT id, s FROM parent)", code: "1241", class: failure.Semantic},
	{sql: "SELECT (SELECT id FROM parent)", code: "1242", class: failure.Semantic},
	{sql: "INSERT INTO tiny VALUES (300)", code: "1264", class: failure.Semantic, settings: map[string]string{"sql_mode": "STRICT_ALL_TABLES"}},
	{sql: "SELECT 'a' COLLATE utf8mb4_bin = 'a' COLLATE utf8mb4_general_ci", code: "1267", class: failure.Semantic},
	{sql: "INSERT INTO tiny VALUES ('x')", code: "1366", class: failure.Semantic, settings: map[string]string{"sql_mode": "STRICT_ALL_TABLES"}},
	{sql: "SELECT no_such_function(1)", code: "1305", class: failure.Semantic},
	{sql: "CALL no_such_procedure()", code: "1305", class: failure.Semantic},
	{sql: "CALL raises()", code: "1644", class: failure.Semantic},
	{sql: "INSERT INTO tiny SELECT 1 / 0", code: "1365", class: failure.Semantic, settings: map[string]string{"sql_mode": "STRICT_ALL_TABLES,ERROR_FOR_DIVISION_BY_ZERO"}},
	{sql: "INSERT INTO parent VALUES (9, 'much too long')", code: "1406", class: failure.Semantic, settings: map[string]string{"sql_mode": "STRICT_ALL_TABLES"}},
	{sql: "DELETE FROM parent WHERE id = 1", code: "1451", class: failure.Semantic},
	{sql: "INSERT INTO child VALUES (99)", code: "1452", class: failure.Semantic},
	{sql: "SELECT 9223372036854775807 + 1", code: "1690", class: failure.Semantic},
	{sql: "SELECT ABS()", code: "1582", class: failure.Semantic},
	{sql: "INSERT INTO parent VALUES (7, 'x')", code: "1792", class: failure.Semantic, readOnly: true},
	{sql: "SELECT writes()", code: "1792", class: failure.Semantic, readOnly: true},
	{sql: "SELECT SLEEP(5)", code: "1969", class: failure.Timeout, settings: map[string]string{"max_statement_time": "0.05"}},
	{sql: "INSERT INTO positive VALUES (-1)", code: "4025", class: failure.Semantic},
	{sql: "WITH RECURSIVE r AS (SELECT * FROM r) SELECT * FROM r", code: "4005", class: failure.Semantic},
	{sql: "SELECT * FROM JSON_TABLE('{', '$' COLUMNS (a int PATH '$.a')) t", code: "4037", class: failure.Semantic},
	{sql: "SELECT RANK() OVER w FROM parent", code: "4009", class: failure.Semantic},
	{sql: "SELECT id FROM parent WHERE RANK() OVER () > 1", code: "4015", class: failure.Semantic},
	{sql: "SELECT ST_X('x') FROM parent", code: "4079", class: failure.Semantic},
}

var schema = []string{
	"CREATE TABLE work.parent (id int PRIMARY KEY, s varchar(5)) ENGINE=InnoDB",
	"INSERT INTO work.parent VALUES (1, 'a'), (2, 'b')",
	"CREATE TABLE work.child (id int NOT NULL, FOREIGN KEY (id) REFERENCES work.parent (id)) ENGINE=InnoDB",
	"INSERT INTO work.child VALUES (1)",
	"CREATE TABLE work.tiny (n tinyint)",
	"CREATE TABLE work.positive (n int CHECK (n > 0))",
	"SET GLOBAL max_heap_table_size = 65536",
	"CREATE PROCEDURE work.raises() SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'no'",
	"CREATE FUNCTION work.writes() RETURNS int BEGIN INSERT INTO work.tiny VALUES (1); RETURN 1; END",
}

func TestMariaDBCodes(t *testing.T) {
	server := real.Start(t)
	server.Exec(schema...)
	server.Exec("CREATE TABLE work.full (s varchar(1000)) ENGINE=MEMORY")
	e := open(t, mysql.Config{Name: "m", Addr: server.Addr})
	for i, c := range provoked {
		t.Run(fmt.Sprintf("%s %.30s", c.code, strings.ReplaceAll(c.sql, "/", "|")), func(t *testing.T) {
			err := enginetest.End(t.Context(), e, engine.Query{ID: fmt.Sprintf("code-%d/1", i), SQL: c.sql, Settings: c.settings, ReadOnly: c.readOnly})
			require.Error(t, err)
			code, class, phase := enginetest.ClassOf(t, err)
			require.Equal(t, c.code, code, "%v", err)
			require.Equal(t, c.class, class, "%v", err)
			require.Equal(t, engine.Answered, phase)
		})
	}
	hold := func(t *testing.T, statements ...string) *sql.Conn {
		conn, err := server.Open().Conn(t.Context())
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		for _, s := range statements {
			_, err = conn.ExecContext(t.Context(), s)
			require.NoError(t, err, s)
		}
		return conn
	}
	t.Run("a lock that another one holds", func(t *testing.T) {
		hold(t, "BEGIN", "UPDATE parent SET s = 'c' WHERE id = 2")
		code, class, _ := enginetest.ClassOf(t, enginetest.End(t.Context(), e, engine.Query{
			ID: "lock/1", SQL: "UPDATE parent SET s = 'd' WHERE id = 2", Settings: map[string]string{"innodb_lock_wait_timeout": "1"},
		}))
		require.Equal(t, "1205", code)
		require.Equal(t, failure.Resources, class)
	})
	t.Run("two that wait for each other", func(t *testing.T) {
		server.Exec("CREATE TABLE work.race (id int PRIMARY KEY, n int) ENGINE=InnoDB", "INSERT INTO work.race VALUES (1, 0), (2, 0), (3, 0), (4, 0)",
			"CREATE PROCEDURE work.pair() BEGIN START TRANSACTION; UPDATE work.race SET n = 1 WHERE id = 1; UPDATE work.race SET n = 1 WHERE id = 2; COMMIT; END")
		// The other one has changed more, so it is not the one that is ended.
		other := hold(t, "BEGIN", "UPDATE race SET n = 2 WHERE id = 2", "UPDATE race SET n = 2 WHERE id = 3", "UPDATE race SET n = 2 WHERE id = 4")
		ended := make(chan error, 1)
		go func() { ended <- enginetest.End(t.Context(), e, engine.Query{ID: "deadlock/1", SQL: "CALL pair()"}) }()
		require.Eventually(t, func() bool {
			var n int
			require.NoError(t, server.Open().QueryRow("SELECT COUNT(*) FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'").Scan(&n))
			return n == 1
		}, 5*time.Second, 150*time.Millisecond) // the server makes this table anew only when nobody has read it for 100 ms
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = other.ExecContext(context.Background(), "UPDATE race SET n = 2 WHERE id = 1")
		}()
		code, class, _ := enginetest.ClassOf(t, <-ended)
		<-done
		require.Equal(t, "1213", code)
		require.Equal(t, failure.Resources, class)
	})
	t.Run("a server that was made read-only", func(t *testing.T) {
		server.Exec("CREATE USER plain@'%'", "GRANT ALL ON work.* TO plain@'%'", "SET GLOBAL read_only = 1")
		defer server.Exec("SET GLOBAL read_only = 0")
		plain := open(t, mysql.Config{Name: "m", Addr: server.Addr, User: "plain", Database: "work"})
		code, class, _ := enginetest.ClassOf(t, enginetest.End(t.Context(), plain, engine.Query{ID: "replica/1", SQL: "INSERT INTO tiny VALUES (1)"}))
		require.Equal(t, "1290", code)
		require.Equal(t, failure.Semantic, class)
	})
	t.Run("rights", func(t *testing.T) {
		server.Exec("CREATE USER guest@'%'", "GRANT SELECT (id) ON work.parent TO guest@'%'")
		guest := open(t, mysql.Config{Name: "m", Addr: server.Addr, User: "guest", Database: "work"})
		for sql, want := range map[string]string{
			"SELECT s FROM parent": "1143", "SELECT * FROM tiny": "1142", "SELECT * FROM mysql.user": "1142", "CALL raises()": "1370",
			"SET GLOBAL read_only = 1": "1227", "CREATE DATABASE mine": "1044",
		} {
			code, class, _ := enginetest.ClassOf(t, enginetest.End(t.Context(), guest, engine.Query{ID: "rights" + want + "/1", SQL: sql}))
			require.Equal(t, want, code, sql)
			require.Equal(t, failure.Permission, class, sql)
		}
	})
}

// refusals are those of the server's door: nothing of the statement was sent, and each has its own class.
func TestMariaDBRefusals(t *testing.T) {
	server := real.Start(t, "--max-connections=10")
	server.Exec("CREATE USER locked@'%' ACCOUNT LOCK", "CREATE USER secret@'%' IDENTIFIED BY 'right'", "CREATE USER one@'%' WITH MAX_USER_CONNECTIONS 1",
		"CREATE USER few@'%' WITH MAX_QUERIES_PER_HOUR 1", "CREATE USER elsewhere@'192.0.2.1'")
	refused := func(t *testing.T, cfg mysql.Config) (string, failure.Class) {
		cfg.Name, cfg.Addr, cfg.Flavour = "m", server.Addr, mysql.MariaDB
		e := open(t, cfg)
		err := enginetest.End(t.Context(), e, engine.Query{ID: "refused/1", SQL: "SELECT 1"})
		require.Error(t, err)
		require.NotContains(t, err.Error(), "wrong-password")
		code, class, phase := enginetest.ClassOf(t, err)
		require.Equal(t, engine.NotSent, phase)
		return code, class
	}
	for _, c := range []struct {
		name  string
		cfg   mysql.Config
		code  string
		class failure.Class
	}{
		{"a wrong password", mysql.Config{User: "secret", Password: "wrong-password"}, "1045", failure.Permission},
		{"no such user", mysql.Config{User: "nobody"}, "1045", failure.Permission},
		{"a user of another host", mysql.Config{User: "elsewhere"}, "1045", failure.Permission},
		{"a locked account", mysql.Config{User: "locked"}, "4151", failure.Permission},
		{"no such database", mysql.Config{User: real.User, Database: "nowhere"}, "1049", failure.Semantic},
		{"a database that is not the user's", mysql.Config{User: "one", Database: "work"}, "1044", failure.Permission},
		{"too many statements", mysql.Config{User: "few"}, "1226", failure.QueueFull},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, class := refused(t, c.cfg)
			require.Equal(t, c.code, code)
			require.Equal(t, c.class, class)
		})
	}
	t.Run("no such schema", func(t *testing.T) {
		e := open(t, mysql.Config{Name: "m", Addr: server.Addr})
		code, class, phase := enginetest.ClassOf(t, enginetest.End(t.Context(), e, engine.Query{ID: "schema/1", SQL: "SELECT 1", Database: "nowhere"}))
		require.Equal(t, "1049", code)
		require.Equal(t, failure.Semantic, class)
		require.Equal(t, engine.NotSent, phase)
	})
	t.Run("a setting that does not exist, and one that can't be a name", func(t *testing.T) {
		e := open(t, mysql.Config{Name: "m", Addr: server.Addr})
		for _, name := range []string{"no_such", "a = 1; DROP TABLE t; --"} {
			code, class, phase := enginetest.ClassOf(t, enginetest.End(t.Context(), e, engine.Query{ID: "setting/1", SQL: "SELECT 1", Settings: map[string]string{name: "1"}}))
			require.Equal(t, "1193", code)
			require.Equal(t, failure.Semantic, class)
			require.Equal(t, engine.NotSent, phase)
		}
	})
	t.Run("no connection left for the user", func(t *testing.T) {
		db, err := sql.Open("mysql", strings.Replace(server.DSN(""), real.User+"@", "one@", 1))
		require.NoError(t, err)
		defer db.Close()
		require.NoError(t, db.Ping())
		code, class := refused(t, mysql.Config{User: "one"})
		require.Equal(t, "1226", code)
		require.Equal(t, failure.QueueFull, class)
	})
	t.Run("no connection left", func(t *testing.T) {
		var held []*sql.Conn
		db := server.Open()
		for range 20 {
			c, err := db.Conn(t.Context())
			if err != nil {
				break
			}
			held = append(held, c)
		}
		code, class := refused(t, mysql.Config{User: "secret", Password: "right"})
		require.Equal(t, "1040", code)
		require.Equal(t, failure.QueueFull, class)
		for _, c := range held {
			_ = c.Close()
		}
	})
}

// TestMariaDBWhoStoppedIt tells apart what has one code, and a server that goes away under a running statement.
func TestMariaDBWhoStoppedIt(t *testing.T) {
	server := real.Start(t)
	time.Sleep(1100 * time.Millisecond) // the server counts whole seconds since its start
	db := server.Open()
	asked := func(t *testing.T) (n int) {
		t.Helper()
		require.NoError(t, db.QueryRow("SHOW GLOBAL STATUS LIKE 'Com_show_status'").Scan(new(string), &n))
		return n
	}
	watched := func(t *testing.T) { // what has run for a second is watched: the adapter asks for the server's counts
		t.Helper()
		own := asked(t)
		require.Eventually(t, func() bool { own++; return asked(t) > own }, 10*time.Second, 20*time.Millisecond)
		time.Sleep(300 * time.Millisecond) // until it has its answer
	}
	lost := func(t *testing.T, err error) {
		t.Helper()
		code, class, phase := enginetest.ClassOf(t, err)
		require.Empty(t, code)
		require.Equal(t, failure.SubmitUnknown, class)
		require.Equal(t, engine.SentUnknown, phase)
	}
	run := func(t *testing.T, e engine.Engine, q engine.Query) (<-chan error, uint64) {
		id := q.ID
		ended := make(chan error, 1)
		go func() { ended <- enginetest.End(context.Background(), e, q) }()
		var thread uint64
		require.Eventually(t, func() bool {
			return db.QueryRow("SELECT id FROM information_schema.processlist WHERE info LIKE '/* pointsman:"+id+" */%'").Scan(&thread) == nil
		}, 5*time.Second, 20*time.Millisecond)
		return ended, thread
	}
	slow := func(t *testing.T, e engine.Engine, id string) (<-chan error, uint64) {
		return run(t, e, engine.Query{ID: id, SQL: "SELECT SLEEP(30)", ReadOnly: true})
	}
	t.Run("something between closed the connection", func(t *testing.T) { // the server works on, and kills others
		g := enginetest.NewGate(t, server.Addr)
		e := open(t, mysql.Config{Name: "m", Addr: g.Addr})
		ended, thread := run(t, e, engine.Query{ID: "between", SQL: "SELECT BENCHMARK(100000000000, SHA2('x', 512))", ReadOnly: true})
		watched(t)
		_, another := run(t, open(t, mysql.Config{Name: "m", Addr: server.Addr}), engine.Query{ID: "other", SQL: "SELECT SLEEP(30)"})
		server.Exec(fmt.Sprintf("KILL CONNECTION %d", another))
		g.CutAll()
		lost(t, <-ended)
		server.Exec(fmt.Sprintf("KILL CONNECTION %d", thread))
	})
	t.Run("an operator killed it", func(t *testing.T) {
		e := open(t, mysql.Config{Name: "m", Addr: server.Addr})
		ended, thread := slow(t, e, "killed")
		server.Exec(fmt.Sprintf("KILL QUERY %d", thread))
		code, class, _ := enginetest.ClassOf(t, <-ended)
		require.Equal(t, "1317", code)
		require.Equal(t, failure.KilledByOperator, class)
	})
	t.Run("an operator killed its connection", func(t *testing.T) { // which the server does not say: it hangs up
		e := open(t, mysql.Config{Name: "m", Addr: server.Addr})
		ended, thread := slow(t, e, "cut")
		watched(t)
		server.Exec(fmt.Sprintf("KILL CONNECTION %d", thread))
		failed := <-ended
		code, class, phase := enginetest.ClassOf(t, failed)
		require.Equal(t, "1927", code)
		require.Equal(t, failure.KilledByOperator, class)
		require.Equal(t, engine.Answered, phase)
		require.ErrorContains(t, failed, "KILL CONNECTION")
	})
	t.Run("an operator killed the connection of a write", func(t *testing.T) { // which may have been done by then
		e := open(t, mysql.Config{Name: "m", Addr: server.Addr})
		server.Exec("CREATE TABLE work.slept (n integer)")
		ended, thread := run(t, e, engine.Query{ID: "cutwrite", SQL: "INSERT INTO slept SELECT SLEEP(30)"})
		time.Sleep(1500 * time.Millisecond)
		server.Exec(fmt.Sprintf("KILL CONNECTION %d", thread))
		lost(t, <-ended)
	})
	t.Run("the server shuts down", func(t *testing.T) {
		e := open(t, mysql.Config{Name: "m", Addr: server.Addr})
		ended, _ := slow(t, e, "shutdown")
		server.End(syscall.SIGTERM)
		_, class, _ := enginetest.ClassOf(t, <-ended)
		require.Contains(t, []failure.Class{failure.ClusterDown, failure.SubmitUnknown}, class, "never an operator's wish")
		_, class, phase := enginetest.ClassOf(t, enginetest.End(t.Context(), e, engine.Query{ID: "down/1", SQL: "SELECT 1"}))
		require.Equal(t, failure.ClusterDown, class)
		require.Equal(t, engine.NotSent, phase)
		server.Again()
		server.AwaitReady()
		require.NoError(t, enginetest.End(t.Context(), e, engine.Query{ID: "up/1", SQL: "SELECT 1"}), "the same client goes on")
		require.NoError(t, e.Canary(t.Context()))
	})
	t.Run("the server is killed", func(t *testing.T) {
		e := open(t, mysql.Config{Name: "m", Addr: server.Addr})
		ended, _ := slow(t, e, "crash")
		server.End(syscall.SIGKILL)
		_, class, phase := enginetest.ClassOf(t, <-ended)
		require.Equal(t, failure.SubmitUnknown, class)
		require.Equal(t, engine.SentUnknown, phase)
		server.Again()
		server.AwaitReady()
		run, err := e.Find(t.Context(), "crash")
		require.NoError(t, err)
		require.Equal(t, engine.RunUnknown, run.State)
	})
}

// TestTheZoneOfTheResourceProfile: a TIMESTAMP is an instant only as long as the zone that it is shown in is known.
func TestTheZoneOfTheResourceProfile(t *testing.T) {
	server := real.Start(t)
	server.Exec("SET time_zone = '+00:00'", "CREATE TABLE work.moments (at timestamp)")
	e := open(t, mysql.Config{Name: "m", Addr: server.Addr})
	require.NoError(t, enginetest.End(t.Context(), e, engine.Query{ID: "zone/1", SQL: "INSERT INTO moments VALUES ('2026-11-30 12:00:00')"}))
	read := func(id string, settings map[string]string) any {
		rows, err := e.Submit(t.Context(), engine.Query{ID: id, SQL: "SELECT at FROM moments", Settings: settings})
		require.NoError(t, err)
		defer rows.Close()
		require.True(t, rows.Next())
		values, err := rows.Values()
		require.NoError(t, err)
		return values[0]
	}
	require.Equal(t, time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC), read("zone/2", nil))
	require.Equal(t, "2026-11-30T17:30:00", read("zone/3", map[string]string{"TIME_ZONE": "+05:30"}))
}
