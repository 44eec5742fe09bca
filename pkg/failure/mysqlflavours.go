package failure

// The servers that speak MySQL's protocol share most of its codes, and each has some that mean something else elsewhere: 1053 is a
// server that shuts down, and in StarRocks a column of a semi-join. So each has a table of its own. Doris and StarRocks report
// most of what goes wrong while a query runs under one code, and only the message tells it apart.
var (
	mysql8 = merged(mysql, statements(mysql8Statements), map[string]entry{
		"3024": {name: "ER_QUERY_TIMEOUT", class: Timeout},
		"3032": {name: "ER_SERVER_OFFLINE_MODE", class: ClusterDown, network: true},
		"3015": {name: "ER_ENGINE_OUT_OF_MEMORY", class: MemoryLimit},
		"3118": {name: "ER_ACCOUNT_HAS_BEEN_LOCKED", class: Permission, hint: ownCredential},
		"3135": {name: "ER_DISK_FULL_NOWAIT", class: Resources},
		"3168": {name: "ER_SERVER_ISNT_AVAILABLE", class: ClusterDown, network: true},
		"3169": {name: "ER_SESSION_WAS_KILLED", class: KilledByOperator},
		"3572": {name: "ER_LOCK_NOWAIT", class: Resources},
		"3651": {name: "ER_RESOURCE_GROUP_NOT_EXISTS", class: Semantic, hint: "The workload group that the resource profile or the queue names does not exist there."},
		"3657": {name: "ER_RESOURCE_GROUP_DISABLED", class: Semantic, hint: "The server has no resource groups, so no workload group can be named."},
	})

	mariadb = merged(mysql, statements(mariadbStatements), map[string]entry{
		"1290": {name: "ER_OPTION_PREVENTS_STATEMENT", class: Semantic, when: []meaning{
			{contains: "max-session-mem-used", class: MemoryLimit},
			{contains: "read-only", class: Semantic, hint: replicaHint},
		}},
		"1927": {name: "ER_CONNECTION_KILLED", class: KilledByOperator, when: []meaning{
			{contains: "the server is shutting down", class: ClusterDown},
		}},
		"1931": {name: "ER_QUERY_RESULT_INCOMPLETE", class: Resources}, // LIMIT ROWS EXAMINED
		"1932": {name: "ER_NO_SUCH_TABLE_IN_ENGINE", class: Internal},
		"1939": {name: "ER_SQL_DISCOVER_ERROR", class: Internal},
		"1969": {name: "ER_STATEMENT_TIMEOUT", class: Timeout},
		"1979": {name: "ER_KILL_QUERY_DENIED_ERROR", class: Permission},
		"3015": {name: "ER_ENGINE_OUT_OF_MEMORY", class: MemoryLimit},
		"3032": {name: "ER_SERVER_OFFLINE_MODE", class: ClusterDown, network: true},
		"4150": {name: "ER_USER_IS_BLOCKED", class: Permission},
		"4151": {name: "ER_ACCOUNT_HAS_BEEN_LOCKED", class: Permission},
	})

	// tidb adds the codes of TiDB, TiKV, PD and TiFlash, by TiDB's documentation.
	tidb = merged(mysql8, map[string]entry{
		"1105": {name: "ER_UNKNOWN_ERROR", class: Internal, when: []meaning{
			{contains: "out of memory quota", class: MemoryLimit},
			{contains: "exceeding the allowed memory limit", class: MemoryLimit}, // seen of 7.5, which has 8175 for it
		}},
		"1317": {name: "ER_QUERY_INTERRUPTED", class: KilledByOperator, when: []meaning{
			{contains: "max_execution_time", class: Timeout},
			{contains: "maximum statement execution time", class: Timeout},
			{contains: "the server is shutting down", class: ClusterDown},
		}},
		"8001": {name: "ErrMemExceedThreshold", class: MemoryLimit},
		"8002": {name: "ErrForUpdateCantRetry", class: Resources},
		"8004": {name: "ErrTxnTooLarge", class: Resources},
		"8005": {name: "ErrWriteConflict", class: Resources},
		"8020": {name: "ErrTableLocked", class: Resources},
		"8022": {name: "ErrTxnRetryable", class: Resources},
		"8025": {name: "ErrEntryTooLarge", class: Semantic},
		"8027": {name: "ErrInfoSchemaExpired", class: ClusterDown},
		"8028": {name: "ErrInfoSchemaChanged", class: Resources},
		"8048": {name: "ErrUnsupportedIsolationLevel", class: Semantic},
		"8055": {name: "ErrSnapshotTooOld", class: Resources},
		"8108": {name: "ErrUnsupportedType", class: Semantic},
		"8109": {name: "ErrAnalyzeMissIndex", class: Semantic},
		"8110": {name: "ErrCartesianProductUnsupported", class: Semantic},
		"8121": {name: "ErrPrivilegeCheckFail", class: Permission},
		"8175": {name: "ErrMemoryExceedForQuery", class: MemoryLimit},
		"8176": {name: "ErrMemoryExceedForInstance", class: MemoryLimit},
		"8249": {name: "ErrResourceGroupNotExists", class: Semantic, hint: "The workload group that the resource profile or the queue names does not exist there."},
		"8252": {name: "ErrResourceGroupThrottled", class: QueueFull},
		"8253": {name: "ErrResourceGroupQueryRunawayInterrupted", class: KilledByOperator},
		"8254": {name: "ErrResourceGroupQueryRunawayQuarantine", class: KilledByOperator},
		"9001": {name: "ErrPDServerTimeout", class: ClusterDown, network: true},
		"9002": {name: "ErrTiKVServerTimeout", class: ClusterDown, network: true},
		"9003": {name: "ErrTiKVServerBusy", class: Resources},
		"9004": {name: "ErrResolveLockTimeout", class: Resources},
		"9005": {name: "ErrRegionUnavailable", class: ClusterDown, network: true},
		"9006": {name: "ErrGCTooEarly", class: Resources},
		"9007": {name: "ErrWriteConflict", class: Resources},
		"9008": {name: "ErrTiKVStoreLimit", class: Resources},
		"9010": {name: "ErrTiKVStaleCommand", class: Resources},
		"9011": {name: "ErrTiKVMaxTimestampNotSynced", class: ClusterDown, network: true},
		"9012": {name: "ErrTiFlashServerTimeout", class: ClusterDown, network: true},
		"9013": {name: "ErrTiFlashServerBusy", class: Resources},
	})

	doris = merged(mysql, map[string]entry{
		"1105": {name: "ERR_UNKNOWN_ERROR", class: Internal, when: dorisMeanings},
		"1064": {name: "ERR_PARSE_ERROR", class: Semantic, when: dorisMeanings},
		"1221": {name: "ERR_CATALOG_ACCESS_DENIED_ERROR", class: Permission},
		"1222": {name: "ERR_RESOURCE_ACCESS_DENIED_ERROR", class: Permission},
		"1223": {name: "ERR_SPECIFIC_ALL_ACCESS_DENIED_ERROR", class: Permission},
		"1224": {name: "ERR_TABLE_ACCESS_DENIED_ERROR", class: Permission},
		"1225": {name: "ERR_DB_ACCESS_DENIED_ERROR", class: Permission},
		"5024": {name: "ERR_QUERY_TIMEOUT", class: Timeout},
	})

	starrocks = merged(mysql, map[string]entry{
		"1053": {name: "ERR_ILLEGAL_COLUMN_REFERENCE_ERROR", class: Semantic},
		"1064": {name: "ERR_GENERAL", class: Semantic, when: starrocksMeanings},
		"1104": {name: "ERR_WRONG_TABLE_NAME", class: Semantic},
		"1105": {name: "ERR_UNKNOWN_ERROR", class: Internal, when: starrocksMeanings},
		"1249": {name: "ERR_SQL_IN_BLACKLIST_ERROR", class: Permission},
		"5021": {name: "ERR_BACKEND_OFFLINE", class: ClusterDown, network: true},
		"5024": {name: "ERR_QUERY_TIMEOUT", class: Timeout},
		"5025": {name: "ERR_FAILED_WHEN_INSERT", class: Internal},
		"5042": {name: "ERR_CLUSTER_NO_PERMISSIONS", class: Permission},
	})
)

