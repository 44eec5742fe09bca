package tpch

import "time"

func day(year int, month time.Month, d int) int64 {
	return time.Date(year, month, d, 0, 0, 0, 0, time.UTC).Unix() / 86_400
}

var (
	firstOrderDay = day(1992, time.January, 1)
	lastOrderDay  = day(1998, time.August, 2) // the end of 1998 less 151 days: every line item is delivered by then
	today         = day(1995, time.June, 17)  // what TPC-H calls the current date
)

// orderDay rises with the row number, so that the orders of a year are a range of rows.
func (g *generator) orderDay(i int64) int64 {
	return firstOrderDay + i*(lastOrderDay-firstOrderDay+1)/g.counts.orders
}

// firstOrderOn is the first row whose day is not before d.
func (g *generator) firstOrderOn(d int64) int64 {
	days := lastOrderDay - firstOrderDay + 1
	n := ((d-firstOrderDay)*g.counts.orders + days - 1) / days
	return min(max(n, 0), g.counts.orders)
}

// order makes an order and appends its lines. Both come from one generator, since status and total follow from the lines.
func (g *generator) order(i int64, lines []lineRow) (orderRow, []lineRow) {
	r := rowRNG(g.seed, Orders, i)
	date := g.orderDay(i)
	// A third of the customers, those whose key is a multiple of 3, never order: Q22 looks for them.
	buyer := r.below(g.counts.customers * 2 / 3)
	o := orderRow{
		Key:      i/8*32 + i%8 + 1, // sparse, as TPC-H's keys are
		Customer: buyer/2*3 + buyer%2 + 1,
		Date:     int32(date), Priority: pick(&r, priorities), Clerk: pick(&r, g.clerks), Comment: g.text.comment(&r, 19, 78),
	}
	n := r.between(1, 7)
	open := int64(0)
	for number := range n {
		l := g.line(&r, o.Key, date)
		l.Number = int32(number + 1)
		if l.Status == "O" {
			open++
		}
		// cents x percent x percent, rounded to cents
		o.TotalPrice += (l.ExtendedPrice*(100-l.Discount)*(100+l.Tax) + 5000) / 10_000
		lines = append(lines, l)
	}
	switch open {
	case 0:
		o.Status = "F"
	case n:
		o.Status = "O"
	default:
		o.Status = "P"
	}
	return o, lines
}

func (g *generator) line(r *rng, order, date int64) lineRow {
	part, quantity := r.between(1, g.counts.parts), r.between(1, 50)
	l := lineRow{
		Order: order, Part: part, Supplier: g.supplierOf(part, r.below(suppliersPerPart)),
		Quantity: quantity * 100, ExtendedPrice: quantity * retailPrice(part), Discount: r.between(0, 10), Tax: r.between(0, 8),
		Instruction: pick(r, instructions), Mode: pick(r, shipModes), Comment: g.text.comment(r, 10, 43),
	}
	ship := date + r.between(1, 121)
	receipt := ship + r.between(1, 30)
	l.ShipDate, l.CommitDate, l.ReceiptDate = int32(ship), int32(date+r.between(30, 90)), int32(receipt)
	l.Status, l.ReturnFlag = "F", "N"
	if ship > today {
		l.Status = "O"
	}
	if receipt <= today {
		l.ReturnFlag = [...]string{"R", "A"}[r.below(2)]
	}
	return l
}
