package tpch

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func readAll[T any](t *testing.T, dir string, m Manifest, name Table) []T {
	t.Helper()
	table, ok := m.Table(name)
	require.True(t, ok)
	var out []T
	for _, f := range table.Files {
		rows, err := parquet.ReadFile[T](filepath.Join(dir, f.Path))
		require.NoError(t, err)
		require.Len(t, rows, int(f.Rows))
		out = append(out, rows...)
	}
	require.Len(t, out, int(table.Rows))
	return out
}

func TestRelations(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	m := generate(t, Options{Dir: dir, Scale: 0.002, Seed: 3})

	parts := map[int64]partRow{}
	colours := 0
	for _, p := range readAll[partRow](t, dir, m, Part) {
		parts[p.Key] = p
		require.Len(t, strings.Fields(p.Name), 5)
		if strings.Contains(p.Name, "green") {
			colours++
		}
	}
	require.Positive(t, colours)

	type pair struct{ part, supplier int64 }
	offers := map[pair]bool{}
	for _, ps := range readAll[partSuppRow](t, dir, m, PartSupp) {
		require.Contains(t, parts, ps.Part)
		require.True(t, ps.Supplier >= 1 && ps.Supplier <= 20)
		require.False(t, offers[pair{ps.Part, ps.Supplier}], "a part has each supplier once")
		offers[pair{ps.Part, ps.Supplier}] = true
	}
	require.Len(t, offers, 1600)

	orders := map[int64]orderRow{}
	buyers := map[int64]bool{}
	special := 0
	for _, o := range readAll[orderRow](t, dir, m, Orders) {
		require.NotContains(t, orders, o.Key)
		require.NotZero(t, o.Customer%3, "a third of the customers never orders")
		require.True(t, o.Customer >= 1 && o.Customer <= 300)
		require.True(t, int64(o.Date) >= firstOrderDay && int64(o.Date) <= lastOrderDay)
		if _, after, ok := strings.Cut(o.Comment, "special"); ok && strings.Contains(after, "requests") {
			special++
		}
		orders[o.Key], buyers[o.Customer] = o, true
	}
	require.Greater(t, len(buyers), 190, "of 200 that may order")
	require.Positive(t, special, "Q13 must find a comment to leave out")

	totals := map[int64]int64{}
	flags := map[string]int{}
	for _, l := range readAll[lineRow](t, dir, m, LineItem) {
		o, ok := orders[l.Order]
		require.True(t, ok)
		require.True(t, offers[pair{l.Part, l.Supplier}], "a line item has its partsupp row")
		require.Equal(t, l.Quantity/100*parts[l.Part].RetailPrice, l.ExtendedPrice)
		require.Greater(t, l.ShipDate, o.Date)
		require.Greater(t, l.ReceiptDate, l.ShipDate)
		totals[l.Order] += (l.ExtendedPrice*(100-l.Discount)*(100+l.Tax) + 5000) / 10_000
		flags[l.ReturnFlag+l.Status]++
	}
	require.Len(t, totals, len(orders), "every order has a line")
	for key, total := range totals {
		require.Equal(t, total, orders[key].TotalPrice)
	}
	require.Len(t, flags, 4, "Q1 has four groups: %v", flags)

	complaints := 0
	for _, s := range readAll[supplierRow](t, dir, m, Supplier) {
		if _, after, ok := strings.Cut(s.Comment, "Customer"); ok && strings.Contains(after, "Complaints") {
			complaints++
		}
	}
	require.Positive(t, complaints)

	nation := map[int64]string{}
	for _, c := range readAll[customerRow](t, dir, m, Customer) {
		require.Equal(t, c.Phone[:2], string([]byte{byte('1' + c.Nation/10), byte('0' + c.Nation%10)}))
		nation[c.Key] = nations[c.Nation].name
	}
	sessions := map[string]int64{}
	var last int64
	for _, e := range readAll[eventRow](t, dir, m, Events) {
		require.Greater(t, e.ID, last)
		require.Equal(t, nation[e.Customer], e.Nation)
		if c, ok := sessions[e.Session]; ok {
			require.Equal(t, c, e.Customer, "a session has one customer")
		}
		sessions[e.Session], last = e.Customer, e.ID
	}
	require.Greater(t, len(sessions), 25_000, "nearly as many groups as rows")
}

// A file holds one year of order dates, or one quarter of events: that is what pruning works on.
func TestFilesAreRangesOfTime(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	m := generate(t, Options{Dir: dir, Scale: 0.001, Seed: 1, Tables: []Table{Orders, Events}})
	for _, name := range []Table{Orders, Events} {
		table, _ := m.Table(name)
		end := int32(0)
		for _, f := range table.Files {
			var first, lastDay int32
			if name == Orders {
				rows, err := parquet.ReadFile[orderRow](filepath.Join(dir, f.Path))
				require.NoError(t, err)
				first, lastDay = rows[0].Date, rows[len(rows)-1].Date
			} else {
				rows, err := parquet.ReadFile[eventRow](filepath.Join(dir, f.Path))
				require.NoError(t, err)
				first, lastDay = rows[0].Date, rows[len(rows)-1].Date
			}
			require.Greater(t, first, end, f.Path)
			end = lastDay
		}
	}
}

func TestSuppliersOfAPartDiffer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := countsAt(rapid.Float64Range(MinScale, 1).Draw(t, "scale"))
		g := &generator{counts: c}
		part := rapid.Int64Range(1, c.parts).Draw(t, "part")
		seen := map[int64]bool{}
		for n := range int64(suppliersPerPart) {
			s := g.supplierOf(part, n)
			if s < 1 || s > c.suppliers || seen[s] {
				t.Fatalf("supplier %d of part %d at %d suppliers: %d (seen %v)", n, part, c.suppliers, s, seen)
			}
			seen[s] = true
		}
	})
}

func TestOrderDaysAreARange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := &generator{counts: countsAt(rapid.Float64Range(MinScale, 1).Draw(t, "scale"))}
		d := rapid.Int64Range(firstOrderDay, lastOrderDay).Draw(t, "day")
		i := g.firstOrderOn(d)
		if i > 0 && g.orderDay(i-1) >= d {
			t.Fatalf("row %d is on day %d already", i-1, d)
		}
		if i < g.counts.orders && g.orderDay(i) < d {
			t.Fatalf("row %d is still before day %d", i, d)
		}
	})
}

func TestSkewedFavoursTheFirst(t *testing.T) {
	r := rowRNG(1, "skew", 0)
	first := 0
	for range 10_000 {
		n := r.skewed(1000)
		require.True(t, n >= 0 && n < 1000)
		if n < 100 {
			first++
		}
	}
	require.InDelta(t, 3300, first, 300)
}
