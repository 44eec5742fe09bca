package tpch

// suppliersPerPart is TPC-H's: partsupp has four rows for each part.
const suppliersPerPart = 4

func (g *generator) region(i int64) regionRow {
	r := rowRNG(g.seed, Region, i)
	return regionRow{Key: int32(i), Name: regions[i], Comment: g.text.comment(&r, 31, 115)}
}

func (g *generator) nation(i int64) nationRow {
	r := rowRNG(g.seed, Nation, i)
	return nationRow{Key: int32(i), Name: nations[i].name, Region: nations[i].region, Comment: g.text.comment(&r, 31, 114)}
}

func (g *generator) supplier(i int64) supplierRow {
	r := rowRNG(g.seed, Supplier, i)
	nation := r.below(int64(len(nations)))
	row := supplierRow{
		Key: i + 1, Name: numbered("Supplier#", i+1), Address: address(&r, 10, 40), Nation: int32(nation),
		Phone: phone(&r, nation), AcctBal: r.between(-99_999, 999_999), Comment: g.text.comment(&r, 25, 100),
	}
	// TPC-H asks for 5 complaints and 5 recommendations in 10,000 suppliers; here at least one each, or Q16 would
	// test nothing at a small scale.
	every := min(g.counts.suppliers, 2000)
	switch i % every {
	case every / 3:
		row.Comment = g.remark(&r, row.Comment, "Complaints")
	case every / 2:
		row.Comment = g.remark(&r, row.Comment, "Recommends")
	}
	return row
}

func (g *generator) remark(r *rng, comment, word string) string {
	return "Customer " + g.text.comment(r, 3, 12) + word + " " + comment[:min(len(comment), 60)]
}

func (g *generator) customer(i int64) customerRow {
	r := rowRNG(g.seed, Customer, i)
	nation := r.below(int64(len(nations)))
	return customerRow{
		Key: i + 1, Name: numbered("Customer#", i+1), Address: address(&r, 10, 40), Nation: int32(nation),
		Phone: phone(&r, nation), AcctBal: r.between(-99_999, 999_999), Segment: pick(&r, segments),
		Comment: g.text.comment(&r, 29, 116),
	}
}

// customerNation repeats the first draw of customer, so that events agree with the customer table.
func (g *generator) customerNation(i int64) string {
	r := rowRNG(g.seed, Customer, i)
	return nations[r.below(int64(len(nations)))].name
}

func (g *generator) part(i int64) partRow {
	r := rowRNG(g.seed, Part, i)
	m, n := r.between(1, 5), r.between(1, 5)
	return partRow{
		Key: i + 1, Name: partName(&r), Manufacturer: manufacturers[m-1], Brand: brands[(m-1)*5+n-1],
		Type: pick(&r, partTypes), Size: int32(r.between(1, 50)), Container: pick(&r, containers),
		RetailPrice: retailPrice(i + 1), Comment: g.text.comment(&r, 5, 22),
	}
}

var brands = func() []string {
	var out []string
	for m := '1'; m <= '5'; m++ {
		for n := '1'; n <= '5'; n++ {
			out = append(out, "Brand#"+string(m)+string(n))
		}
	}
	return out
}()

// partName is five different colours.
func partName(r *rng) string {
	var chosen [5]string
	size := 4
	for i := range chosen {
	draw:
		for {
			chosen[i] = pick(r, colours)
			for _, earlier := range chosen[:i] {
				if earlier == chosen[i] {
					continue draw
				}
			}
			break
		}
		size += len(chosen[i])
	}
	b := append(make([]byte, 0, size), chosen[0]...)
	for _, c := range chosen[1:] {
		b = append(append(b, ' '), c...)
	}
	return string(b)
}

// retailPrice is the specification's formula, in cents.
func retailPrice(part int64) int64 { return 90_000 + (part/10)%20_001 + 100*(part%1000) }

func (g *generator) partSupp(i int64) partSuppRow {
	r := rowRNG(g.seed, PartSupp, i)
	part := i/suppliersPerPart + 1
	return partSuppRow{
		Part: part, Supplier: g.supplierOf(part, i%suppliersPerPart), AvailQty: int32(r.between(1, 9999)),
		SupplyCost: r.between(100, 100_000), Comment: g.text.comment(&r, 49, 198),
	}
}

// supplierOf is the nth supplier of a part. It is the specification's formula, so that every line item finds its
// partsupp row; the step is moved on where it would name the same supplier twice, which it does at some small scales.
func (g *generator) supplierOf(part, nth int64) int64 {
	s := g.counts.suppliers
	step := (s/4 + (part-1)/s) % s
	for step%s == 0 || 2*step%s == 0 || 3*step%s == 0 {
		step++
	}
	return (part+nth*step)%s + 1
}
