package workload

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/pointsman/pointsman/pkg/query"
)

// The Monday minute: what a lakehouse gets at 9:15. Its parts start at fixed shares of the busy span.

const (
	mondayTenant = "tenant_a"

	dashboardLoads = 5
	dashboardTiles = 8
	agentSteps     = 22
)

// scanStarts are far enough apart that the first run's failure and rescue are history before the second.
var scanStarts = []float64{0.06, 0.30, 0.48, 0.72, 0.92}

func monday(r *rand.Rand, run string, span time.Duration) []Arrival {
	at := func(share float64) time.Duration { return time.Duration(share * float64(span)) }
	out := []Arrival{transformation(r, at(0.02))}
	for i, share := range scanStarts {
		out = append(out, scan(r, i, at(share)))
	}
	for load := range dashboardLoads {
		out = append(out, dashboard(r, fmt.Sprintf("%s-dashboard-%d", run, load), load, at(0.25+0.05*float64(load)))...)
	}
	return append(out, agent(r, run+"-agent-support", at(0.30), at(0.85))...)
}

// dashboard is one person's load: its tiles are asked within a third of a second.
func dashboard(r *rand.Rand, session string, load int, at time.Duration) []Arrival {
	days := [dashboardLoads]int{30, 7, 90, 14, 60}[load] + r.IntN(3)
	var out []Arrival
	for _, tile := range texts("dashboard") {
		sla := float64(1 + len(out)%2)
		out = append(out, Arrival{At: at, Kind: Dashboard, Task: request{
			sql: mustBind(tile, days), queryType: "aggregation", tenant: mondayTenant, user: fmt.Sprintf("executive_%d", load),
			sla: sla, timeout: 60, session: &query.Session{ID: session, Class: query.Human}, tags: []string{"interactive", "dashboard"},
		}.task()})
		at += time.Duration(5+r.IntN(60)) * time.Millisecond
	}
	return out
}

// transformation joins every touch of a customer with all of his orders, and groups by nearly all of it.
func transformation(r *rand.Rand, at time.Duration) Arrival {
	from := time.Date(1995, time.June, 1+r.IntN(28), 0, 0, 0, 0, time.UTC)
	return Arrival{At: at, Kind: Transformation, Task: request{
		sql: mustBind(text("transformation"), date(from)), queryType: "transformation", tenant: mondayTenant, user: "nightly",
		sla: 300, timeout: 300, tags: []string{"batch"},
	}.task()}
}

// scan is a data scientist's rolling year of events, by session and page: nearly as many groups as rows. At scale 0.05
// it wants some 400 MB, and about 150 MB where it may spill. The days differ from run to run, the fingerprint does not.
func scan(r *rand.Rand, nth int, at time.Duration) Arrival {
	to := time.Date(1998, time.December, 1+5*nth+r.IntN(5), 0, 0, 0, 0, time.UTC)
	return Arrival{At: at, Kind: Scan, Task: request{
		sql: mustBind(text("scan"), date(to.AddDate(-1, 0, 1)), date(to)), queryType: "scan", tenant: mondayTenant, user: "data_scientist",
		sla: 30, timeout: 180, tags: []string{"adhoc"},
	}.task()}
}

// agent is one session of 22 small queries, each the answer's follower. They come at the agent's pace, not in answer to
// real results: an open-loop generator can't wait, and the seed fixes what the agent finds.
func agent(r *rand.Rand, session string, from, to time.Duration) []Arrival {
	customer := 3*(1+r.IntN(30)) + 1 // a low key is a busy customer, and one that isn't a multiple of 3 has orders
	nation := [...]string{"FRANCE", "BRAZIL", "JAPAN", "KENYA", "EGYPT"}[r.IntN(5)]
	month := date(time.Date(1998, time.Month(1+r.IntN(11)), 1, 0, 0, 0, 0, time.UTC))
	brand := fmt.Sprintf("Brand#%d%d", 1+r.IntN(5), 1+r.IntN(5))
	var out []Arrival
	step := (to - from) / agentSteps
	for i, question := range texts("agent") {
		jitter := time.Duration(r.Int64N(int64(step)*6/10)) - step*3/10
		out = append(out, Arrival{At: from + step/2 + time.Duration(i)*step + jitter, Kind: AgentStep, Task: request{
			sql: mustBind(question, customer, nation, month, brand), queryType: "exploration", tenant: mondayTenant, user: "agent-support-assistant",
			sla: 5, timeout: 60, session: &query.Session{ID: session, Class: query.Agent}, tags: []string{"agent"},
		}.task()})
	}
	return out
}

func date(t time.Time) string { return t.Format(time.DateOnly) }
