package workload

import (
	"math/rand/v2"
	"time"

	"github.com/pointsman/pointsman/pkg/query"
)

// What presses on limits: an agent in a loop on its budget, a burst on the interactive queue.

const (
	runawaySteps  = 30
	mediumQueries = 6
	burstQueries  = 32
	tightQueries  = 8
)

// runaway is an agent that gets no answer it likes and asks for one more month each time: the same fingerprint, growing,
// in one session, four times as fast as an agent that thinks.
func runaway(r *rand.Rand, run string, span time.Duration) []Arrival {
	at := time.Duration(0.40 * float64(span))
	step := time.Duration(0.20*float64(span)) / runawaySteps
	sql := text("runaway")
	var out []Arrival
	for i := range runawaySteps {
		at += step/2 + time.Duration(r.Int64N(int64(step)))
		out = append(out, Arrival{At: at, Kind: Runaway, Task: request{
			sql: mustBind(sql, 7+24*i), queryType: "exploration", tenant: mondayTenant, user: "agent-lost-in-a-loop",
			sla: 5, timeout: 60, session: &query.Session{ID: run + "-agent-runaway", Class: query.Agent}, tags: []string{"agent"},
		}.task()})
	}
	return out
}

// burst sends medium queries to the interactive pool's liking: a few early on, so that there is a history of them, then
// many within a second and a half; among these, some whose SLA the queue would eat.
func burst(r *rand.Rand, span time.Duration) []Arrival {
	var out []Arrival
	add := func(kind Kind, at time.Duration, sla float64) {
		out = append(out, medium(r, len(out), kind, at, sla))
	}
	for i := range mediumQueries {
		add(Medium, time.Duration((0.08+0.05*float64(i))*float64(span)), 10)
	}
	start := time.Duration(0.60 * float64(span))
	width := min(1500*time.Millisecond, span/10)
	for range burstQueries {
		add(Burst, start+time.Duration(r.Int64N(int64(width))), 30)
	}
	for i := range tightQueries {
		// Late in the burst: the queue has to be there, and to be known.
		add(Tight, start+width/3+time.Duration(r.Int64N(int64(width))), 2+0.5*float64(i%3))
	}
	return out
}

var mediumUsers = []string{"planner", "buyer", "marketer", "controller"}

func medium(r *rand.Rand, nth int, kind Kind, at time.Duration, sla float64) Arrival {
	sqls := texts("medium")
	from := time.Date(1997, time.January, 1+r.IntN(28), 0, 0, 0, 0, time.UTC)
	return Arrival{At: at, Kind: kind, Task: request{
		sql: mustBind(sqls[nth%len(sqls)], date(from)), queryType: "aggregation", tenant: mondayTenant, user: mediumUsers[nth%len(mediumUsers)],
		sla: sla, timeout: 120, tags: []string{"interactive", string(kind)},
	}.task()}
}
