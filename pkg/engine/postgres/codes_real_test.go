//go:build real

package postgres_test

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/engine/enginetest"
	"github.com/pointsman/pointsman/pkg/engine/postgres"
	"github.com/pointsman/pointsman/pkg/failure"
	real "github.com/pointsman/pointsman/test/real/postgres"
)

// provoked are statements and what the server says of them.
var provoked = []struct {
	sql, code string
	class     failure.Class
	settings  map[string]string
	readOnly  bool
}{
	{sql: "SELECT count(*) FROM parent GROUP BY id FOR UPDATE", code: "0A000", class: failure.Semantic},
	{sql: "COPY parent FROM STDIN", code: "0A000", class: failure.Semantic},
	{sql: "DO $$ BEGIN CASE 1 WHEN 2 THEN NULL; END CASE; END $$", code: "20000", class: failure.Semantic},
	{sql: "SELECT (SELECT id FROM parent)", code: "21000", class: failure.Semantic},
	{sql: "INSERT INTO short VALUES ('too long')", code: "22001", class: failure.Semantic},
	{sql: "SELECT 9223372036854775807 + 1", code: "22003", class: failure.Semantic},
	{sql: "SELECT 'yesterday-ish'::date", code: "22007", class: failure.Semantic},
	{sql: "SELECT date '9999999-01-01'", code: "22008", class: failure.Semantic},
	{sql: "SELECT 1 / 0", code: "22012", class: failure.Semantic},
	{sql: "SELECT 1 FROM parent LIMIT -1", code: "2201W", class: failure.Semantic},
	{sql: "SELECT 1 FROM parent OFFSET -1", code: "2201X", class: failure.Semantic},
	{sql: "SELECT ln(0::numeric)", code: "2201E", class: failure.Semantic},
	{sql: "SELECT 'a' ~ '['", code: "2201B", class: failure.Semantic},
	{sql: "SELECT set_config('work_mem', 'plenty', false)", code: "22023", class: failure.Semantic},
	{sql: "SELECT 'x'::integer", code: "22P02", class: failure.Semantic},
	{sql: "SELECT '{'::jsonb", code: "22P02", class: failure.Semantic},
	{sql: "INSERT INTO child VALUES (NULL)", code: "23502", class: failure.Semantic},
	{sql: "INSERT INTO child VALUES (99)", code: "23503", class: failure.Semantic},
	{sql: "INSERT INTO parent VALUES (1)", code: "23505", class: failure.Semantic},
	{sql: "INSERT INTO parent VALUES (-1)", code: "23514", class: failure.Semantic},
	{sql: "INSERT INTO parent VALUES (7)", code: "25006", class: failure.Semantic, readOnly: true},
	{sql: "SELECT nextval('counter')", code: "25006", class: failure.Semantic, readOnly: true},
	{sql: "SAVEPOINT s", code: "25P01", class: failure.Semantic},
	{sql: "EXECUTE nothing", code: "26000", class: failure.Semantic},
	{sql: "DROP TABLE parent", code: "2BP01", class: failure.Semantic},
	{sql: "FETCH nothing", code: "34000", class: failure.Semantic},
	{sql: "CREATE TABLE no_such_schema.t (n int)", code: "3F000", class: failure.Semantic},
	{sql: "SELECT * FROM hidden", code: "42501", class: failure.Permission, settings: map[string]string{"role": "plain"}},
	{sql: "SELEKT", code: "42601", class: failure.Semantic},
	{sql: "SELECT 1; SELECT 2", code: "42601", class: failure.Semantic},
	{sql: "CREATE TABLE twice (n int, n int)", code: "42701", class: failure.Semantic},
	{sql: "SELECT id FROM parent a JOIN parent b ON true", code: "42702", class: failure.Semantic},
	{sql: "SELECT no_such_column FROM parent", code: "42703", class: failure.Semantic},
	{sql: "SELECT 1::no_such_type", code: "42704", class: failure.Semantic},
	{sql: "CREATE ROLE plain", code: "42710", class: failure.Semantic},
	{sql: "SELECT 1 FROM parent, parent", code: "42712", class: failure.Semantic},
	{sql: "SELECT id, count(*) FROM parent", code: "42803", class: failure.Semantic},
	{sql: "SELECT CASE WHEN 1 THEN 2 END", code: "42804", class: failure.Semantic},
	{sql: "SELECT '2026-11-30'::date::boolean", code: "42846", class: failure.Semantic},
	{sql: "SELECT no_such_function(1)", code: "42883", class: failure.Semantic},
	{sql: "SELECT * FROM no_such_table", code: "42P01", class: failure.Semantic},
	{sql: "CREATE SCHEMA public", code: "42P06", class: failure.Semantic},
	{sql: "CREATE TABLE parent (n int)", code: "42P07", class: failure.Semantic},
	{sql: "SELECT id FROM parent ORDER BY 3", code: "42P10", class: failure.Semantic},
	{sql: "SELECT rank() OVER w FROM parent", code: "42704", class: failure.Semantic},
	{sql: "SELECT sum(rank() OVER ()) OVER () FROM parent", code: "42P20", class: failure.Semantic},
	{sql: "WITH RECURSIVE r AS (SELECT * FROM r) SELECT * FROM r", code: "42P19", class: failure.Semantic},
	{sql: "SELECT $1::int", code: "08P01", class: failure.Semantic},
	{sql: "SELECT a, count(*) FROM (SELECT g % 1000000 AS a, repeat('x', 200) AS b FROM generate_series(1, 400000) g) t GROUP BY a, b ORDER BY 1", code: "53400", class: failure.Resources, settings: map[string]string{"temp_file_limit": "1MB", "work_mem": "64kB"}},
	{sql: "SELECT repeat('x', 1073741824)", code: "54000", class: failure.Semantic},
	{sql: "SELECT deeper(1)", code: "54001", class: failure.Semantic},
	{sql: "SELECT currval('counter')", code: "55000", class: failure.Semantic},
	{sql: "SELECT set_config('shared_buffers', '1MB', false)", code: "55P02", class: failure.Semantic},
	{sql: "DROP DATABASE postgres", code: "55006", class: failure.Resources},
	{sql: "SELECT pg_sleep(5)", code: "57014", class: failure.Timeout, settings: map[string]string{"statement_timeout": "50"}},
	{sql: "CREATE FUNCTION c() RETURNS int LANGUAGE c AS '/no/such/library'", code: "58P01", class: failure.Internal},
	{sql: "DO $$ BEGIN RAISE EXCEPTION 'no'; END $$", code: "P0001", class: failure.Semantic},
	{sql: "DO $$ DECLARE n int; BEGIN SELECT id INTO STRICT n FROM parent WHERE id = 99; END $$", code: "P0002", class: failure.Semantic},
	{sql: "DO $$ DECLARE n int; BEGIN SELECT id INTO STRICT n FROM parent; END $$", code: "P0003", class: failure.Semantic},
	{sql: "DO $$ BEGIN ASSERT false; END $$", code: "P0004", class: failure.Semantic},
	{sql: "SELECT 1 FROM elsewhere", code: "08001", class: failure.ClusterDown},
}

