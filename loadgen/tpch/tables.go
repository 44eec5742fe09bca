package tpch

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
)

// Table names a table that Generate can make.
type Table string

// The eight tables of TPC-H, and the event log of the same shop.
const (
	Region   Table = "region"
	Nation   Table = "nation"
	Supplier Table = "supplier"
	Customer Table = "customer"
	Part     Table = "part"
	PartSupp Table = "partsupp"
	Orders   Table = "orders"
	LineItem Table = "lineitem"
	Events   Table = "events"
)

// Tables lists all tables in the order in which they are made, small ones first.
func Tables() []Table {
	return []Table{Region, Nation, Supplier, Customer, Part, PartSupp, Orders, LineItem, Events}
}

// Column is a column of a table. Type is one of int32, int64, string, date, decimal(15,2), timestamp(ms).
type Column struct {
	Name string `json:"name"`
	Type string `json:"type"`
}

// Columns returns the schema of a table, nil for an unknown one.
func Columns(t Table) []Column {
	row, ok := map[Table]any{
		Region: regionRow{}, Nation: nationRow{}, Supplier: supplierRow{}, Customer: customerRow{}, Part: partRow{},
		PartSupp: partSuppRow{}, Orders: orderRow{}, LineItem: lineRow{}, Events: eventRow{},
	}[t]
	if !ok {
		return nil
	}
	var out []Column
	for _, field := range reflect.VisibleFields(reflect.TypeOf(row)) {
		name, rest, _ := strings.Cut(field.Tag.Get("parquet"), ",")
		kind := field.Type.Kind().String()
		switch {
		case strings.HasPrefix(rest, "decimal"):
			kind = "decimal(15,2)"
		case strings.HasPrefix(rest, "date"):
			kind = "date"
		case strings.HasPrefix(rest, "timestamp"):
			kind = "timestamp(ms)"
		}
		out = append(out, Column{Name: name, Type: kind})
	}
	return out
}

// The bounds of the scale: below, partsupp has no room for four suppliers of a part; above, keys of events overflow
// nothing but a day's patience.
const (
	MinScale = 0.001
	MaxScale = 100
)

// counts are the numbers of rows at a scale. Line items are not among them: an order has 1 to 7, 4 on average.
type counts struct{ suppliers, customers, parts, orders, events int64 }

func countsAt(scale float64) counts {
	n := func(atOne float64) int64 { return int64(math.Round(atOne * scale)) }
	return counts{suppliers: n(10_000), customers: n(150_000), parts: n(200_000), orders: n(1_500_000), events: n(30_000_000)}
}

func (c counts) of(t Table) int64 {
	switch t {
	case Region:
		return int64(len(regions))
	case Nation:
		return int64(len(nations))
	case Supplier:
		return c.suppliers
	case Customer:
		return c.customers
	case Part:
		return c.parts
	case PartSupp:
		return c.parts * suppliersPerPart
	case Orders:
		return c.orders
	case LineItem:
		return c.orders * 4
	case Events:
		return c.events
	}
	return 0
}

// selection returns the chosen tables in the order of Tables, all of them if none is named.
func selection(chosen []Table) ([]Table, error) {
	if len(chosen) == 0 {
		return Tables(), nil
	}
	for _, t := range chosen {
		if !slices.Contains(Tables(), t) {
			return nil, fmt.Errorf("unknown table %q: choose among %v", t, Tables())
		}
	}
	return slices.DeleteFunc(Tables(), func(t Table) bool { return !slices.Contains(chosen, t) }), nil
}
