package route_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/fingerprint"
	"github.com/pointsman/pointsman/pkg/policy"
	"github.com/pointsman/pointsman/pkg/route"
	"github.com/pointsman/pointsman/pkg/shape"
	"github.com/pointsman/pointsman/pkg/signal"
)

// Cases from public reports against routers, as far as rules decide them. Each names the report.

func withSQL(t testing.TB, in route.Input, sql string) route.Input {
	t.Helper()
	d, err := fingerprint.ParseDialect("auto")
	require.NoError(t, err)
	in.Task.SQL, in.Shape = sql, shape.Of(sql, d)
	return in
}

func hasReason(d event.RouteDecision, code route.Code) bool {
	for _, r := range d.Reasons {
		if r.Code == string(code) {
			return true
		}
	}
	return false
}

// P1, trino-gateway#878: a later rule must not overwrite the first that matched.
func TestFirstMatchDecides(t *testing.T) {
	in := input(t)
	in.Policy = load(t, `
engines: {vip: {kind: trino}, adhoc: {kind: trino}}
rules:
  - {name: admins, when: {user: admin}, route: vip}
  - {name: rest, route: adhoc}
`)
	in.Task.User = "admin"
	d := route.Decide(in)
	require.Equal(t, "vip", d.Cluster)
	require.Equal(t, "admins", d.Rule)
	var said []policy.TraceResult
	for _, r := range route.ExplainInput(in).Rules {
		said = append(said, r.Result)
	}
	require.Equal(t, []policy.TraceResult{policy.RuleDecided, policy.RuleNotReached}, said)

	_, err := policy.Load("p", []byte(`
engines: {vip: {kind: trino}, adhoc: {kind: trino}}
rules:
  - {name: rest, route: adhoc}
  - {name: admins, when: {user: admin}, route: vip}
`))
	require.ErrorContains(t, err, `unreachable: rule "rest" above has no condition`)
}

// P2, trino-gateway#487 and #528: what nobody can read is routed by tags and by who asks, and says so.
func TestParseFailureRoutesByTags(t *testing.T) {
	p := load(t, `
engines: {etl: {kind: trino}, adhoc: {kind: trino}, quarantine: {kind: trino}}
rules:
  - {name: dbt, when: {client_tag: dbt-trino}, route: etl}
  - {name: team, when: {parsed: true, user: ann}, route: adhoc}
  - {name: unread, when: {any_of: [{parsed: false}, {statement: unknown}]}, route: quarantine, tags: [unread]}
  - {name: default, route: adhoc}
`)
	for _, unread := range []func(*route.Input){
		func(in *route.Input) { in.Shape = shape.Shape{Source: shape.FromNone} },
		func(in *route.Input) { *in = withSQL(t, *in, ")))) FROM ???") },
	} {
		in := input(t, unread)
		in.Policy = p
		in.Task.Tags = []string{"dbt-trino"}
		d := route.Decide(in)
		require.Equal(t, "dbt", d.Rule, "its tag still counts")
		require.True(t, hasReason(d, route.ParseFailed))
		in.Task.Tags, in.Task.User = nil, "bob"
		d = route.Decide(in)
		require.Equal(t, "unread", d.Rule)
		require.Equal(t, []string{"unread"}, d.RuleTags)
		require.True(t, hasReason(d, route.ParseFailed), "never a silent default")
	}
	in := withSQL(t, input(t), `CREATE OR REPLACE TABLE c.d.t WITH (extra_properties = MAP(ARRAY['k'], ARRAY['v'])) AS (WITH a AS (SELECT * FROM c.d.s), b AS (SELECT SPLIT_PART(x,'-',1) y FROM a) SELECT * FROM b)`)
	in.Policy = p
	in.Task.Tags = []string{"dbt-trino"}
	d := route.Decide(in)
	require.Equal(t, "dbt", d.Rule)
	require.Equal(t, "create_table_as", d.Statement)
	require.ElementsMatch(t, []string{"c.d.t", "c.d.s"}, d.Tables)
	require.False(t, hasReason(d, route.ParseFailed))
}

