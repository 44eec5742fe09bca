// Package tpch generates TPC-H-shaped tables, and an events table beside them, as Parquet files that are the same
// byte for byte for the same scale and seed.
//
// It writes files and a manifest, and says which ClickHouse views make a database of them. It does not run SQL: the
// caller owns the engine. The rows follow the TPC-H value lists and relations so that its 22 queries find rows, but
// they are not dbgen's rows: results can't be compared with published answers. Differences that were chosen: order
// keys rise with the order date (so that a file per year prunes), and the two random number generators differ.
package tpch
