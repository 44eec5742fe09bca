// Package chdb runs the ClickHouse engine itself as a supervised child process, so that pointsman
// works with no database installed and still works on the real thing.
//
// Ensure fetches the engine's library once into the user's cache folder. Start starts an engine: the
// same executable again, marked as a child, with the library loaded and ClickHouse's HTTP interface in
// front of it, so that clickhouse-go (Protocol: clickhouse.HTTP), curl and dashboards all work. An
// engine that crashes takes nothing with it and is started again on the same data and the same port.
//
// A program that uses this package calls MaybeRunChild first thing in main, and in TestMain.
//
// What engines are for, and how many there are, is left to the callers.
package chdb
