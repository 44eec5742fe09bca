package mysql_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/engine/enginetest"
	"github.com/pointsman/pointsman/pkg/engine/mysql"
	"github.com/pointsman/pointsman/pkg/engine/mysql/familytest"
	"github.com/pointsman/pointsman/test/ports"
)

// server is a flavour that can't be run in tests, as its documentation and its sources say that it behaves.
type server struct {
	flavour mysql.Flavour
	name    string
	traits  familytest.Traits
	group   string // what a session that belongs to a workload group says
}

var servers = []server{
	{
		mysql.MySQL, "MySQL",
		familytest.Traits{
			Version: "8.4.3", Comment: "MySQL Community Server - GPL", Locks: true, Limit: "max_execution_time", Unit: time.Millisecond,
			Killed: familytest.Failure{Code: 1317, Message: "Query execution was interrupted"},
			Late:   familytest.Failure{Code: 3024, Message: "Query execution was interrupted, maximum statement execution time exceeded"},
		},
		"SET RESOURCE GROUP `etl`",
	},
	{
		mysql.TiDB, "TiDB",
		familytest.Traits{
			Version: "8.0.11-TiDB-v8.5.0", Comment: "TiDB Server (Apache License 2.0) Community Edition, MySQL 8.0 compatible",
			Locks: true, Limit: "max_execution_time", Unit: time.Millisecond, Memory: "tidb_mem_quota_query",
			Killed: familytest.Failure{Code: 1317, Message: "Query execution was interrupted"},
			Late:   familytest.Failure{Code: 3024, Message: "Query execution was interrupted, maximum statement execution time exceeded"},
			Full:   familytest.Failure{Code: 1105, Message: "Your query has been cancelled due to exceeding the allowed memory limit for a single SQL query."},
		},
		"SET RESOURCE GROUP `etl`",
	},
	{
		mysql.Doris, "Apache Doris",
		familytest.Traits{
			Version: "5.7.99", Comment: "Doris version doris-2.1.7-rc03-443e87e203",
			Columns: []string{"CurrentConnected", "Id", "User", "Host", "LoginTime", "Catalog", "Db", "Command", "Time", "State", "QueryId", "Info", "FE", "CloudCluster"},
			Limit:   "query_timeout", Unit: time.Second, Memory: "exec_mem_limit",
			Killed: familytest.Failure{Code: 1105, Message: "errCode = 2, detailMessage = cancel query by user from 127.0.0.1:40000"},
			Late:   familytest.Failure{Code: 1105, Message: "errCode = 2, detailMessage = query timeout"},
			Full:   familytest.Failure{Code: 1105, Message: "errCode = 2, detailMessage = (127.0.0.1)[MEM_LIMIT_EXCEEDED]PreCatch std::bad_alloc, memory tracker limit exceeded"},
			Answers: map[string]familytest.Failure{
				"SELECT * FROM no_such_table": {Code: 1105, Message: "errCode = 2, detailMessage = Table [no_such_table] does not exist in database [work]."},
				"SELEKT 1":                    {Code: 1105, Message: "errCode = 2, detailMessage = \nmismatched input 'SELEKT' expecting {<EOF>, ';'}(line 1, pos 0)"},
			},
		},
		"SET workload_group = 'etl'",
	},
	{
		mysql.StarRocks, "StarRocks",
		familytest.Traits{
			Version: "8.0.33", Comment: "StarRocks version 3.3.5",
			Columns: []string{"ServerName", "Id", "User", "Host", "Db", "Command", "ConnectionStartTime", "Time", "State", "Info", "IsPending", "Warehouse", "CNGroup"},
			Limit:   "query_timeout", Unit: time.Second, Memory: "query_mem_limit",
			Killed: familytest.Failure{Code: 1064, Message: "Cancelled by user"},
			Late:   familytest.Failure{Code: 5024, Message: "Query timeout. Increase the query_timeout session variable and retry"},
			Full:   familytest.Failure{Code: 1064, Message: "Memory of Query0198 exceed limit. Pipeline Backend: 127.0.0.1, fragment: 0198 Used: 2147483648, Limit: 2147483648. Mem usage has exceed the limit of single query"},
			Answers: map[string]familytest.Failure{
				"SELECT * FROM no_such_table": {Code: 1064, Message: "Getting analyzing error. Detail message: Unknown table 'work.no_such_table'."},
				"SELEKT 1":                    {Code: 1064, Message: "Getting syntax error at line 1, column 0. Detail message: Unexpected input 'SELEKT'."},
			},
		},
		"SET resource_group = 'etl'",
	},
}

func client(t *testing.T, cfg mysql.Config) engine.Engine {
	t.Helper()
	cfg.Name, cfg.User, cfg.Database = "f", "root", "work"
	e, err := mysql.Open(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { _ = e.Close() })
	return e
}

