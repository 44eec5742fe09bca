package budget

import (
	"fmt"
	"strconv"
	"time"

	"github.com/pointsman/pointsman/pkg/signal"
)

// Left is what a session may still use. An absent value has no limit.
type Left struct {
	Queries signal.Value `json:"queries"`
	Bytes   signal.Value `json:"bytes"`
	WallMs  signal.Value `json:"wallMs"`
}

// Remaining subtracts the usage from the limits.
func Remaining(l Limits, u Usage, now time.Time) Left {
	return Left{
		Queries: left(l.MaxQueries, u.Queries, signal.Count, now),
		Bytes:   left(l.MaxBytes, u.Bytes, signal.Bytes, now),
		WallMs:  left(l.MaxWall.Milliseconds(), u.WallMs, signal.Millis, now),
	}
}

func left(most, used int64, unit signal.Unit, now time.Time) signal.Value {
	if most == 0 {
		return signal.Missing("budget")
	}
	return signal.Of(float64(most-used), unit, "budget", now)
}

func (l Left) values() map[string]signal.Value {
	return map[string]signal.Value{"queries": l.Queries, "bytes": l.Bytes, "wallMs": l.WallMs}
}

// newSession is what to do when no change of the query would help.
const newSession = "Summarise what you have; if you need more, ask the user and open a new session."

// Check says whether a session may run one more query, and if not, an answer that a person or a model can act on. Loops come
// first: who asks the same thing again is told that, and not that the budget is small.
func Check(l Limits, a Account, ask Ask, now time.Time) *Refusal {
	left := Remaining(l, a.Usage, now)
	if l.MaxRepeats > 0 && a.Repeats >= l.MaxRepeats {
		return answer(LoopRepeats,
			fmt.Sprintf("This session has run this very query %s already, which is as often as it may.", many(a.Repeats, "time", "times")),
			"Use the answer you have, or change the query: its result does not depend on how often you ask.",
			left.values(), ask.estimate(), "limit", strconv.FormatInt(l.MaxRepeats, 10))
	}
	if l.MaxGrowing > 0 && a.Growing > l.MaxGrowing {
		return answer(LoopGrows,
			fmt.Sprintf("This is the query number %d in a row on %s that scans more than the one before it.", a.Growing, ask.table()),
			"Stop widening it. Go back to a narrower filter, or summarise what you have.",
			left.values(), ask.estimate(), "limit", strconv.FormatInt(l.MaxGrowing, 10), "growing", strconv.FormatInt(a.Growing, 10))
	}
	u := a.Usage
	if l.MaxQueries > 0 && u.Queries >= l.MaxQueries {
		return answer(QueriesExhausted, fmt.Sprintf("This session has used all %s of its budget.", many(l.MaxQueries, "query", "queries")), newSession,
			left.values(), ask.estimate(), "limit", strconv.FormatInt(l.MaxQueries, 10))
	}
	if l.MaxWall > 0 && u.WallMs >= l.MaxWall.Milliseconds() {
		return answer(WallExhausted,
			fmt.Sprintf("This session has used %s of execution time, all of its budget of %s.",
				(time.Duration(u.WallMs)*time.Millisecond).Round(time.Millisecond), l.MaxWall), newSession,
			left.values(), ask.estimate(), "limitMs", strconv.FormatInt(l.MaxWall.Milliseconds(), 10))
	}
	n, known := ask.Bytes.Last()
	if l.MaxBytes > 0 && (u.Bytes >= l.MaxBytes || known && u.Bytes+WholeBytes(n) > l.MaxBytes) {
		asks := "what it asks for is not known"
		if known {
			asks = "this query would scan about " + humanBytes(WholeBytes(n))
		}
		rest := max(0, l.MaxBytes-u.Bytes)
		return answer(BytesExhausted,
			fmt.Sprintf("This session has %s of its budget of %s left and %s.", humanBytes(rest), humanBytes(l.MaxBytes), asks),
			ask.smaller(rest), left.values(), ask.estimate(),
			"left", humanBytes(rest), "limit", humanBytes(l.MaxBytes), "asks", asks)
	}
	return nil
}

// WholeBytes is an estimate as it is charged. A size beyond all measure stays one: as an int64 it would be a negative number, and a gift.
func WholeBytes(n float64) int64 {
	const most = 1 << 60
	if !(n > 0) {
		return 0
	}
	return int64(min(n, most))
}

// many is a number of things.
func many(n int64, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}
