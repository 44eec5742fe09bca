package row

import (
	"time"
)

// Column is a column's name and ClickHouse type. The names and types are sent along, so that no insert has to ask for them.
type Column struct{ Name, Type string }

// Appender takes the values of one column as a slice, as the driver's batches do.
type Appender interface{ Append(v any) error }

// Set is rows of one table, in the order of their offsets.
type Set interface {
	Table() string
	Columns() []Column
	Len() int
	// Slice returns rows i to j-1.
	Slice(i, j int) Set
	// Pick returns the rows at the places given.
	Pick(places []int) Set
	// AppendColumn hands over column i of all rows.
	AppendColumn(i int, to Appender) error
	// Base returns the coordinates of row i.
	Base(i int) Base
	// Time is the time of row i that fixes its partition.
	Time(i int) time.Time
	// Hours are the hours that rollups have to be made anew for, each once.
	Hours() []time.Time
}

// column is one column of a table, and how its values are had from rows.
type column[R any] struct {
	Column
	append func(rows []R, to Appender) error
}

func col[R, T any](name, typ string, value func(r *R) T) column[R] {
	return column[R]{Column{name, typ}, func(rows []R, to Appender) error {
		out := make([]T, len(rows))
		for i := range rows {
			out[i] = value(&rows[i])
		}
		return to.Append(out)
	}}
}

const (
	lc       = "LowCardinality(String)"
	arrayLC  = "Array(LowCardinality(String))"
	array    = "Array(String)"
	str      = "String"
	boolean  = "Bool"
	nullU64  = "Nullable(UInt64)"
	nullF64  = "Nullable(Float64)"
	time64   = "DateTime64(3, 'UTC')"
	nullTime = "Nullable(DateTime64(3, 'UTC'))"
	lcMap    = "Map(LowCardinality(String), Float64)"
	strMap   = "Map(String, Float64)"
)

// baseColumns are the columns of Base.
func baseColumns[R any](base func(r *R) *Base) []column[R] {
	return []column[R]{
		col("extra", str, func(r *R) string { return base(r).Extra }),
		col("ts_clamped", boolean, func(r *R) bool { return base(r).Clamped }),
		col("k_partition", "Int32", func(r *R) int32 { return base(r).Partition }),
		col("k_offset", "UInt64", func(r *R) uint64 { return base(r).Offset }),
		col("k_ts", time64, func(r *R) time.Time { return base(r).RecordAt }),
		col("schema_ver", "UInt16", func(*R) uint16 { return SchemaVersion }),
	}
}

// table is what a kind of row is stored as.
type table[R any] struct {
	name    string
	columns []column[R]
	base    func(r *R) *Base
	time    func(r *R) time.Time
	// rolled is the time whose hour a rollup reads, or false when none does.
	rolled func(r *R) (time.Time, bool)
}

type set[R any] struct {
	table *table[R]
	rows  []R
}

func (s set[R]) Table() string { return s.table.name }

func (s set[R]) Columns() []Column {
	out := make([]Column, len(s.table.columns))
	for i, c := range s.table.columns {
		out[i] = c.Column
	}
	return out
}

func (s set[R]) Len() int { return len(s.rows) }

func (s set[R]) Slice(i, j int) Set { return set[R]{s.table, s.rows[i:j]} }

func (s set[R]) Pick(places []int) Set {
	rows := make([]R, len(places))
	for i, p := range places {
		rows[i] = s.rows[p]
	}
	return set[R]{s.table, rows}
}

func (s set[R]) AppendColumn(i int, to Appender) error { return s.table.columns[i].append(s.rows, to) }

func (s set[R]) Base(i int) Base { return *s.table.base(&s.rows[i]) }

func (s set[R]) Time(i int) time.Time { return s.table.time(&s.rows[i]) }

func (s set[R]) Hours() []time.Time {
	if s.table.rolled == nil {
		return nil
	}
	var hours []time.Time
	seen := map[time.Time]bool{}
	for i := range s.rows {
		t, ok := s.table.rolled(&s.rows[i])
		if h := t.UTC().Truncate(time.Hour); ok && !seen[h] {
			seen[h] = true
			hours = append(hours, h)
		}
	}
	return hours
}
