package route_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/pointsman/pointsman/pkg/budget"
	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/policy"
	"github.com/pointsman/pointsman/pkg/profile"
	"github.com/pointsman/pointsman/pkg/query"
	"github.com/pointsman/pointsman/pkg/route"
	"github.com/pointsman/pointsman/pkg/shape"
	"github.com/pointsman/pointsman/pkg/signal"
)

// with loads a policy of one pool called p, and another that always takes everything.
func with(tb testing.TB, options string) func(*route.Input) {
	return func(in *route.Input) {
		in.Policy = load(tb, "engines:\n  p: {kind: postgres, slots: 4, "+options+"}\n  other: {kind: trino, cost_per_second: 100}\nrules: [{name: default, route: auto}]\n")
		in.Signals = signal.Snapshot{}
		for _, c := range []string{"p", "other"} {
			observe(in, c, map[signal.Name]float64{signal.Ready: 1, signal.Healthy: 1, signal.Running: 0, signal.Queued: 0, signal.Slots: 4, signal.EstWaitMs: 0})
		}
	}
}

func task(edit func(*query.Task)) func(*route.Input) {
	return func(in *route.Input) { edit(&in.Task) }
}

func text(edit func(*shape.Shape)) func(*route.Input) {
	return func(in *route.Input) { edit(&in.Shape) }
}

func without(cluster string, names ...signal.Name) func(*route.Input) {
	return func(in *route.Input) {
		for _, name := range names {
			delete(in.Signals[cluster], name)
		}
	}
}

func old(cluster string, name signal.Name) func(*route.Input) {
	return func(in *route.Input) {
		v := in.Signals[cluster][name]
		v.At = now.Add(-time.Hour)
		in.Signals[cluster][name] = v
	}
}

