package scenario

import "github.com/ClickHouse/clickhouse-go/v2"

// named is a parameter of a query.
func named(name string, value any) any { return clickhouse.Named(name, value) }