// TestRulesThatOnlyTagAreSaid: they decide nothing, and the decision names them.
func TestRulesThatOnlyTagAreSaid(t *testing.T) {
	in := input(t)
	in.Policy = load(t, `
engines: {a: {kind: trino}}
rules:
  - {name: told, when: {read_only: true}, notify_client: true, reason: "a read"}
  - {name: tagged, when: {read_only: true}, tags: [x, y]}
  - {name: other, when: {read_only: false}, tags: [z]}
  - {name: default, route: a}
`)
	d := route.Decide(in)
	require.Equal(t, "default", d.Rule)
	require.True(t, d.Notify)
	require.Equal(t, []string{"x", "y"}, d.RuleTags)
	var said []string
	for _, r := range d.Reasons {
		if r.Code == string(route.RuleNoted) {
			said = append(said, r.Text)
		}
	}
	require.Equal(t, []string{"rule told matched too: a read", "rule tagged matched too: x, y"}, said)
}

// P3, trino-gateway#1121 and #1145: the class of a statement is a word that rules can test, also when it is not known.
func TestStatementClassesAreTestable(t *testing.T) {
	p := load(t, `
engines: {a: {kind: trino}, b: {kind: trino}}
rules:
  - {name: unknown, when: {statement: unknown}, route: b}
  - {name: looks, when: {statement: [show, explain]}, route: a}
  - {name: changes, when: {statement: [alter, truncate, create, drop]}, route: b}
  - {name: branches, when: {command: show branches}, route: a}
  - {name: other, when: {statement: other}, route: b}
  - {name: default, route: auto}
`)
	for sql, rule := range map[string]string{
		"SHOW BRANCHES IN TABLE t": "looks", "TRUNCATE TABLE t": "changes", "ALTER TABLE t DROP COLUMN c": "changes",
		"SELECT 1": "default", "FROBNICATE TABLE t": "unknown", "": "",
	} {
		in := input(t)
		in.Policy = p
		in = withSQL(t, in, sql)
		require.Equal(t, rule, route.Decide(in).Rule, sql)
	}
	for _, sql := range []string{"COMMENT ON TABLE t IS 'x'", "REFRESH MATERIALIZED VIEW v"} {
		in := withSQL(t, input(t), sql)
		in.Policy = p
		require.NotEqual(t, "unknown", route.Decide(in).Rule, "%s is %q", sql, in.Shape.Statement)
	}
}

// P4, trino-gateway#797, #587 and #641: a tenant that is pinned strictly goes nowhere else, and one rule's pool does not
// depend on the health of another's.
func TestIsolationAndFallback(t *testing.T) {
	const text = `
engines: {t1: {kind: trino}, t2: {kind: trino}, adhoc: {kind: trino}}
rules:
  - {name: pinned, when: {tenant: gold}, route: t1, strict: true}
  - {name: grouped, when: {tenant: silver}, route: t1, fallback: [t2]}
  - {name: loose, when: {tenant: bronze}, route: t1}
  - {name: default, route: adhoc}
`
	decide := func(tenant string, sick ...string) event.RouteDecision {
		in := input(t)
		in.Policy, in.Signals = load(t, text), signal.Snapshot{}
		in.Task.Tenant = tenant
		for _, pool := range []string{"t1", "t2", "adhoc"} {
			observe(&in, pool, map[signal.Name]float64{signal.Ready: 1, signal.Healthy: 1, signal.Running: 0, signal.Queued: 0, signal.Slots: 4, signal.EstWaitMs: 0})
		}
		for _, pool := range sick {
			observe(&in, pool, map[signal.Name]float64{signal.Ready: 0, signal.Healthy: 0})
		}
		return route.Decide(in)
	}
	d := decide("gold", "t1")
	require.Equal(t, event.Reject, d.Kind, "0 queries on the others")
	require.True(t, hasReason(d, route.NoCandidateFor))
	require.Empty(t, d.Fallbacks)
	d = decide("gold")
	require.Equal(t, "t1", d.Cluster)
	require.Empty(t, d.Fallbacks, "strict holds for failover too")

	d = decide("silver", "t1")
	require.Equal(t, "t2", d.Cluster)
	require.True(t, hasReason(d, route.RulePoolNotUsable))
	d = decide("silver", "t1", "t2")
	require.Equal(t, event.Reject, d.Kind)
	d = decide("silver")
	require.Equal(t, "t1", d.Cluster)
	for _, f := range d.Fallbacks {
		require.Equal(t, "t2", f.Cluster)
	}
	require.NotEqual(t, event.Reject, decide("bronze", "t1").Kind)

	require.Equal(t, "t1", decide("gold", "adhoc", "t2").Cluster, "(b): adhoc all down, the rule's pool healthy")
	require.Equal(t, "t1", decide("bronze", "adhoc", "t2").Cluster)
}

