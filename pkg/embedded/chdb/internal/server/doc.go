// Package server speaks ClickHouse's HTTP interface in front of the embedded engine, closely enough
// that clickhouse-go, curl and dashboards take it for a clickhouse-server.
//
// Every request gets a connection of its own, thrown away afterwards, so a setting, a current
// database or a temporary table can't leak from one request to the next; a session_id keeps one.
// Results are written by the engine into a pipe and streamed from there, so a result of any size
// and any format passes through in bounded memory. Rows to insert are spooled first and read by the
// engine from the spool, so they are never parsed as SQL and a client that breaks off in the middle
// inserts nothing.
//
// The engine can't be told a query's id. The server therefore marks the connection with the id and
// rewrites KILL QUERY and system.processes so that clients see the ids they gave.
//
// Starting the engine and keeping it alive is left to package chdb.
package server