// TestFilters has one row or more for each filter: what removes, and what lets pass. No code means that it passes.
func TestFilters(t *testing.T) {
	type edit = func(*route.Input)
	strong, own := task(func(t *query.Task) { t.Consistency = query.Strong }), func(ts int64) edit {
		return task(func(t *query.Task) { t.Consistency, t.CommitTS = query.ReadYourWrites, &ts })
	}
	nowMs := now.UnixMilli()
	lag := func(ms float64) edit { return set("p", map[signal.Name]float64{signal.LagMs: ms}) }
	position := func(ts float64) edit { return set("p", map[signal.Name]float64{signal.AppliedTS: ts}) }
	class := func(c query.SessionClass) edit {
		return task(func(t *query.Task) { t.Session = &query.Session{ID: "s", Class: c} })
	}
	hist := func(p profile.Profile) edit {
		return func(in *route.Input) {
			p.Key, p.Window = profile.Key{Fingerprint: in.Fingerprint, Engine: "postgres", Cluster: p.Key.Cluster}, "7d"
			if p.Key.Cluster == "other" {
				p.Key.Engine = "trino"
			}
			in.History.Found = map[profile.Key]profile.Profile{p.Key: p}
		}
	}
	for _, c := range []struct {
		name, pool string
		in         []edit
		code       route.Code
		wait, more bool // waiting and scaling help
	}{
		{"a pool for some tenants", "tenants: [sales]", nil, "", false, false},
		{"not for this one", "tenants: [other]", nil, route.TenantNotPermitted, false, false},
		{"a queue for some tenants", "queues: [{queue: q, tenants: [other]}]", nil, route.QueueNotPermitted, false, false},
		{"a queue for some users", "queues: [{queue: q, users: [bob]}]", nil, route.QueueNotPermitted, false, false},
		{"a queue for a class of sessions", "queues: [{queue: q, classes: [agent]}]", []edit{class(query.Human)}, route.QueueNotPermitted, false, false},
		{"an unknown class is not that class", "queues: [{queue: q, classes: [agent]}]", nil, route.QueueNotPermitted, false, false},
		{"a queue for this class", "queues: [{queue: q, classes: [agent]}]", []edit{class(query.Agent)}, "", false, false},
		{"data sets", "datasets: [orders]", []edit{task(func(t *query.Task) { t.Dataset = "events" })}, route.DatasetNotReachable, false, false},
		{"a table's catalog", "catalogs: [lake]", []edit{text(func(s *shape.Shape) { s.Tables[0].Catalog = "warehouse" })}, route.CatalogNotReachable, false, false},
		{"the task's catalog", "catalogs: [lake]", []edit{task(func(t *query.Task) { t.Catalog = "warehouse" })}, route.CatalogNotReachable, false, false},
		{"a table's catalog before the task's, in any case", "catalogs: [lake]", []edit{
			task(func(t *query.Task) { t.Catalog = "warehouse" }), text(func(s *shape.Shape) { s.Tables[0].Catalog = "LAKE" }),
		}, "", false, false},
		{"no catalog named", "catalogs: [lake]", nil, "", false, false},
		{"a dialect", "dialects: [postgres]", []edit{task(func(t *query.Task) { t.Dialect = "trino" })}, route.DialectNotSupported, false, false},
		{"a dialect in any case", "dialects: [postgres]", []edit{task(func(t *query.Task) { t.Dialect = "PostgreSQL"; t.Dialect = "POSTGRES" })}, "", false, false},
		{"auto is any dialect", "dialects: [postgres]", []edit{task(func(t *query.Task) { t.Dialect = "auto" })}, "", false, false},
		{"a function that is not there", "udfs: [geo_hash]", []edit{text(func(s *shape.Shape) { s.UDFs = []string{"geo_hash", "score"} })}, route.FunctionNotSupported, false, false},
		{"no function at all", "udfs: []", []edit{text(func(s *shape.Shape) { s.UDFs = []string{"score"} })}, route.FunctionNotSupported, false, false},
		{"nothing said of functions", "", []edit{text(func(s *shape.Shape) { s.UDFs = []string{"score"} })}, "", false, false},
		{"windows", "lacks: [window]", []edit{text(func(s *shape.Shape) { s.Windows = []shape.Window{{}} })}, route.FeatureNotSupported, false, false},
		{"recursion", "lacks: [recursive]", []edit{text(func(s *shape.Shape) { s.Recursive = true })}, route.FeatureNotSupported, false, false},
		{"JSON, and it uses none", "lacks: [json, regex]", nil, "", false, false},
		{"writes to what takes none", "read_only: true", []edit{text(func(s *shape.Shape) { s.ReadOnly, s.Statement = false, shape.Insert })}, route.PoolReadOnly, false, false},
		{"writes to a copy", "replica: true", []edit{text(func(s *shape.Shape) { s.ReadOnly, s.Statement = false, shape.Insert })}, route.PoolReadOnly, false, false},
		{"killed for its memory", "", []edit{hist(profile.Profile{Key: profile.Key{Cluster: "p"}, Runs: 2, MemoryKills: 1})}, route.HistoryMemoryKill, false, false},
		{"its peak elsewhere", "max_memory_per_query: 1 GB", []edit{hist(profile.Profile{Key: profile.Key{Cluster: "other"}, Runs: 2, PeakMemoryBytes: new(int64(2e9))})}, route.MemoryOverLimit, false, false},
		{"its peak elsewhere, and it spills", "max_memory_per_query: 1 GB, spills: true", []edit{hist(profile.Profile{Key: profile.Key{Cluster: "other"}, Runs: 2, PeakMemoryBytes: new(int64(2e9))})}, "", false, false},
		{"an estimate of its memory", "max_memory_per_query: 1 GB", []edit{func(in *route.Input) {
			in.Estimates[route.MemoryBytes] = signal.Of(2e9, signal.Bytes, "planner", now)
		}}, route.MemoryOverLimit, false, false},
		{"too much to scan", "max_bytes_per_query: 1 MB", nil, route.ScanOverLimit, false, false},
		{"nobody knows what it scans", "max_bytes_per_query: 1 MB", []edit{func(in *route.Input) { delete(in.Estimates, route.ScanBytes) }}, "", false, false},
		{"a reflection answers, whatever the raw scan", "max_bytes_per_query: 1 MB, supports_reflections: true", []edit{func(in *route.Input) {
			in.Estimates[route.ReflectionCovers] = signal.OfFlag(true, "planner", now)
		}}, "", false, false},
		{"a copy, and nobody cares", "replica: true", nil, "", false, false},
		{"a copy within its lag", "replica: true, max_lag_ms: 1000", []edit{lag(1000)}, "", false, false},
		{"a copy beyond its lag", "replica: true, max_lag_ms: 1000", []edit{lag(1001)}, route.ReplicaLags, true, false},
		{"a lag that nobody reports", "replica: true, max_lag_ms: 1000", nil, route.LagUnknown, false, false},
		{"a lag of less than nothing", "replica: true, max_lag_ms: 1000", []edit{lag(-2000)}, route.LagUnknown, false, false},
		{"a lag of an hour ago", "replica: true, max_lag_ms: 1000", []edit{lag(0), old("p", signal.LagMs)}, route.LagUnknown, false, false},
		{"a strong read takes no copy", "replica: true", []edit{strong, lag(0), position(math.MaxInt64)}, route.ReplicaNotCurrent, false, false},
		{"a strong read of the source", "", []edit{strong}, "", false, false},
		{"own writes, and the copy has them", "replica: true", []edit{own(100), position(100)}, "", false, false},
		{"own writes, and the copy lacks one", "replica: true", []edit{own(101), position(100)}, route.CommitNotApplied, true, false},
		{"own writes, and the position is old", "replica: true", []edit{own(100), position(100), old("p", signal.AppliedTS)}, route.LagUnknown, false, false},
		{"own writes, and nobody knows", "replica: true", []edit{own(100)}, route.LagUnknown, false, false},
		{"own writes, and a lag that is no time", "replica: true", []edit{own(100), lag(0)}, route.LagUnknown, false, false},
		{"own writes by the clock", "replica: true, commit_ts: unix_ms", []edit{own(nowMs - 1300), lag(1000)}, "", false, false},
		{"own writes by the clock, too late", "replica: true, commit_ts: unix_ms", []edit{own(nowMs - 1299), lag(1000)}, route.CommitNotApplied, true, false},
		{"own writes, and no commit named", "replica: true", []edit{task(func(t *query.Task) { t.Consistency = query.ReadYourWrites })}, route.CommitNotNamed, false, false},
		{"own writes at the source", "", []edit{own(100)}, "", false, false},
		{"a position that a float rounds up", "replica: true", []edit{own(1<<60 + 100), position(1<<60 + 100)}, route.CommitNotApplied, true, false},
		{"a position a whole step further", "replica: true", []edit{own(1<<60 + 100), position(1<<60 + 1024)}, "", false, false},
		{"down", "", []edit{set("p", map[signal.Name]float64{signal.Healthy: 0}), without("p", signal.Ready)}, route.ClusterUnhealthy, true, false},
		{"in quarantine", "readmit_samples: 3", []edit{quarantined(true, now)}, route.ClusterQuarantined, true, false},
		{"out of quarantine", "readmit_samples: 3", []edit{quarantined(false, now)}, "", false, false},
		{"a quarantine that nobody has confirmed for an hour", "readmit_samples: 3", []edit{quarantined(true, now.Add(-time.Hour))}, "", false, false},
		{"of a quarantine nothing is known", "readmit_samples: 3", nil, "", false, false},
		{"called ready, and it failed its check", "", []edit{set("p", map[signal.Name]float64{signal.Healthy: 0})}, route.ClusterUnhealthy, true, false},
		{"the same of one that can sleep", "sleeps_at_zero: true", []edit{set("p", map[signal.Name]float64{signal.Healthy: 0})}, route.ClusterUnhealthy, true, false},
		{"called ready, and the failed check is old", "", []edit{set("p", map[signal.Name]float64{signal.Healthy: 0}), old("p", signal.Healthy)}, "", false, false},
		{"not ready", "", []edit{set("p", map[signal.Name]float64{signal.Ready: 0})}, route.ClusterNotReady, true, true},
		{"nobody knows", "", []edit{without("p", signal.Ready, signal.Healthy)}, "", false, false},
		{"asleep", "sleeps_at_zero: true, wake_ms: 4000", []edit{set("p", map[signal.Name]float64{signal.Ready: 0})}, "", false, false},
		{"asleep for too long", "sleeps_at_zero: true, wake_ms: 900000", []edit{set("p", map[signal.Name]float64{signal.Ready: 0})}, route.WakesTooLate, false, true},
		{"asleep, and nobody says how long it takes", "sleeps_at_zero: true", []edit{
			set("p", map[signal.Name]float64{signal.Ready: 0}), task(func(t *query.Task) { t.TimeoutSeconds = new(59.0) }),
		}, route.WakesTooLate, false, true},
		{"asleep, as measured", "sleeps_at_zero: true, wake_ms: 4", []edit{set("p", map[signal.Name]float64{signal.Ready: 0, signal.WakeMs: 900_000})}, route.WakesTooLate, false, true},
		{"the tenant has enough there", "max_concurrent_per_tenant: 2", []edit{func(in *route.Input) {
			in.Tenant = &budget.TenantAccount{Clusters: map[string]int64{"p": 2}}
		}}, route.TenantConcurrencyThere, true, false},
		{"the tenant has one there", "max_concurrent_per_tenant: 2", []edit{func(in *route.Input) {
			in.Tenant = &budget.TenantAccount{Clusters: map[string]int64{"p": 1, "other": 9}}
		}}, "", false, false},
		{"a long queue", "max_queue_wait_ms: 1000", []edit{set("p", map[signal.Name]float64{signal.EstWaitMs: 1001})}, route.QueueWaitOverLimit, true, true},
		{"a queue that nobody sees", "max_queue_wait_ms: 1000", []edit{without("p", signal.EstWaitMs, signal.Queued)}, "", false, false},
		{"the first filter names the reason", "tenants: [other], read_only: true", []edit{text(func(s *shape.Shape) { s.ReadOnly = false })}, route.TenantNotPermitted, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := route.Decide(input(t, append([]edit{with(t, c.pool)}, c.in...)...))
			require.Equal(t, event.Route, d.Kind, "the other pool takes it: %s", route.Explain(d))
			got := d.Candidates[0].Filtered
			if c.code == "" {
				require.Nil(t, got, route.Explain(d))
				return
			}
			require.NotNil(t, got, route.Explain(d))
			require.Equal(t, []any{string(c.code), c.wait, c.more}, []any{got.Code, got.WaitHelps, got.ScaleHelps})
			require.NotContains(t, got.Text, "{")
			require.Equal(t, "other", d.Cluster)
		})
	}
}