// P10, proxysql#3340, #1959 and tiproxy#768: a missing or stale signal is neither good nor bad, in rules too.
func TestRulesAndMissingSignals(t *testing.T) {
	const text = `
engines: {a: {kind: trino}, b: {kind: trino}}
rules:
  - {name: idle, when: {a_queue_wait_ms_lt: 500}, route: a}
  - {name: full, when: {a_queue_wait_ms_gte: 500}, route: b}
  - {name: sick, when: {a_healthy: false}, route: b}
  - {name: well, when: {not: {a_healthy: false}}, route: a}
  - {name: blind, when: {a_healthy_known: false}, route: b}
  - {name: default, route: auto}
`
	for name, c := range map[string]struct {
		edit func(*route.Input)
		rule string
	}{
		"known":         {func(in *route.Input) { observe(in, "a", map[signal.Name]float64{signal.EstWaitMs: 100}) }, "idle"},
		"zero is known": {func(in *route.Input) { observe(in, "a", map[signal.Name]float64{signal.EstWaitMs: 0}) }, "idle"},
		"long":          {func(in *route.Input) { observe(in, "a", map[signal.Name]float64{signal.EstWaitMs: 900}) }, "full"},
		"stale": {func(in *route.Input) {
			observe(in, "a", map[signal.Name]float64{signal.EstWaitMs: 100, signal.Healthy: 1})
			age(in)
		}, "blind"},
		"missing":      {func(*route.Input) {}, "blind"},
		"only healthy": {func(in *route.Input) { observe(in, "a", map[signal.Name]float64{signal.Healthy: 1}) }, "well"},
		"only sick":    {func(in *route.Input) { observe(in, "a", map[signal.Name]float64{signal.Healthy: 0}) }, "sick"},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(t)
			in.Policy, in.Signals = load(t, text), signal.Snapshot{}
			c.edit(&in)
			require.Equal(t, c.rule, route.Decide(in).Rule)
		})
	}
}

// age makes all signals older than the policy lets them be.
func age(in *route.Input) {
	for _, values := range in.Signals {
		for name, v := range values {
			v.At = v.At.Add(-2 * in.Policy.Defaults.SignalMaxAge)
			values[name] = v
		}
	}
}

// TestTenantsHaveTheirOwnPolicy: thresholds, defaults and rules of a tenant count for all of a decision.
func TestTenantsHaveTheirOwnPolicy(t *testing.T) {
	in := input(t)
	in.Policy = load(t, `
engines: {a: {kind: trino}, b: {kind: trino}}
rules:
  - {name: default, route: a}
thresholds: {heavy_bytes: 1 GB}
tenants:
  big:
    thresholds: {heavy_bytes: 1 TB}
    defaults: {sla_seconds: 99}
    rules: [{name: own, when: {read_only: true}, route: b}]
`)
	in.Task.SLASeconds = nil
	in.Estimates[route.ScanBytes] = signal.Of(5e9, signal.Bytes, "catalog", in.Now)
	d := route.Decide(in)
	require.Equal(t, []any{"a", "default", "heavy", 30.0}, []any{d.Cluster, d.Rule, d.Verdict, *d.Task.SLASeconds})
	in.Task.Tenant = "big"
	d = route.Decide(in)
	require.Equal(t, []any{"b", "own", "light", 99.0}, []any{d.Cluster, d.Rule, d.Verdict, *d.Task.SLASeconds})
	require.Equal(t, in.Policy.Hash, d.PolicyHash)
}

// TestLatchesInDecisions: the state of a latch is in the input, and so in what is recorded of it.
func TestLatchesInDecisions(t *testing.T) {
	in := input(t)
	in.Policy = load(t, `
engines: {a: {kind: trino}, b: {kind: trino}}
latches: {full: {watch: a_queue_wait_ms, enter_gte: 2000, leave_lt: 500}}
rules:
  - {name: spill, when: {full: true}, route: b}
  - {name: default, route: a}
`)
	require.Equal(t, "default", route.Decide(in).Rule, "nothing is known of it")
	in.Latches = map[string]policy.Latch{"full": {Known: true, On: true, At: in.Now, Since: in.Now}}
	require.Equal(t, "spill", route.Decide(in).Rule)
	data, err := in.MarshalJSON()
	require.NoError(t, err)
	var back route.Input
	require.NoError(t, back.UnmarshalJSON(data))
	back.Policy = in.Policy
	require.Equal(t, route.Decide(in), route.Decide(back))
	in.Latches = map[string]policy.Latch{"full": {Known: true, On: true, At: in.Now.Add(-2 * in.Policy.Latches[0].AbsentAfter)}}
	require.Equal(t, "default", route.Decide(in).Rule, "too long ago")
}
