package tpch

import (
	"math/bits"
	"strconv"
	"time"
)

var (
	firstEventDay = day(1997, time.January, 1)
	lastEventDay  = day(1998, time.December, 31)
)

const msPerDay = 86_400_000

// eventTime rises with the row number, so that the events of a quarter are a range of rows.
func (g *generator) eventTime(i int64) int64 {
	span := (lastEventDay - firstEventDay + 1) * msPerDay
	hi, lo := bits.Mul64(uint64(i), uint64(span))
	since, _ := bits.Div64(hi, lo, uint64(g.counts.events))
	return firstEventDay*msPerDay + int64(since)
}

// event makes a row of the click log. There are three sessions for five events, each a cluster in time, so that a
// GROUP BY session_id has nearly as many groups as rows: the query that the interactive pool can't hold.
func (g *generator) event(i int64) eventRow {
	r := rowRNG(g.seed, Events, i)
	session := i*3/5 + r.below(50)
	s := rowRNG(g.seed, "session", session)
	customer := s.skewed(g.counts.customers)
	at := g.eventTime(i)
	e := eventRow{
		ID: i + 1, Time: at, Date: int32(at / msPerDay), Session: sessionID(s.next(), s.next()), Customer: customer + 1,
		Type: pick(&r, eventTypes), Part: r.skewed(g.counts.parts) + 1, Device: pick(&s, devices),
		Nation: g.customerNation(customer), Duration: int32(r.skewed(60_000)),
	}
	switch e.Type {
	case "search":
		e.Page = "/search?q=" + pick(&r, colours) + "+" + pick(&r, colours)
	case "checkout", "purchase", "support":
		e.Page = "/" + e.Type
	default:
		e.Page = "/part/" + strconv.FormatInt(e.Part, 10)
	}
	if e.Type == "purchase" {
		e.Revenue = r.between(1, 50) * retailPrice(e.Part)
	}
	return e
}

func sessionID(hi, lo uint64) string {
	const digits = "0123456789abcdef"
	var b [32]byte
	for i := range 16 {
		b[i], b[16+i] = digits[hi>>(60-4*i)&15], digits[lo>>(60-4*i)&15]
	}
	return string(b[:])
}