var schema = []string{
	"CREATE TABLE parent (id int PRIMARY KEY CHECK (id > 0))",
	"INSERT INTO parent VALUES (1), (2)",
	"CREATE TABLE child (id int NOT NULL REFERENCES parent)",
	"CREATE TABLE short (s varchar(3))",
	"CREATE TABLE hidden (n int)",
	"CREATE SEQUENCE counter",
	"CREATE ROLE plain",
	"CREATE FUNCTION deeper(n int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN deeper(n + 1); END $$",
	"CREATE EXTENSION postgres_fdw",
	"CREATE SERVER nobody FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '127.0.0.1', port '1')",
	"CREATE USER MAPPING FOR postgres SERVER nobody OPTIONS (user 'u')",
	"CREATE FOREIGN TABLE elsewhere (n int) SERVER nobody",
}

func TestCodes(t *testing.T) {
	server := real.Start(t)
	server.Exec(schema...)
	e := open(t, postgres.Config{Name: "p", Addr: server.Addr})
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
	t.Run("locks", func(t *testing.T) {
		conn, err := pgx.Connect(t.Context(), server.URL())
		require.NoError(t, err)
		defer conn.Close(context.Background())
		_, err = conn.Exec(t.Context(), "BEGIN; LOCK TABLE short")
		require.NoError(t, err)
		code, class, _ := enginetest.ClassOf(t, enginetest.End(t.Context(), e, engine.Query{ID: "lock/1", SQL: "SELECT * FROM short", Settings: map[string]string{"lock_timeout": "50"}}))
		require.Equal(t, "55P03", code)
		require.Equal(t, failure.Resources, class)
	})
	t.Run("two that wait for each other", func(t *testing.T) {
		conn, err := pgx.Connect(t.Context(), server.URL())
		require.NoError(t, err)
		defer conn.Close(context.Background())
		_, err = conn.Exec(t.Context(), "BEGIN; SET deadlock_timeout = '10s'; UPDATE short SET s = s; LOCK TABLE hidden")
		require.NoError(t, err)
		ended := make(chan error, 1)
		go func() {
			ended <- enginetest.End(t.Context(), e, engine.Query{
				ID: "deadlock/1", SQL: "DO $$ BEGIN LOCK TABLE child; LOCK TABLE hidden; END $$", Settings: map[string]string{"deadlock_timeout": "100"},
			})
		}()
		require.Eventually(t, func() bool {
			var n int
			other, err := pgx.Connect(t.Context(), server.URL())
			require.NoError(t, err)
			defer other.Close(context.Background())
			require.NoError(t, other.QueryRow(t.Context(), "SELECT count(*) FROM pg_locks WHERE NOT granted").Scan(&n))
			return n == 1
		}, 5*time.Second, 20*time.Millisecond)
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = conn.Exec(context.Background(), "LOCK TABLE child")
		}()
		code, class, _ := enginetest.ClassOf(t, <-ended)
		<-done
		require.Equal(t, "40P01", code)
		require.Equal(t, failure.Resources, class)
	})
	t.Run("lost against another one", func(t *testing.T) {
		server.Exec("CREATE TABLE race (n int)", "INSERT INTO race VALUES (0)")
		conn, err := pgx.Connect(t.Context(), server.URL())
		require.NoError(t, err)
		defer conn.Close(context.Background())
		_, err = conn.Exec(t.Context(), "BEGIN; UPDATE race SET n = 1")
		require.NoError(t, err)
		ended := make(chan error, 1)
		go func() {
			ended <- enginetest.End(t.Context(), e, engine.Query{ID: "race/1", SQL: "UPDATE race SET n = 2", Settings: map[string]string{"default_transaction_isolation": "repeatable read"}})
		}()
		require.Eventually(t, func() bool {
			run, err := e.Find(t.Context(), "race/1")
			return err == nil && run.State == engine.RunActive
		}, 5*time.Second, 10*time.Millisecond)
		time.Sleep(50 * time.Millisecond)
		_, err = conn.Exec(t.Context(), "COMMIT")
		require.NoError(t, err)
		code, class, _ := enginetest.ClassOf(t, <-ended)
		require.Equal(t, "40001", code)
		require.Equal(t, failure.Resources, class)
	})
}

