package budget

import (
	"fmt"
	"time"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/signal"
)

// The codes of a budget rejection.
const (
	QueriesExhausted = "session_query_budget"
	BytesExhausted   = "session_byte_budget"
	WallExhausted    = "session_time_budget"
)

// Left is what a session may still use. An absent value has no limit.
type Left struct {
	Queries signal.Value `json:"queries"`
	Bytes   signal.Value `json:"bytes"`
	WallMs  signal.Value `json:"wallMs"`
}

// Remaining subtracts the usage from the limits.
func Remaining(l Limits, u Usage, now time.Time) Left {
	left := func(most, used int64, unit signal.Unit) signal.Value {
		if most == 0 {
			return signal.Missing("budget")
		}
		return signal.Of(float64(most-used), unit, "budget", now)
	}
	return Left{
		Queries: left(l.MaxQueries, u.Queries, signal.Count),
		Bytes:   left(l.MaxBytes, u.Bytes, signal.Bytes),
		WallMs:  left(l.MaxWall.Milliseconds(), u.WallMs, signal.Millis),
	}
}

// Check says whether a session may run one more Task with that estimate of bytes, and if not, an answer that a person or
// a model can act on. tables are the tables of the query, for the suggestion.
func Check(l Limits, u Usage, bytes signal.Value, tables []string, now time.Time) *event.Rejection {
	left := Remaining(l, u, now)
	reject := func(code, message, suggestion string) *event.Rejection {
		r := &event.Rejection{Code: code, Message: message + " " + suggestion, Suggestion: suggestion, Left: map[string]signal.Value{}}
		for name, v := range map[string]signal.Value{"queries": left.Queries, "bytes": left.Bytes, "wallMs": left.WallMs} {
			if v.State() != signal.Absent {
				r.Left[name] = v
			}
		}
		if bytes.State() != signal.Absent {
			r.Estimate = map[string]signal.Value{"scanBytes": bytes}
		}
		return r
	}
	if l.MaxQueries > 0 && u.Queries >= l.MaxQueries {
		return reject(QueriesExhausted,
			fmt.Sprintf("This session has used all %d queries of its budget.", l.MaxQueries),
			"Summarise what you have; if you need more, ask the user and open a new session.")
	}
	if l.MaxWall > 0 && u.WallMs >= l.MaxWall.Milliseconds() {
		return reject(WallExhausted,
			fmt.Sprintf("This session has used %s of execution time, all of its budget of %s.",
				(time.Duration(u.WallMs)*time.Millisecond).Round(time.Millisecond), l.MaxWall),
			"Summarise what you have; if you need more, ask the user and open a new session.")
	}
	n, known := bytes.Last()
	if l.MaxBytes > 0 && (u.Bytes >= l.MaxBytes || known && u.Bytes+int64(n) > l.MaxBytes) {
		over := "what it asks for is not known"
		if known {
			over = "this query would scan about " + humanBytes(int64(n))
		}
		from := "the table"
		if len(tables) > 0 {
			from = tables[0]
		}
		return reject(BytesExhausted,
			fmt.Sprintf("This session has %s of its budget of %s left and %s.",
				humanBytes(max(0, l.MaxBytes-u.Bytes)), humanBytes(l.MaxBytes), over),
			fmt.Sprintf("Add a narrower filter on %s, or query a summary of it.", from))
	}
	return nil
}

func humanBytes(n int64) string {
	const units = "kMGTPE"
	if n < 1000 {
		return fmt.Sprintf("%d B", n)
	}
	v, u := float64(n), -1
	for v >= 999.95 && u < len(units)-1 {
		v /= 1000
		u++
	}
	return fmt.Sprintf("%.1f %cB", v, units[u])
}
