package workload

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/pointsman/pointsman/pkg/query"
)

// Kind says which part of the workload an arrival belongs to.
type Kind string

// The kinds; the empty value is unknown.
const (
	CAB            Kind = "cab"            // a read of the CAB trace
	Dashboard      Kind = "dashboard"      // one tile of a dashboard that loads
	Transformation Kind = "transformation" // the nightly job that ran late
	Scan           Kind = "scan"           // the wide ad hoc GROUP BY, repeated
	AgentStep      Kind = "agent"          // one of the agent's 22 queries
	Runaway        Kind = "runaway"        // an agent that asks for more and more in a loop
	Medium         Kind = "medium"         // a third of a second of work, spread out: gives the burst's queries a history
	Burst          Kind = "burst"          // the same, many at once
	Tight          Kind = "tight"          // the same, in the middle of the burst, with little time
)

// Arrival is a Task and when it is sent, counted from the start of the window.
type Arrival struct {
	At   time.Duration
	Kind Kind
	Task query.Task
}

// Options are the arguments of Generate; zero fields mean the default.
type Options struct {
	// Window is how long the demo has, 60 s by default. Arrivals end at 70 % of it, so that what came last can finish.
	Window time.Duration
	// Count is the number of arrivals, 600 for 60 s by default. What the other parts leave comes from the trace.
	Count int
	Seed  uint64
	// Prefix begins every task and session id, "demo" by default. Give each run on a lasting broker one of its own: a
	// Task that was asked already is not run again, and a session's budget stays spent.
	Prefix string
}

const (
	defaultWindow = time.Minute
	defaultRate   = 600.0 / 60 // arrivals for each second of the window
	busyShare     = 0.7
	minWindow     = 5 * time.Second
	// minTrace is the least share of the trace in a workload that calls itself a demo of it.
	minTrace = 40
	maxCount = 1_000_000
)

func (o Options) withDefaults() (Options, error) {
	if o.Window == 0 {
		o.Window = defaultWindow
	}
	if o.Window < minWindow {
		return o, fmt.Errorf("window %s is shorter than %s", o.Window, minWindow)
	}
	least := fixedArrivals() + minTrace
	if o.Count == 0 {
		o.Count = min(max(int(defaultRate*o.Window.Seconds()), least), maxCount)
	}
	if o.Count < least || o.Count > maxCount {
		return o, fmt.Errorf("count %d is not between %d and %d", o.Count, least, maxCount)
	}
	if o.Prefix == "" {
		o.Prefix = "demo"
	}
	// The ids that follow from it are longer by a seed and a number.
	if !query.ValidID(o.Prefix) || len(o.Prefix) > 64 {
		return o, fmt.Errorf("prefix %q: give up to 64 characters of A-Z a-z 0-9 . _ : -", o.Prefix)
	}
	return o, nil
}

// Generate makes the arrivals, ordered by time. Equal options give equal arrivals.
func Generate(opts Options) ([]Arrival, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("workload: %w", err)
	}
	run := fmt.Sprintf("%s-%d", opts.Prefix, opts.Seed)
	span := time.Duration(float64(opts.Window) * busyShare)
	arrivals := slices.Concat(
		monday(stream(opts.Seed, 1), run, span),
		runaway(stream(opts.Seed, 2), run, span),
		burst(stream(opts.Seed, 3), span),
	)
	// Parts draw from generators of their own: another count must not change the agent's questions.
	traced, err := cab(stream(opts.Seed, 4), opts.Count-len(arrivals), span)
	if err != nil {
		return nil, fmt.Errorf("workload: %w", err)
	}
	arrivals = append(arrivals, traced...)
	slices.SortStableFunc(arrivals, func(a, b Arrival) int { return cmp.Compare(a.At, b.At) })
	for i := range arrivals {
		arrivals[i].Task.ID = fmt.Sprintf("%s-%05d", run, i)
	}
	return arrivals, nil
}

// fixedArrivals counts the parts that don't grow with the count.
func fixedArrivals() int {
	return dashboardLoads*dashboardTiles + 1 + len(scanStarts) + agentSteps + runawaySteps + mediumQueries + burstQueries + tightQueries
}

// Tenants lists every tenant that the workload names, for a configuration that wants to know them beforehand.
func Tenants() []string {
	out := []string{mondayTenant}
	for s := range cabStreams {
		out = append(out, cabTenant(s))
	}
	return out
}

func stream(seed, part uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, part)) }

// request is a Task before it has an id.
type request struct {
	sql, queryType, tenant, user string
	sla, timeout                 float64
	session                      *query.Session
	tags                         []string
}

func (r request) task() query.Task {
	return query.Task{
		Dataset: "tpch", QueryType: r.queryType, SQL: r.sql, Dialect: "clickhouse", Tenant: r.tenant, User: r.user,
		SLASeconds: &r.sla, TimeoutSeconds: &r.timeout, Session: r.session, Tags: r.tags,
	}
}