// refusals are those of the server's door: nothing of the statement was sent, and each has its own class.
func TestRefusals(t *testing.T) {
	server := real.Start(t, "max_connections=8", "superuser_reserved_connections=2", "max_wal_senders=0")
	server.Exec("CREATE ROLE one LOGIN CONNECTION LIMIT 1", "CREATE ROLE locked LOGIN PASSWORD 'secret'", "CREATE ROLE nologin",
		"CREATE ROLE plain LOGIN")
	server.Admit("host all locked 127.0.0.1/32 scram-sha-256")
	server.Admit("host all plain 127.0.0.1/32 reject")
	refused := func(t *testing.T, cfg postgres.Config) (string, failure.Class) {
		cfg.Name, cfg.Addr, cfg.SSLMode = "p", server.Addr, "disable"
		e, err := postgres.Open(cfg)
		require.NoError(t, err)
		defer e.Close()
		err = enginetest.End(t.Context(), e, engine.Query{ID: "refused/1", SQL: "SELECT 1"})
		require.Error(t, err)
		require.NotContains(t, err.Error(), "wrong-password")
		code, class, phase := enginetest.ClassOf(t, err)
		require.Equal(t, engine.NotSent, phase)
		return code, class
	}
	for _, c := range []struct {
		name  string
		cfg   postgres.Config
		code  string
		class failure.Class
	}{
		{"a wrong password", postgres.Config{User: "locked", Password: "wrong-password", Database: "postgres"}, "28P01", failure.Permission},
		{"no such role", postgres.Config{User: "nobody", Database: "postgres"}, "28000", failure.Permission},
		{"a role that may not connect", postgres.Config{User: "nologin", Database: "postgres"}, "28000", failure.Permission},
		{"turned away by a rule", postgres.Config{User: "plain", Database: "postgres"}, "28000", failure.Permission},
		{"no such database", postgres.Config{User: real.User, Database: "nowhere"}, "3D000", failure.Semantic},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, class := refused(t, c.cfg)
			require.Equal(t, c.code, code)
			require.Equal(t, c.class, class)
		})
	}
	t.Run("a setting that does not exist", func(t *testing.T) {
		e := open(t, postgres.Config{Name: "p", Addr: server.Addr})
		code, class, phase := enginetest.ClassOf(t, enginetest.End(t.Context(), e, engine.Query{ID: "setting/1", SQL: "SELECT 1", Settings: map[string]string{"no_such": "1"}}))
		require.Equal(t, "42704", code)
		require.Equal(t, failure.Semantic, class)
		require.Equal(t, engine.NotSent, phase)
	})
	t.Run("the right password", func(t *testing.T) {
		e, err := postgres.Open(postgres.Config{Name: "p", Addr: server.Addr, User: "locked", Password: "secret", Database: "postgres"})
		require.NoError(t, err)
		defer e.Close()
		require.NoError(t, enginetest.End(t.Context(), e, engine.Query{ID: "password/1", SQL: "SELECT 1"}))
	})
	t.Run("no connection left", func(t *testing.T) {
		var held []*pgx.Conn
		defer func() {
			for _, c := range held {
				_ = c.Close(context.Background())
			}
		}()
		for len(held) < 20 {
			c, err := pgx.Connect(t.Context(), server.URL())
			if err != nil {
				break
			}
			held = append(held, c)
		}
		code, class := refused(t, postgres.Config{User: real.User, Database: "postgres"})
		require.Equal(t, "53300", code)
		require.Equal(t, failure.QueueFull, class)
	})
	t.Run("no connection left for the role", func(t *testing.T) {
		c, err := pgx.Connect(t.Context(), strings.Replace(server.URL(), real.User+"@", "one@", 1))
		require.NoError(t, err)
		defer c.Close(context.Background())
		code, class := refused(t, postgres.Config{User: "one", Database: "postgres"})
		require.Equal(t, "53300", code)
		require.Equal(t, failure.QueueFull, class)
	})
}