// lanes is a cluster with a small and a large queue.
const lanes = `
engines:
  trino:
    kind: trino
    queues:
      - {queue: adhoc, resource: small, max_memory_per_query: 1 GB, slots: 10}
      - {queue: etl, resource: large, max_memory_per_query: 8 GB, slots: 2, cost_per_second: 3}
  spark: {kind: spark, cost_per_second: 9, spills: true}
rules: [{name: default, route: auto}]
`

func laned(tb testing.TB) func(*route.Input) {
	return func(in *route.Input) {
		in.Policy, in.Signals = load(tb, lanes), signal.Snapshot{}
		for _, c := range []string{"trino", "spark"} {
			observe(in, c, map[signal.Name]float64{signal.Ready: 1, signal.Healthy: 1, signal.Running: 0, signal.Queued: 0, signal.EstWaitMs: 0})
		}
	}
}

func TestQueuesOfOneCluster(t *testing.T) {
	d := route.Decide(input(t, laned(t)))
	require.Len(t, d.Candidates, 3)
	require.Equal(t, event.Target{Engine: "trino", Cluster: "trino", Queue: "adhoc", Resource: "small"}, d.Target)
	require.Contains(t, route.Explain(d), "trino/etl")

	d = route.Decide(input(t, laned(t), set("trino/adhoc", map[signal.Name]float64{signal.EstWaitMs: 60_000})))
	require.Equal(t, "etl", d.Queue, "a queue's own signal comes before the cluster's: %s", route.Explain(d))
	require.NotEmpty(t, d.Signals.Of("trino/adhoc"))

	killed := func(kills int64) func(*route.Input) {
		return func(in *route.Input) {
			key := profile.Key{Fingerprint: in.Fingerprint, Engine: "trino", Cluster: "trino"}
			in.History.Found = map[profile.Key]profile.Profile{key: {Key: key, Runs: kills, MemoryKills: kills}}
		}
	}
	d = route.Decide(input(t, laned(t), killed(1)))
	require.Equal(t, "etl", d.Queue, "more memory first: %s", route.Explain(d))
	d = route.Decide(input(t, laned(t), killed(2)))
	require.Equal(t, "spark", d.Cluster, "and not for ever: %s", route.Explain(d))

	again := func(class string) func(*route.Input) {
		return func(in *route.Input) {
			in.Attempt, in.Excluded = 2, []event.Target{{Engine: "trino", Cluster: "trino", Queue: "adhoc", Resource: "small"}}
			in.LastFailure = &event.Failure{Class: class}
		}
	}
	require.Equal(t, "etl", route.Decide(input(t, laned(t), again("memory_limit"))).Queue)
	require.Equal(t, "spark", route.Decide(input(t, laned(t), again("cluster_down"))).Cluster, "the whole cluster is down")
}

