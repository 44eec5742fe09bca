// Package history is the adapter to ClickHouse: it stores batches of events exactly once as far as a reader can tell, rolls hours
// up, and reads profiles.
//
// The mapping of events to rows is package row's, the schema is data in migrations/ and package migrate brings it up. When to
// flush, retry, pause and commit is the profiler's: one call here is one try.
package history
