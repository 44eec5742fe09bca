// Package migrations carries the history's schema as data. Running it is pkg/history/migrate's.
package migrations

import "embed"

// ClickHouse holds the goose migrations of the history, in the folder clickhouse. They hold two macros: {{ON_CLUSTER}} and
// {{ENGINE_PREFIX}}, both empty on a single node.
//
//go:embed clickhouse/*.sql
var ClickHouse embed.FS