func TestNoCandidateWaitsWhereWaitingHelps(t *testing.T) {
	const text = `
engines:
  a: {kind: trino, max_queue_wait_ms: 1000}
  b: {kind: trino, max_queue_wait_ms: 1000}
  c: {kind: trino, read_only: true, max_queue_wait_ms: 1000}
rules: [{name: default, route: auto}]
defaults: {no_candidate: %s}
`
	waits := func(choice string) func(*route.Input) {
		return func(in *route.Input) {
			in.Policy, in.Signals = load(t, "defaults: {no_candidate: "+choice+"}\n"+text[:len(text)-len("defaults: {no_candidate: %s}\n")]), signal.Snapshot{}
			for c, wait := range map[string]float64{"a": 9000, "b": 4000, "c": 1100} {
				observe(in, c, map[signal.Name]float64{signal.Ready: 1, signal.Healthy: 1, signal.EstWaitMs: wait, signal.Queued: 9, signal.Running: 9, signal.Slots: 9})
			}
			in.Shape.ReadOnly, in.Shape.Statement = false, shape.Insert
		}
	}
	d := route.Decide(input(t, waits("reject")))
	require.Equal(t, event.Reject, d.Kind)
	require.EqualValues(t, 3, *d.Rejection.RetryAfterSeconds, "when b's queue is short enough: %s", d.Rejection.Suggestion)
	require.Contains(t, d.Rejection.Message, "a: its queue is about 9000 ms long")

	d = route.Decide(input(t, waits("wait")))
	require.Equal(t, event.Route, d.Kind, route.Explain(d))
	require.Equal(t, "b", d.Cluster)
	require.Contains(t, codes(d), string(route.WaitsThere))
	require.Equal(t, 1.0, candidateAt(d, d.Target).Propensity)

	d = route.Decide(input(t, func(in *route.Input) {
		in.Policy = load(t, "engines: {a: {kind: trino, sleeps_at_zero: true, wake_ms: 9000000}}\ndefaults: {no_candidate: wait}\nrules: [{name: default, route: auto}]\n")
	}))
	require.Equal(t, event.Reject, d.Kind, "by the time that it is awake the Task is past its deadline: %s", route.Explain(d))

	d = route.Decide(input(t, waits("wait"), func(in *route.Input) {
		in.Excluded = []event.Target{{Engine: "trino", Cluster: "a"}, {Engine: "trino", Cluster: "b"}}
	}))
	require.Equal(t, event.Reject, d.Kind, "waiting at c would not make it take writes")

	d = route.Decide(input(t, waits("wait"), func(in *route.Input) {
		observe(in, "a", map[signal.Name]float64{signal.Ready: 0})
		observe(in, "b", map[signal.Name]float64{signal.Ready: 0})
	}))
	require.Equal(t, event.Route, d.Kind, "not ready now, but it will be: %s", route.Explain(d))
}

