package failure

import (
	"maps"
	"strings"
)

// mysql maps what servers of the MySQL family have in common, by MySQL's and MariaDB's mysqld_error.h. What is missing here, such
// as the codes of replication, counts as internal, and is reported with its number.
var mysql = merged(statements(mysqlStatements), map[string]entry{
	"5":    {name: "EE_OUTOFMEMORY", class: MemoryLimit},
	"1004": {name: "ER_CANT_CREATE_FILE", class: Internal},
	"1006": {name: "ER_CANT_CREATE_DB", class: Internal},
	"1009": {name: "ER_DB_DROP_DELETE", class: Internal},
	"1010": {name: "ER_DB_DROP_RMDIR", class: Internal},
	"1011": {name: "ER_CANT_DELETE_FILE", class: Internal},
	"1012": {name: "ER_CANT_FIND_SYSTEM_REC", class: Internal},
	"1013": {name: "ER_CANT_GET_STAT", class: Internal},
	"1014": {name: "ER_CANT_GET_WD", class: Internal},
	"1015": {name: "ER_CANT_LOCK", class: Internal},
	"1016": {name: "ER_CANT_OPEN_FILE", class: Internal},
	"1017": {name: "ER_FILE_NOT_FOUND", class: Internal},
	"1018": {name: "ER_CANT_READ_DIR", class: Internal},
	"1019": {name: "ER_CANT_SET_WD", class: Internal},
	"1020": {name: "ER_CHECKREAD", class: Resources},
	"1021": {name: "ER_DISK_FULL", class: Resources},
	"1023": {name: "ER_ERROR_ON_CLOSE", class: Internal},
	"1024": {name: "ER_ERROR_ON_READ", class: Internal},
	"1025": {name: "ER_ERROR_ON_RENAME", class: Internal},
	"1026": {name: "ER_ERROR_ON_WRITE", class: Resources},
	"1027": {name: "ER_FILE_USED", class: Internal},
	"1028": {name: "ER_FILSORT_ABORT", class: Internal},
	"1032": {name: "ER_KEY_NOT_FOUND", class: Internal},
	"1033": {name: "ER_NOT_FORM_FILE", class: Internal},
	"1034": {name: "ER_NOT_KEYFILE", class: Internal},
	"1035": {name: "ER_OLD_KEYFILE", class: Internal},
	"1037": {name: "ER_OUTOFMEMORY", class: MemoryLimit},
	"1038": {name: "ER_OUT_OF_SORTMEMORY", class: MemoryLimit},
	"1039": {name: "ER_UNEXPECTED_EOF", class: Internal},
	"1040": {name: "ER_CON_COUNT_ERROR", class: QueueFull, hint: "The server has no connection left for another session. Try again later, or let it run elsewhere."},
	"1041": {name: "ER_OUT_OF_RESOURCES", class: MemoryLimit},
	"1042": {name: "ER_BAD_HOST_ERROR", class: ClusterDown, network: true},
	"1043": {name: "ER_HANDSHAKE_ERROR", class: ClusterDown, network: true},
	"1044": {name: "ER_DBACCESS_DENIED_ERROR", class: Permission},
	"1045": {name: "ER_ACCESS_DENIED_ERROR", class: Permission, hint: ownCredential},
	"1047": {name: "ER_UNKNOWN_COM_ERROR", class: ClusterDown, network: true},
	"1053": {name: "ER_SERVER_SHUTDOWN", class: ClusterDown, network: true},
	"1080": {name: "ER_FORCING_CLOSE", class: ClusterDown, network: true},
	"1095": {name: "ER_KILL_DENIED_ERROR", class: Permission},
	"1104": {name: "ER_TOO_BIG_SELECT", class: Resources, hint: "The server does not run statements that would look at so many rows."},
	"1114": {name: "ER_RECORD_FILE_FULL", class: Resources, hint: "A table, often a temporary one, grew over what the server gives it. Read less at once, or use a larger pool."},
	"1119": {name: "ER_STACK_OVERRUN", class: Resources},
	"1129": {name: "ER_HOST_IS_BLOCKED", class: ClusterDown, network: true},
	"1130": {name: "ER_HOST_NOT_PRIVILEGED", class: Permission},
	"1131": {name: "ER_PASSWORD_ANONYMOUS_USER", class: Permission},
	"1132": {name: "ER_PASSWORD_NOT_ALLOWED", class: Permission},
	"1135": {name: "ER_CANT_CREATE_THREAD", class: Resources},
	"1142": {name: "ER_TABLEACCESS_DENIED_ERROR", class: Permission},
	"1143": {name: "ER_COLUMNACCESS_DENIED_ERROR", class: Permission},
	"1152": {name: "ER_ABORTING_CONNECTION", class: ClusterDown, network: true},
	"1154": {name: "ER_NET_READ_ERROR_FROM_PIPE", class: ClusterDown, network: true},
	"1155": {name: "ER_NET_FCNTL_ERROR", class: ClusterDown, network: true},
	"1156": {name: "ER_NET_PACKETS_OUT_OF_ORDER", class: ClusterDown, network: true},
	"1157": {name: "ER_NET_UNCOMPRESS_ERROR", class: ClusterDown, network: true},
	"1158": {name: "ER_NET_READ_ERROR", class: ClusterDown, network: true},
	"1159": {name: "ER_NET_READ_INTERRUPTED", class: ClusterDown, network: true},
	"1160": {name: "ER_NET_ERROR_ON_WRITE", class: ClusterDown, network: true},
	"1161": {name: "ER_NET_WRITE_INTERRUPTED", class: ClusterDown, network: true},
	"1180": {name: "ER_ERROR_DURING_COMMIT", class: Internal},
	"1181": {name: "ER_ERROR_DURING_ROLLBACK", class: Internal},
	"1182": {name: "ER_ERROR_DURING_FLUSH_LOGS", class: Internal},
	"1183": {name: "ER_ERROR_DURING_CHECKPOINT", class: Internal},
	"1184": {name: "ER_NEW_ABORTING_CONNECTION", class: ClusterDown, network: true},
	"1194": {name: "ER_CRASHED_ON_USAGE", class: Internal},
	"1195": {name: "ER_CRASHED_ON_REPAIR", class: Internal},
	"1197": {name: "ER_TRANS_CACHE_FULL", class: Resources},
	"1203": {name: "ER_TOO_MANY_USER_CONNECTIONS", class: QueueFull, hint: "The user has no connection left at that server. Try again later, or let it run elsewhere."},
	"1205": {name: "ER_LOCK_WAIT_TIMEOUT", class: Resources, hint: "A lock was held by another statement for too long."},
	"1206": {name: "ER_LOCK_TABLE_FULL", class: Resources},
	"1211": {name: "ER_NO_PERMISSION_TO_CREATE_USER", class: Permission},
	"1213": {name: "ER_LOCK_DEADLOCK", class: Resources, hint: "It and another statement waited for each other, and the server ended this one. Nothing was changed; it can be run again."},
	"1226": {name: "ER_USER_LIMIT_REACHED", class: QueueFull},
	"1227": {name: "ER_SPECIFIC_ACCESS_DENIED_ERROR", class: Permission},
	"1296": {name: "ER_GET_ERRMSG", class: Internal},
	"1297": {name: "ER_GET_TEMPORARY_ERRMSG", class: Internal},
	"1370": {name: "ER_PROCACCESS_DENIED_ERROR", class: Permission},
	"1410": {name: "ER_CANT_CREATE_USER_WITH_GRANT", class: Permission},
	"1412": {name: "ER_TABLE_DEF_CHANGED", class: Resources},
	"1429": {name: "ER_CONNECT_TO_FOREIGN_DATA_SOURCE", class: ClusterDown, network: true},
	"1430": {name: "ER_QUERY_ON_FOREIGN_DATA_SOURCE", class: Internal},
	"1436": {name: "ER_STACK_OVERRUN_NEED_MORE", class: Resources},
	"1461": {name: "ER_MAX_PREPARED_STMT_COUNT_REACHED", class: QueueFull},
	"1501": {name: "ER_CANT_CREATE_HANDLER_FILE", class: Internal},
	"1521": {name: "ER_PARTITION_FUNCTION_FAILURE", class: Internal},
	"1565": {name: "ER_DDL_LOG_ERROR", class: Internal},
	"1613": {name: "ER_XA_RBTIMEOUT", class: Resources},
	"1614": {name: "ER_XA_RBDEADLOCK", class: Resources},
	"1637": {name: "ER_TOO_MANY_CONCURRENT_TRXS", class: Resources},
	"1689": {name: "ER_LOCK_ABORTED", class: Resources},
	"1698": {name: "ER_ACCESS_DENIED_NO_PASSWORD_ERROR", class: Permission, hint: ownCredential},
	"1705": {name: "ER_STMT_CACHE_FULL", class: Resources},
	"1712": {name: "ER_INDEX_CORRUPT", class: Internal},
	"1713": {name: "ER_UNDO_RECORD_TOO_BIG", class: Internal},
	"1728": {name: "ER_CANNOT_LOAD_FROM_TABLE_V2", class: Internal},
	"1799": {name: "ER_INNODB_ONLINE_LOG_TOO_BIG", class: Resources},
	"1809": {name: "ER_TABLE_IN_SYSTEM_TABLESPACE", class: Internal},
	"1810": {name: "ER_IO_READ_ERROR", class: Internal},
	"1811": {name: "ER_IO_WRITE_ERROR", class: Resources},
	"1812": {name: "ER_TABLESPACE_MISSING", class: Internal},
	"1814": {name: "ER_TABLESPACE_DISCARDED", class: Internal},
	"1815": {name: "ER_INTERNAL_ERROR", class: Internal},
	"1816": {name: "ER_INNODB_IMPORT_ERROR", class: Internal},
	"1817": {name: "ER_INNODB_INDEX_CORRUPT", class: Internal},
	"1820": {name: "ER_MUST_CHANGE_PASSWORD", class: Permission, hint: ownCredential},
	"1862": {name: "ER_MUST_CHANGE_PASSWORD_LOGIN", class: Permission, hint: ownCredential},
	"1873": {name: "ER_ACCESS_DENIED_CHANGE_USER_ERROR", class: Permission},
	"1877": {name: "ER_TABLE_CORRUPT", class: Internal},
	"1878": {name: "ER_TEMP_FILE_WRITE_FAILURE", class: Resources},

	"1030": {name: "ER_GET_ERRNO", class: Internal, when: []meaning{
		{contains: "error 28 ", class: Resources}, // no space left
		{contains: "no space left", class: Resources},
	}},
	"1049": {name: "ER_BAD_DB_ERROR", class: Semantic, hint: "The database does not exist there. Check the schema of the Task."},
	"1054": {name: "ER_BAD_FIELD_ERROR", class: Semantic, hint: "A column is not known. Check its spelling and the tables it should come from."},
	"1064": {name: "ER_PARSE_ERROR", class: Semantic, hint: "The SQL text could not be parsed. The message quotes what follows the fault."},
	"1105": {name: "ER_UNKNOWN_ERROR", class: Internal},
	"1146": {name: "ER_NO_SUCH_TABLE", class: Semantic, hint: "The table does not exist there under that name. Check the name, its database and the schema of the Task."},
	"1290": {name: "ER_OPTION_PREVENTS_STATEMENT", class: Semantic, when: []meaning{
		{contains: "read-only", class: Semantic, hint: replicaHint},
		{contains: "read_only", class: Semantic, hint: replicaHint},
	}},
	"1305": {name: "ER_SP_DOES_NOT_EXIST", class: Semantic, hint: "No function or procedure of that name is known there. Check its spelling and the dialect of the Task."},
	// It does not say who interrupted: the adapter has looked whether the server goes down.
	"1317": {name: "ER_QUERY_INTERRUPTED", class: KilledByOperator, when: []meaning{
		{contains: "the server is shutting down", class: ClusterDown},
		{contains: "max_execution_time", class: Timeout},
		{contains: "maximum statement execution time", class: Timeout},
	}},
	"1792": {
		name: "ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION", class: Semantic,
		hint: "The statement was taken for a read and ran in a read-only transaction, but it writes. Nothing was changed. A function with side effects may be the cause.",
	},
	"1836": {name: "ER_READ_ONLY_MODE", class: Semantic, hint: replicaHint},
})

const replicaHint = "The server is a replica, or was made read-only. Nothing was changed. Let writes go to the primary."

// merged puts tables together; a later one counts where both know a code.
func merged(tables ...map[string]entry) map[string]entry {
	out := map[string]entry{}
	for _, t := range tables {
		maps.Copy(out, t)
	}
	return out
}

// statements reads a list of codes that say that the statement itself is wrong.
func statements(list string) map[string]entry {
	out := map[string]entry{}
	for line := range strings.SplitSeq(list, ",") {
		if f := strings.Fields(line); len(f) == 2 {
			out[f[0]] = entry{name: "ER_" + f[1], class: Semantic}
		}
	}
	return out
}