// TestFamily runs the suite on exchanges that were made up: it shows what the adapter says and understands.
func TestFamily(t *testing.T) {
	for _, s := range servers {
		t.Run(string(s.flavour), func(t *testing.T) {
			if s.traits.Answers == nil {
				s.traits.Answers = map[string]familytest.Failure{
					"SELECT * FROM no_such_table": {Code: 1146, Message: "Table 'work.no_such_table' doesn't exist"},
					"SELEKT 1":                    {Code: 1064, Message: "You have an error in your SQL syntax"},
				}
			}
			srv := familytest.Start(t, s.traits)
			f := enginetest.Fixture{
				Engine: s.name, Proof: enginetest.MadeUp,
				Kind: string(s.flavour),
				Open: func(t *testing.T) engine.Engine { return client(t, mysql.Config{Addr: srv.Addr, Flavour: s.flavour}) },
				Dead: func(t *testing.T) engine.Engine {
					return client(t, mysql.Config{Addr: ports.Closed(t), Flavour: s.flavour, DialTimeout: time.Second})
				},
				One: "SELECT 1 AS n", Empty: "SELECT n FROM empty", NoResult: "CREATE TABLE IF NOT EXISTS nothing (n int)",
				Wrong: "SELECT * FROM no_such_table", Syntax: "SELEKT 1", Slow: "SELECT SLEEP(30)", Echo: "SELECT %d",
				Setting: "SELECT @@parallelism", SettingName: "parallelism", SettingValue: "eight",
			}
			if s.traits.Memory != "" {
				f.Greedy, f.MemoryLimit = "SELECT greedy", 1<<30
			}
			if s.flavour != mysql.TiDB { // which a real one vouches for
				f.Record, f.Exceptions = "mysql-"+string(s.flavour), notMadeUp(s.flavour)
			}
			enginetest.Exercise(t, f)
		})
	}
}

// notMadeUp says why there are capabilities that are not tried on a server that was made up.
func notMadeUp(flavour mysql.Flavour) map[string]string {
	out := map[string]string{}
	for _, name := range []string{"Types", "FailsMidway", "CancelWhileReading", "CloseWhileReading", "ReaderGoesAway", "Explain", "LargeResult", "Network"} {
		out[name] = "made-up rows would show what was made up; MariaDB and TiDB show the same code on real ones"
	}
	if flavour == mysql.MySQL {
		out["MemoryLimit"] = "a session may not limit its memory"
		out["ReadsDoNotWrite"] = "the adapter sets `transaction_read_only`, and what that does only a real server shows"
		return out
	}
	out["ReadsDoNotWrite"] = "there is no session that can't write"
	return out
}

// TestWhatIsSaid is the wire's side of an attempt, statement by statement.
func TestWhatIsSaid(t *testing.T) {
	want := map[mysql.Flavour]string{
		mysql.MySQL:     "SET time_zone = '+00:00', parallelism = 8, max_execution_time = 1500, transaction_read_only = 1",
		mysql.TiDB:      "SET time_zone = '+00:00', parallelism = 8, tidb_mem_quota_query = 1073741824, max_execution_time = 1500",
		mysql.Doris:     "SET time_zone = '+00:00', parallelism = 8, exec_mem_limit = 1073741824, query_timeout = 2",
		mysql.StarRocks: "SET time_zone = '+00:00', parallelism = 8, query_mem_limit = 1073741824, query_timeout = 2",
	}
	for _, s := range servers {
		t.Run(string(s.flavour), func(t *testing.T) {
			srv := familytest.Start(t, s.traits)
			e := client(t, mysql.Config{Addr: srv.Addr, WorkloadGroup: "etl", Spares: -1}) // the server is asked what it is
			rows, err := e.Submit(t.Context(), engine.Query{
				ID: "T1/2", SQL: "SELECT 7", Database: "lake.sales", MaxExecution: 1500 * time.Millisecond, MaxMemoryBytes: 1 << 30,
				Settings: map[string]string{"parallelism": "8"}, ReadOnly: true,
			})
			require.NoError(t, err)
			require.True(t, rows.Next())
			require.False(t, rows.Next())
			require.NoError(t, rows.Close())
			said := srv.Said()
			require.Equal(t, "SELECT CONNECTION_ID(), @@version, @@version_comment", said[0])
			require.Equal(t, want[s.flavour], said[1])
			said = said[2:]
			if s.group != "" {
				require.Equal(t, s.group, said[0])
				said = said[1:]
			}
			schema := "USE `lake.sales`"
			if s.traits.Columns != nil {
				schema = "USE `lake`.`sales`"
			}
			require.Equal(t, schema, said[0])
			if s.traits.Locks {
				require.Regexp(t, `^SELECT GET_LOCK\('pointsman:[0-9a-f]{32}', 0\)$`, said[1])
			} else {
				require.Equal(t, "/* pointsman control */ SHOW FULL PROCESSLIST", said[1])
			}
			require.Equal(t, []string{"/* pointsman:T1/2 */ SELECT 7"}, said[2:])

			srv.Forget()
			_, err = e.Find(t.Context(), "T1/2")
			require.NoError(t, err)
			require.Len(t, srv.Said(), 1, "one question finds it")
		})
	}
}

// TestTheWorkloadGroupOfAResourceProfile goes before the cluster's, and is no session variable where it is a statement.
func TestTheWorkloadGroupOfAResourceProfile(t *testing.T) {
	for _, s := range servers {
		if s.group == "" {
			continue
		}
		t.Run(string(s.flavour), func(t *testing.T) {
			srv := familytest.Start(t, s.traits)
			e := client(t, mysql.Config{Addr: srv.Addr, WorkloadGroup: "etl", Spares: -1})
			rows, err := e.Submit(t.Context(), engine.Query{ID: "T1/1", SQL: "SELECT 7", Settings: map[string]string{"workload_group": "it's heavy"}})
			require.NoError(t, err)
			require.NoError(t, rows.Close())
			var found []string
			for _, said := range srv.Said() {
				if strings.Contains(said, "heavy") {
					found = append(found, said)
				}
				require.NotContains(t, said, "etl")
			}
			require.Len(t, found, 1)
			quoted := "'it''s heavy'"
			if strings.Contains(s.group, "`") {
				quoted = "`it's heavy`"
			}
			require.Equal(t, strings.NewReplacer("'etl'", quoted, "`etl`", quoted).Replace(s.group), found[0])
		})
	}
}