// TestMoreLagNeverAttracts: a copy that lags further never gets a query that it did not get before.
func TestMoreLagNeverAttracts(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		in := input(t, with(t, "replica: true, max_lag_ms: 5000, commit_ts: unix_ms"))
		in.Task.Consistency = rapid.SampledFrom([]query.Consistency{"", query.Eventual, query.ReadYourWrites, query.Strong}).Draw(rt, "consistency")
		in.Task.CommitTS = new(now.UnixMilli() - rapid.Int64Range(0, 10_000).Draw(rt, "ago"))
		lag := rapid.Float64Range(0, 10_000).Draw(rt, "lag")
		set("p", map[signal.Name]float64{signal.LagMs: lag})(&in)
		before := route.Decide(in)
		more := in
		more.Signals = in.Signals.Clone()
		set("p", map[signal.Name]float64{signal.LagMs: lag + rapid.Float64Range(0, 10_000).Draw(rt, "more")})(&more)
		missing := in
		missing.Signals = in.Signals.Clone()
		without("p", signal.LagMs)(&missing)
		if before.Cluster != "p" {
			require.NotEqual(rt, "p", route.Decide(more).Cluster)
			require.NotEqual(rt, "p", route.Decide(missing).Cluster, "missing is no better than any lag")
		}
		require.NotEqual(rt, "p", route.Decide(missing).Cluster, "and a lag that nobody knows is not one within the limit")
	})
}

func TestCommitUnitsAreThoseOfThePolicy(t *testing.T) {
	for unit, ts := range map[policy.CommitUnit]int64{
		policy.UnixSeconds: now.Unix() - 2, policy.UnixMillis: now.UnixMilli() - 2000, policy.UnixMicros: now.UnixMicro() - 2e6, policy.UnixNanos: now.UnixNano() - 2e9,
	} {
		in := input(t, with(t, "replica: true, commit_ts: "+string(unit)), set("p", map[signal.Name]float64{signal.LagMs: 100}),
			task(func(t *query.Task) { t.Consistency, t.CommitTS = query.ReadYourWrites, &ts }))
		require.Equal(t, "p", route.Decide(in).Cluster, unit)
	}
}

func quarantined(on bool, at time.Time) func(*route.Input) {
	return func(in *route.Input) {
		in.Latches = map[string]policy.Latch{"p_quarantined": {Known: true, On: on, Since: at, At: at}}
	}
}
