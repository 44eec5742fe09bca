package failure

import (
	"fmt"
	"slices"
)

// traces say where an engine shows what an attempt did, by the kind of engine. name stands for the attempt's name there.
var traces = map[string]string{
	"clickhouse": "query_id %s in system.query_log",
	"postgres":   "application_name %s in the server's log",
	"mysql":      "the comment /* pointsman:%s */ in the server's query or audit log",
	"trino":      "the client tag %s among the coordinator's queries",
	"spark":      "the tag %s among the jobs and statements in Spark's UI",
	"flightsql":  "the comment /* pointsman:%s */ in the server's log",
}

// LookFor says what to check before a write is run again whose end nobody has seen. name is what the engine calls the attempt.
func LookFor(kind, cluster, attempt, name string) string {
	at := ""
	if cluster != "" {
		at = " on " + cluster
	}
	how := ""
	if trace, ok := traces[kind]; ok {
		how = " (" + fmt.Sprintf(trace, name) + ")"
	}
	return "Look for the attempt id " + attempt + at + how + ", and at what the statement writes to, before you run it again."
}

// Partial reports whether a write that an engine of this kind has ended with a failure of this class may have been done in part. The
// others take back what a statement did before it failed, or have not begun.
func Partial(kind string, c Class) bool {
	if kind == "postgres" || kind == "mysql" {
		return false
	}
	return !slices.Contains([]Class{Semantic, Permission, EngineStart, QueueFull}, c)
}
