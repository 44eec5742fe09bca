package mysql

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Flavour is a kind of server that speaks MySQL's protocol.
type Flavour string

// The flavours. The empty Flavour means that the server is asked.
const (
	MySQL     Flavour = "mysql"
	MariaDB   Flavour = "mariadb"
	TiDB      Flavour = "tidb"
	Doris     Flavour = "doris"
	StarRocks Flavour = "starrocks"
)

// Flavours are those that are known.
func Flavours() []Flavour { return slices.Sorted(maps.Keys(flavours)) }

// traits are what differs between the flavours.
type traits struct {
	flavour Flavour // also the name of its table of error codes
	// list shows the processes, with whole statements. Columns are found by their names.
	list string
	// limit is the session variable of the time limit, and its value.
	limit     string
	limitText func(time.Duration) string
	// memory is the session variable of the memory limit in bytes; empty if a session may not set one.
	memory string
	// readOnly is the session variable that makes transactions read-only; empty if there is none that does.
	readOnly string
	// locks says that GET_LOCK keeps two sessions apart. Without it the list of processes is looked at, which is not atomic.
	locks bool
	// holder says that IS_USED_LOCK names the connection that has a lock.
	holder bool
	// group is the statement that puts a session into a workload group, given the group's name; nil if there are no such groups.
	group func(name string) string
	// hangsUp says that KILL CONNECTION closes the connection without a word, and that this was seen on a real server.
	hangsUp bool
	// catalogs says that a schema may be catalog.database.
	catalogs bool
	// explain is what goes in front of a statement that is to be planned only.
	explain string
	// connections is the variable of the limit on connections; empty if it says nothing of this server.
	connections string
}

const (
	list        = "SELECT id, command, time, info FROM information_schema.processlist"
	listMariaDB = "SELECT id, command, time_ms, info, examined_rows, max_memory_used FROM information_schema.processlist"
	listFull    = "SHOW FULL PROCESSLIST"
)

var flavours = map[Flavour]*traits{
	// MySQL's time limit holds for SELECT only, and a session may not limit its memory. Its resource groups are of CPUs and priorities.
	MySQL: {
		group: func(name string) string { return "SET RESOURCE GROUP " + quote(name) },

		flavour: MySQL, explain: "EXPLAIN FORMAT=JSON", list: list, limit: "max_execution_time", limitText: millis,
		readOnly: "transaction_read_only", locks: true, holder: true, connections: "max_connections",
	},
	MariaDB: {
		flavour: MariaDB, explain: "EXPLAIN FORMAT=JSON", list: listMariaDB, limit: "max_statement_time", limitText: seconds, memory: "max_session_mem_used",
		readOnly: "tx_read_only", locks: true, holder: true, connections: "max_connections", hangsUp: true,
	},
	// TiDB's variables for read-only transactions do nothing. Its list is that of the one server.
	TiDB: {
		flavour: TiDB, explain: "EXPLAIN", list: list, limit: "max_execution_time", limitText: millis, memory: "tidb_mem_quota_query", locks: true,

		group: func(name string) string { return "SET RESOURCE GROUP " + quote(name) }, connections: "max_connections",
	},
	Doris: {
		flavour: Doris, explain: "EXPLAIN", list: listFull, limit: "query_timeout", limitText: wholeSeconds, memory: "exec_mem_limit",
		group: func(name string) string { return "SET workload_group = " + quoteText(name) }, catalogs: true,
	},
	StarRocks: {
		flavour: StarRocks, explain: "EXPLAIN", list: listFull, limit: "query_timeout", limitText: wholeSeconds, memory: "query_mem_limit",
		group: func(name string) string { return "SET resource_group = " + quoteText(name) }, catalogs: true,
	},
}

func millis(d time.Duration) string { return strconv.FormatInt(max(d.Milliseconds(), 1), 10) }

func seconds(d time.Duration) string {
	return strconv.FormatFloat(max(d.Seconds(), 0.001), 'f', 3, 64)
}

func wholeSeconds(d time.Duration) string {
	return strconv.FormatInt(max(int64(math.Ceil(d.Seconds())), 1), 10)
}

// flavourOf tells the flavour from what the server says of its version. Doris and StarRocks give themselves out as a MySQL and
// name themselves in the comment.
func flavourOf(version, comment string) Flavour {
	all := strings.ToLower(version + " " + comment)
	for _, known := range []struct {
		word    string
		flavour Flavour
	}{{"starrocks", StarRocks}, {"doris", Doris}, {"selectdb", Doris}, {"tidb", TiDB}, {"mariadb", MariaDB}} {
		if strings.Contains(all, known.word) {
			return known.flavour
		}
	}
	return MySQL
}
