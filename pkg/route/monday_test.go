package route_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/fingerprint"
	"github.com/pointsman/pointsman/pkg/policy"
	"github.com/pointsman/pointsman/pkg/profile"
	"github.com/pointsman/pointsman/pkg/query"
	"github.com/pointsman/pointsman/pkg/route"
	"github.com/pointsman/pointsman/pkg/shape"
	"github.com/pointsman/pointsman/pkg/signal"
)

// asked is a query of the Monday minute.
type asked struct {
	name, sql string
	tags      []string
	class     query.SessionClass
	gigabytes float64
	covered   bool
	waitMs    float64
}

// monday decides queries by the article's own policy, text and all: the shape is read off the SQL, the session's account goes on
// from query to query.
type monday struct {
	t       *testing.T
	policy  *policy.Policy
	session route.SessionAccount
	n       int
}

func (m *monday) input(q asked) route.Input {
	m.n++
	at := now.Add(-5 * time.Millisecond)
	dialect, err := fingerprint.ParseDialect("auto")
	require.NoError(m.t, err)
	in := route.Input{
		Task: query.Task{
			ID: fmt.Sprintf("monday-%d", m.n), SQL: q.sql, Tenant: "acme", User: "ann", Tags: q.tags, SubmittedAt: &at,
		},
		Attempt: 1, Fingerprint: fingerprint.Of(q.sql, dialect).String(), Shape: shape.Of(q.sql, dialect),
		Estimates: map[string]signal.Value{route.ScanBytes: signal.Of(q.gigabytes*1e9, signal.Bytes, "iceberg", now)},
		History:   profile.Lookup{Asked: true}, Signals: signal.Snapshot{}, Policy: m.policy, Now: now, Seed: uint64(m.n),
	}
	if q.covered { // the planner was asked first, so that nobody planned a scan
		in.Estimates = map[string]signal.Value{route.ReflectionCovers: signal.OfFlag(true, "planner", now)}
	}
	if q.class != "" {
		in.Task.Session = &query.Session{ID: "support-17", Class: q.class}
		in.Session = &m.session
	}
	observe(&in, "interactive", map[signal.Name]float64{signal.Ready: 1, signal.Healthy: 1, signal.Running: 12, signal.Queued: 3, signal.Slots: 40, signal.EstWaitMs: q.waitMs})
	observe(&in, "batch", map[signal.Name]float64{signal.Ready: 1, signal.Healthy: 1, signal.Running: 1, signal.Queued: 0, signal.Slots: 8, signal.EstWaitMs: 0})
	return in
}

