package failure

// sparkTypes are the classes of errors whose error class is not below, by the first two letters of their SQLSTATE, which Spark gives
// each error class that has one. Spark 4.1 has some 700 classes, most of which say what is wrong with a statement.
var sparkTypes = map[string]Class{
	"07": Semantic,    // parameters
	"0A": Semantic,    // what Spark can't do
	"21": Semantic,    // cardinality
	"22": Semantic,    // data that an expression does not take
	"23": Semantic,    // constraints
	"28": Permission,  // who asks
	"2B": Semantic,    // what others depend on
	"38": Semantic,    // functions of users
	"39": Semantic,    // the same
	"3F": Semantic,    // schemas
	"42": Semantic,    // names, syntax, types
	"46": Semantic,    // settings and classes
	"51": Semantic,    // views that do not fit their tables any more
	"53": Resources,   // what the cluster lacks
	"54": Resources,   // limits of the server
	"82": MemoryLimit, // memory
	"P0": Semantic,    // raise_error
	"56": Internal, "58": Internal, "KD": Internal, "HV": Internal, "40": Internal, "F0": Internal, "XX": Internal, "HY": Internal,
}

const (
	sparkGone    = "The server does not know the statement any more, since it was started anew or nobody was attached for too long."
	sparkMemory  = "An executor or the driver ran out of memory. Let it run on a pool whose executors have more, or with more partitions (spark.sql.shuffle.partitions)."
	sparkSetting = "A setting of the resource profile is none that a session of this cluster may set, or its value is none. Correct the engine's settings."
)