// TestWhoStoppedIt tells the three apart that have one code, and a server that restarts under a running statement.
func TestWhoStoppedIt(t *testing.T) {
	server := real.Start(t)
	slow := func(t *testing.T, e engine.Engine, id string) <-chan error {
		ended := make(chan error, 1)
		go func() {
			ended <- enginetest.End(context.Background(), e, engine.Query{ID: id, SQL: "SELECT pg_sleep(30)"})
		}()
		require.Eventually(t, func() bool {
			run, err := e.Find(t.Context(), id)
			return err == nil && run.State == engine.RunActive
		}, 5*time.Second, 10*time.Millisecond)
		return ended
	}
	expect := func(t *testing.T, ended <-chan error, code string, class failure.Class) {
		t.Helper()
		err := <-ended
		gotCode, gotClass, _ := enginetest.ClassOf(t, err)
		require.Equal(t, code, gotCode, "%v", err)
		require.Equal(t, class, gotClass, "%v", err)
	}
	t.Run("an operator cancelled it", func(t *testing.T) {
		e := open(t, postgres.Config{Name: "p", Addr: server.Addr})
		ended := slow(t, e, "cancelled/1")
		server.Exec("SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE application_name = 'cancelled/1'")
		expect(t, ended, "57014", failure.KilledByOperator)
	})
	t.Run("an operator ended its session", func(t *testing.T) {
		e := open(t, postgres.Config{Name: "p", Addr: server.Addr})
		ended := slow(t, e, "terminated/1")
		server.Exec("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'terminated/1'")
		expect(t, ended, "57P01", failure.KilledByOperator)
	})
	t.Run("the server shuts down", func(t *testing.T) {
		e := open(t, postgres.Config{Name: "p", Addr: server.Addr})
		ended := slow(t, e, "shutdown/1")
		server.End(syscall.SIGINT)
		expect(t, ended, "57P01", failure.ClusterDown)
		_, class, phase := enginetest.ClassOf(t, enginetest.End(t.Context(), e, engine.Query{ID: "down/1", SQL: "SELECT 1"}))
		require.Equal(t, failure.ClusterDown, class)
		require.Equal(t, engine.NotSent, phase)
		server.Again()
		server.AwaitReady()
		require.NoError(t, enginetest.End(t.Context(), e, engine.Query{ID: "up/1", SQL: "SELECT 1"}), "the same client goes on")
		require.NoError(t, e.Canary(t.Context()))
	})
	t.Run("another backend crashes", func(t *testing.T) {
		e := open(t, postgres.Config{Name: "p", Addr: server.Addr})
		ended := slow(t, e, "crash/1")
		conn, err := pgx.Connect(t.Context(), server.URL())
		require.NoError(t, err)
		defer conn.Close(context.Background())
		require.NoError(t, syscall.Kill(int(conn.PgConn().PID()), syscall.SIGKILL)) // a child of this test's own server
		expect(t, ended, "57P02", failure.SubmitUnknown)                            // it may have been over just before
		server.AwaitReady()
		require.NoError(t, enginetest.End(t.Context(), e, engine.Query{ID: "back/1", SQL: "SELECT 1"}))
	})
	t.Run("the door is closing", func(t *testing.T) {
		server.AwaitReady()
		conn, err := pgx.Connect(t.Context(), server.URL())
		require.NoError(t, err)
		server.Signal(syscall.SIGTERM) // it waits for this session
		e := open(t, postgres.Config{Name: "p", Addr: server.Addr})
		require.Eventually(t, func() bool {
			err := enginetest.End(t.Context(), e, engine.Query{ID: "door/1", SQL: "SELECT 1"})
			if err == nil {
				return false
			}
			code, class, phase := enginetest.ClassOf(t, err)
			require.Equal(t, "57P03", code)
			require.Equal(t, failure.ClusterDown, class)
			require.Equal(t, engine.NotSent, phase)
			return true
		}, 5*time.Second, 20*time.Millisecond)
		require.NoError(t, conn.Close(context.Background()))
	})
}