// TestMondayMinute is the worked trace of the article "Query Routing at Machine Scale": four workloads in one minute, and what goes
// wrong besides. Same engines, same reasons.
func TestMondayMinute(t *testing.T) {
	text, err := os.ReadFile("../policy/testdata/routing-policy.yaml")
	require.NoError(t, err)
	m := &monday{t: t, policy: load(t, string(text))}
	interactive := []string{"interactive"}
	queries := []asked{
		{name: "dashboard: revenue by segment", sql: "SELECT segment, SUM(revenue_usd) FROM sales.revenue WHERE order_date >= CURRENT_DATE - 30 GROUP BY segment", tags: interactive, covered: true, waitMs: 120},
		{name: "dashboard: and its siblings", sql: "SELECT region, SUM(revenue_usd) FROM sales.revenue WHERE order_date >= CURRENT_DATE - 30 GROUP BY region", tags: interactive, covered: true, waitMs: 120},
		{name: "dashboard: covered, and the raw scan would be large", sql: "SELECT segment, SUM(revenue_usd) FROM sales.revenue GROUP BY segment", tags: interactive, covered: true, waitMs: 120},
		{name: "the late transformation, had it come through here", sql: "MERGE INTO warehouse.fact_orders t USING staging.orders_delta s ON t.id = s.id WHEN MATCHED THEN UPDATE SET amount = s.amount WHEN NOT MATCHED THEN INSERT (id, amount) VALUES (s.id, s.amount)", tags: []string{"batch"}, gigabytes: 30_000, waitMs: 120},
		{name: "data scientist: a year of events", sql: "SELECT user_id, event_type, COUNT(*) FROM events WHERE event_date BETWEEN '2025-08-01' AND '2026-08-01' GROUP BY 1, 2", tags: interactive, gigabytes: 11_400, waitMs: 120},
		{name: "data scientist: only the purchases, and interactive is idle", sql: "SELECT user_id, event_type, COUNT(*) FROM events WHERE event_date BETWEEN '2025-08-01' AND '2026-08-01' AND event_type = 'purchase' GROUP BY 1, 2", tags: interactive, gigabytes: 400, waitMs: 120},
		{name: "the same while the interactive queue is saturated", sql: "SELECT user_id, event_type, COUNT(*) FROM events WHERE event_date BETWEEN '2025-08-01' AND '2026-08-01' AND event_type = 'purchase' GROUP BY 1, 2", tags: interactive, gigabytes: 400, waitMs: 2500},
		{name: "a small lookup while the interactive queue is saturated", sql: "SELECT name FROM crm.customers WHERE id = 4471", tags: interactive, gigabytes: 0.2, waitMs: 2500},
		{name: "five joined tables", sql: "SELECT count(*) FROM a JOIN b ON a.x = b.x JOIN c ON b.x = c.x JOIN d ON c.x = d.x JOIN e ON d.x = e.x", tags: interactive, gigabytes: 60, waitMs: 800},
		{name: "a function of the user's own", sql: "SELECT UDF_SCORE(payload) FROM events", gigabytes: 60, waitMs: 800},
		{name: "nothing is known of it", sql: "SELECT 1 FROM nowhere", gigabytes: -1},
	}
	// The agent's 22 queries.
	queries = append(queries, asked{name: "agent 1: schema probe", sql: "SELECT * FROM support.tickets LIMIT 0", gigabytes: 0.001})
	for i := 2; i < 12; i++ {
		queries = append(queries, asked{name: fmt.Sprintf("agent %d: lookup by ticket", i), sql: fmt.Sprintf("SELECT status, owner FROM support.tickets WHERE ticket_id = %d", 1000+i), gigabytes: 0.4})
	}
	queries = append(queries, asked{name: "agent 12: all events of a customer", sql: "SELECT * FROM support.ticket_events WHERE customer_id = 'C-4471'", gigabytes: 90})
	for i := 13; i <= 22; i++ {
		queries = append(queries, asked{name: fmt.Sprintf("agent %d: small aggregate", i), sql: fmt.Sprintf("SELECT count(*) FROM support.ticket_events WHERE ticket_id = %d", i), gigabytes: 0.1})
	}
	queries = append(queries,
		asked{name: "agent 23: far too much", sql: "SELECT * FROM events", gigabytes: 12_000},
	)
	var out strings.Builder
	for _, q := range queries {
		if strings.HasPrefix(q.name, "agent") {
			q.class, q.tags, q.waitMs = query.Agent, []string{"agent"}, 120
		}
		in := m.input(q)
		if q.gigabytes < 0 {
			in.Estimates, in.Signals = nil, signal.Snapshot{}
		}
		d := route.Decide(in)
		if q.class != "" && d.Kind == event.Route {
			m.session.Usage.Queries++
			m.session.Usage.Bytes += int64(q.gigabytes * 1e9)
		}
		tell(&out, q.name, d)
	}
	require.EqualValues(t, 22, m.session.Usage.Queries)
	require.EqualValues(t, 95, m.session.Usage.Bytes/1e9, "the article's session ends a little above 95 GB")

	// Later the session has spent it all.
	m.session.Usage.Queries = 200
	tell(&out, "agent: its 201st query", route.Decide(m.input(asked{sql: "SELECT 1 FROM support.tickets", class: query.Agent, tags: []string{"agent"}, gigabytes: 0.1})))
	golden(t, "monday_minute.txt", []byte(out.String()))
}

// tell writes a decision as a line of the router's log, with its reasons.
func tell(out *strings.Builder, name string, d event.RouteDecision) {
	where := d.Cluster
	if d.Kind == event.Reject {
		where = "rejected"
	}
	if d.Notify {
		where += " (the client is told)"
	}
	fmt.Fprintf(out, "%s\n  -> %s, rule %s, verdict %s, scan %s\n", name, where, orNone(d.Rule), orNone(d.Verdict), d.Estimates[route.ScanBytes])
	for _, r := range d.Reasons {
		fmt.Fprintf(out, "     %s [%s]\n", r.Text, r.Code)
	}
	if d.Rejection != nil {
		fmt.Fprintf(out, "     message: %s\n", d.Rejection.Message)
	}
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}
