// Package libchdb binds the C functions of the embedded ClickHouse library to Go, without cgo.
//
// It opens the library, opens connections, runs statements and says what a statement would do.
// It knows nothing of HTTP, of SQL text, or of how long a connection should live: a connection
// carries settings, a current database and temporary tables from one statement to the next, and
// keeping that from leaking between callers is the caller's work.
//
// The engine is a singleton of its process: one storage path, booted by the first connection.
// A crash of the engine is a crash of the process, which is why package chdb gives it one of its own.
package libchdb