// spark maps error classes of Spark 4.1 with their sub-classes, and the names of Java's classes for errors without one. Those that
// begin with grpc. are the answers of something in front of Spark, or of a server that is none.
var spark = map[string]entry{
	"PARSE_SYNTAX_ERROR":                                {name: "42601", class: Semantic, hint: "The SQL text could not be parsed. The message names the line and the position."},
	"PARSE_EMPTY_STATEMENT":                             {name: "42617", class: Semantic},
	"TABLE_OR_VIEW_NOT_FOUND":                           {name: "42P01", class: Semantic, hint: "The table does not exist there under that name. Check the name, its catalog and schema, and those of the Task."},
	"SCHEMA_NOT_FOUND":                                  {name: "42704", class: Semantic, hint: "The schema does not exist there. Check the catalog and schema of the Task."},
	"CATALOG_NOT_FOUND":                                 {name: "42P08", class: Semantic, hint: "The catalog is not known there. Check the catalog of the Task, or name another engine."},
	"REQUIRES_SINGLE_PART_NAMESPACE":                    {name: "42K05", class: Semantic, hint: "The catalog has schemas of one part only, or is not known there. Check the catalog and schema of the Task."},
	"UNRESOLVED_COLUMN.WITH_SUGGESTION":                 {name: "42703", class: Semantic, hint: "A column is not known. The message suggests some that are."},
	"UNRESOLVED_COLUMN.WITHOUT_SUGGESTION":              {name: "42703", class: Semantic, hint: "A column is not known. Check its spelling and the tables it should come from."},
	"UNRESOLVED_ROUTINE":                                {name: "42883", class: Semantic, hint: "The function is not known to this engine. Check its spelling and the dialect of the Task."},
	"DIVIDE_BY_ZERO":                                    {name: "22012", class: Semantic},
	"CAST_INVALID_INPUT":                                {name: "22018", class: Semantic},
	"ARITHMETIC_OVERFLOW":                               {name: "22003", class: Semantic},
	"USER_RAISED_EXCEPTION":                             {name: "P0001", class: Semantic},
	"org.apache.hadoop.security.AccessControlException": {class: Permission},

	"CANNOT_MODIFY_CONFIG":                       {name: "46110", class: Semantic, hint: sparkSetting},
	"CANNOT_MODIFY_STATIC_CONFIG":                {name: "46110", class: Semantic, hint: sparkSetting},
	"INVALID_CONF_VALUE.TIME_ZONE":               {name: "22022", class: Semantic, hint: sparkSetting},
	"INVALID_CONF_VALUE.TYPE_MISMATCH":           {name: "22022", class: Semantic, hint: sparkSetting},
	"INVALID_CONF_VALUE.REQUIREMENT":             {name: "22022", class: Semantic, hint: sparkSetting},
	"INVALID_CONF_VALUE.OUT_OF_RANGE_OF_OPTIONS": {name: "22022", class: Semantic, hint: sparkSetting},

	"OPERATION_CANCELED":   {name: "HY008", class: KilledByOperator},
	"SPARK_JOB_CANCELLED":  {name: "XXKDA", class: KilledByOperator},
	"pointsman.TIME_LIMIT": {name: "TIME_LIMIT", class: Timeout},

	// Handles and cursors: what became of an operation decides, and the adapter says how far the submission had come.
	"INVALID_HANDLE.OPERATION_ALREADY_EXISTS": {class: SubmitUnknown, hint: "A statement with the same attempt id runs or has run there; this one was not started."},
	"INVALID_HANDLE.OPERATION_ABANDONED":      {class: KilledByOperator, hint: "Somebody has stopped the statement at the server and closed its session, so it was not tried again."},
	"INVALID_HANDLE.SESSION_CLOSED":           {class: KilledByOperator, hint: "Somebody has stopped the statement at the server and closed its session, so it was not tried again."},
	"INVALID_HANDLE.OPERATION_NOT_FOUND":      {class: ClusterDown, network: true, hint: sparkGone},
	"INVALID_HANDLE.SESSION_NOT_FOUND":        {class: ClusterDown, network: true, hint: sparkGone},
	"INVALID_HANDLE.SESSION_CHANGED":          {class: ClusterDown, network: true, hint: sparkGone},
	"INVALID_CURSOR.DISCONNECTED":             {class: ClusterDown, network: true},
	"INVALID_CURSOR.POSITION_NOT_AVAILABLE":   {class: SubmitUnknown, hint: sparkGone},
	"INVALID_CURSOR.POSITION_NOT_FOUND":       {class: SubmitUnknown, hint: sparkGone},
	"INVALID_CURSOR.NOT_REATTACHABLE":         {class: Internal, hint: "The server does not let operations be attached to again. Set spark.connect.execute.reattachable.enabled there."},

	"UNABLE_TO_ACQUIRE_MEMORY":                      {name: "53200", class: MemoryLimit, hint: sparkMemory},
	"AGGREGATE_OUT_OF_MEMORY":                       {name: "82001", class: MemoryLimit, hint: sparkMemory},
	"POINTER_ARRAY_OUT_OF_MEMORY":                   {name: "82002", class: MemoryLimit, hint: sparkMemory},
	"SPILL_OUT_OF_MEMORY":                           {name: "82003", class: MemoryLimit, hint: sparkMemory},
	"_LEGACY_ERROR_TEMP_2250":                       {class: MemoryLimit, hint: "A table is too large to be broadcast with the memory there is. Disable broadcast joins in the resource profile (spark.sql.autoBroadcastJoinThreshold: -1)."},
	"java.lang.OutOfMemoryError":                    {class: MemoryLimit, hint: sparkMemory},
	"org.apache.spark.memory.SparkOutOfMemoryError": {class: MemoryLimit, hint: sparkMemory},
	"KRYO_BUFFER_OVERFLOW":                          {name: "54006", class: Resources},
	"COLLECTION_SIZE_LIMIT_EXCEEDED.PARAMETER":      {name: "54000", class: Semantic},
	"COLLECTION_SIZE_LIMIT_EXCEEDED.FUNCTION":       {name: "54000", class: Semantic},
	"FAILED_TO_PARSE_TOO_COMPLEX":                   {name: "54001", class: Semantic},
	"VIEW_EXCEED_MAX_NESTED_DEPTH":                  {name: "54K00", class: Semantic},

	// A stage that failed, by what the message says: its error class is the driver's for all of them, or none.
	"org.apache.spark.SparkException": {class: Internal, when: []meaning{
		{"is bigger than spark.driver.maxresultsize", ResultTooLarge, ""},
		{"outofmemoryerror", MemoryLimit, sparkMemory},
		{"executorlostfailure", ClusterDown, "The executor that ran a part of the statement was lost."},
		{"cancelled because sparkcontext was shut down", ClusterDown, ""},
		{"could not execute broadcast in", Timeout, "A table took too long to be broadcast. Raise spark.sql.broadcastTimeout in the resource profile, or disable broadcast joins."},
	}},
	"java.lang.IllegalStateException": {class: Internal, when: []meaning{
		{"cannot call methods on a stopped sparkcontext", ClusterDown, ""},
		{"sparkcontext has been shutdown", ClusterDown, ""},
	}},
	"java.io.IOException":                             {class: Internal, when: []meaning{{"no space left on device", Resources, ""}}},
	"java.io.FileNotFoundException":                   {class: Internal},
	"java.util.concurrent.TimeoutException":           {class: Timeout},
	"java.util.concurrent.RejectedExecutionException": {class: QueueFull},

	"grpc.Unauthenticated":   {class: Permission, hint: "The server wants another token than the engine's configuration gives."},
	"grpc.PermissionDenied":  {class: Permission},
	"grpc.Unimplemented":     {class: ClusterDown, hint: "What answers at this address is no Spark Connect server."},
	"grpc.ResourceExhausted": {class: Resources},
}