// The order matters: a wait in a queue that took too long is a full queue and no slow query.
var dorisMeanings = []meaning{
	{contains: "waiting queue is full", class: QueueFull},
	{contains: "queue timeout", class: QueueFull},
	{contains: "mem_limit_exceeded", class: MemoryLimit},
	{contains: "memory limit exceeded", class: MemoryLimit},
	{contains: "memory exceed limit", class: MemoryLimit},
	{contains: "mem_alloc_failed", class: MemoryLimit},
	{contains: "overcommit mem", class: MemoryLimit},
	{contains: "without exceeding limit", class: MemoryLimit},
	{contains: "cancel query by user", class: KilledByOperator},
	{contains: "user_cancel", class: KilledByOperator},
	{contains: "query timeout", class: Timeout},
	{contains: "execute timeout", class: Timeout},
	{contains: "reach limit of query timeout", class: Timeout},
	{contains: "no backend available", class: ClusterDown},
	{contains: "no scannode backend available", class: ClusterDown},
	{contains: "there is no scannode backend", class: ClusterDown},
	{contains: "no queryable replica", class: ClusterDown},
	{contains: "denied", class: Permission},
	{contains: "workload group", class: Semantic, hint: "The workload group that the resource profile names does not exist there, or the user may not use it."},
	{contains: "unknown table", class: Semantic},
	{contains: "unknown column", class: Semantic},
	{contains: "unknown database", class: Semantic},
	{contains: "does not exist", class: Semantic},
	{contains: "can not found function", class: Semantic},
	{contains: "mismatched input", class: Semantic},
	{contains: "extraneous input", class: Semantic},
	{contains: "no viable alternative", class: Semantic},
	{contains: "syntax error", class: Semantic},
	{contains: "parseexception", class: Semantic},
	{contains: "analysisexception", class: Semantic},
}

var starrocksMeanings = []meaning{
	{contains: "pending timeout", class: QueueFull},
	{contains: "exceed max pending queries", class: QueueFull},
	{contains: "failed to allocate resource to query", class: QueueFull},
	{contains: "exceed concurrency limit", class: QueueFull},
	{contains: "exceed limit", class: MemoryLimit},
	{contains: "mem usage has exceed", class: MemoryLimit},
	{contains: "exceed big query", class: Resources},
	{contains: "killed by", class: KilledByOperator},
	{contains: "cancelled by user", class: KilledByOperator},
	{contains: "user cancel", class: KilledByOperator},
	{contains: "exceeded time limit", class: Timeout},
	{contains: "reached its timeout", class: Timeout},
	{contains: "query timeout", class: Timeout},
	{contains: "reached timeout", class: Timeout},
	{contains: "no alive backends", class: ClusterDown},
	{contains: "backend node not found", class: ClusterDown},
	{contains: "compute node not found", class: ClusterDown},
	{contains: "no queryable replica", class: ClusterDown},
	{contains: "rpc failed", class: ClusterDown},
	{contains: "access denied", class: Permission},
	{contains: "getting syntax error", class: Semantic},
	{contains: "getting analyzing error", class: Semantic},
	{contains: "unknown resource group", class: Semantic, hint: "The workload group that the resource profile names does not exist there."},
	{contains: "unknown error", class: Internal},
}
