package route_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/profile"
	"github.com/pointsman/pointsman/pkg/route"
	"github.com/pointsman/pointsman/pkg/signal"
)

// runs gives the fingerprint a history on a cluster, with parameters of one size.
func runs(cluster, bucket string, n int64, p50 float64, edit func(*profile.Profile)) func(*route.Input) {
	return func(in *route.Input) {
		key := profile.Key{Fingerprint: in.Fingerprint, Engine: "clickhouse", Cluster: cluster, Bucket: bucket}
		p := profile.Profile{Key: key, Window: "7d", Runs: n, Successes: n, ExecMsP50: &p50, ExecMsP95: new(1.5 * p50)}
		if edit != nil {
			edit(&p)
		}
		if in.History.Found == nil {
			in.History.Found = map[profile.Key]profile.Profile{}
		}
		in.History.Found[key] = p
	}
}

func TestEstimatesOfACandidate(t *testing.T) {
	type edit = func(*route.Input)
	for _, c := range []struct {
		name     string
		in       []edit
		evidence event.Evidence
		execMs   float64
		check    func(t *testing.T, e *event.CandidateEstimate)
	}{
		{"no history", nil, event.Evidence{Level: "prior"}, 151, nil},
		{"its own", []edit{runs("interactive", "", 1000, 200, nil)}, event.Evidence{Level: "fingerprint", N: 1000, Window: "7d"}, 207, nil},
		{
			"with parameters of this size",
			[]edit{runs("interactive", "", 1000, 200, nil), runs("interactive", "1e9", 500, 8000, nil), func(in *route.Input) { in.Bucket = "1e9" }},
			event.Evidence{Level: "bucket", N: 500, Window: "7d"},
			8026, nil,
		},
		{
			"a size that nobody has asked for",
			[]edit{runs("interactive", "", 1000, 200, nil), runs("interactive", "1e9", 500, 8000, nil), func(in *route.Input) { in.Bucket = "1e3" }},
			event.Evidence{Level: "fingerprint", N: 1000, Window: "7d"},
			207, nil,
		},
		{
			"elsewhere, at 60 % of the speed", []edit{runs("batch", "", 1000, 2167, nil)}, // ten times what is assumed of batch
			event.Evidence{Level: "engine", N: 1000, Window: "7d"}, 1224, nil,
		},
		{
			"stopped for their time: no failures, but long runs",
			[]edit{runs("interactive", "", 10, 200, func(p *profile.Profile) {
				p.Runs, p.TimeStops, p.TimeStopMs = 20, 10, new(float64(5000))
			})},
			event.Evidence{Level: "fingerprint", N: 10, Window: "7d"},
			5130, func(t *testing.T, e *event.CandidateEstimate) {
				hit, _ := e.PHit.Get()
				require.InDelta(t, 0.66, hit, 0.15, "about half of them took longer than the SLA")
			},
		},
		{
			"half of them failed",
			[]edit{runs("interactive", "", 100, 200, func(p *profile.Profile) { p.Runs = 200 })},
			event.Evidence{Level: "fingerprint", N: 100, Window: "7d"},
			209, func(t *testing.T, e *event.CandidateEstimate) {
				hit, _ := e.PHit.Get()
				require.InDelta(t, 0.5, hit, 0.01)
				require.InDelta(t, 2*0.209, e.Cost.Or(0), 0.01, "what fails is paid for and runs again")
			},
		},
		{
			"three times as slow as usual",
			[]edit{runs("interactive", "", 1000, 200, nil), set("interactive", map[signal.Name]float64{signal.SlowDown: 3})},
			event.Evidence{Level: "fingerprint", N: 1000, Window: "7d"},
			621, nil,
		},
		{
			"asleep: waking takes time and money",
			[]edit{func(in *route.Input) {
				p := in.Policy
				p.Pools[0].SleepsAtZero = true
			}, set("interactive", map[signal.Name]float64{signal.Ready: 0, signal.WakeMs: 2000})},
			event.Evidence{Level: "prior"},
			151, func(t *testing.T, e *event.CandidateEstimate) {
				require.InDelta(t, 2000, e.AcquireMs.Or(0), 0.01)
				require.InDelta(t, 2.151, e.Cost.Or(0), 0.01)
			},
		},
		{
			"a session and a delivery of their own",
			[]edit{func(in *route.Input) {
				in.Policy = load(t, "engines: {interactive: {kind: clickhouse, startup_ms: 10, bytes_per_second: 100 MB, acquire_ms: 300, delivery_ms: 700}}\nrules: [{name: default, route: auto}]\n")
			}},
			event.Evidence{Level: "prior"},
			151, func(t *testing.T, e *event.CandidateEstimate) {
				require.Equal(t, []float64{300, 700}, []float64{e.AcquireMs.Or(0), e.DeliverMs.Or(0)})
				require.InDelta(t, 1151, e.TotalMs.Or(0), 1)
			},
		},
		{
			"a reflection answers: the raw scan is no measure",
			[]edit{func(in *route.Input) {
				in.Policy = load(t, "engines: {interactive: {kind: clickhouse, startup_ms: 10, bytes_per_second: 100 MB, supports_reflections: true}}\nrules: [{name: default, route: auto}]\n")
				in.Estimates[route.ScanBytes] = signal.Of(1e12, signal.Bytes, "catalog", now)
				in.Estimates[route.ReflectionCovers] = signal.OfFlag(true, "planner", now)
			}},
			event.Evidence{Level: "prior"},
			14, nil,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := route.Decide(input(t, c.in...))
			e := d.Candidates[0].Estimate
			require.NotNil(t, e, route.Explain(d))
			require.Equal(t, c.evidence, e.Evidence)
			require.InEpsilon(t, c.execMs, e.ExecMs.Or(0), 0.06, route.Explain(d))
			if c.check != nil {
				c.check(t, e)
			}
		})
	}
}

// TestAPoolOfUnknownSpeedDoesNotLookQuick: of two pools the one whose scan rate the policy keeps to itself is not the quicker.
func TestAPoolOfUnknownSpeedDoesNotLookQuick(t *testing.T) {
	in := input(t, func(in *route.Input) {
		in.Policy = load(t, "engines:\n  interactive: {kind: clickhouse, bytes_per_second: 100 MB}\n  batch: {kind: spark}\nrules: [{name: default, route: auto}]\n")
		in.Estimates[route.ScanBytes] = signal.Of(1e9, signal.Bytes, "catalog", now)
		in.Task.SLASeconds = new(60.0)
	})
	d := route.Decide(in)
	require.Equal(t, "interactive", d.Cluster, route.Explain(d))
	require.Equal(t, "guess", d.Candidates[1].Estimate.Evidence.Level)
	require.Greater(t, d.Candidates[1].Estimate.ExecMs.Or(0), d.Candidates[0].Estimate.ExecMs.Or(0))
	require.Contains(t, route.Explain(d), "a guess: no history there")
}

// TestWishesAreFollowed where the SLA leaves the choice, in any case of letters, and the resources as well as the engine.
func TestWishesAreFollowed(t *testing.T) {
	for name, c := range map[string]struct{ engine, resource, want string }{
		"nothing": {"", "", "trino/adhoc"}, "an engine": {"Spark", "", "spark"}, "resources": {"", "LARGE", "trino/etl"},
		"both": {"trino", "large", "trino/etl"}, "an engine without these resources": {"spark", "small", "trino/adhoc"},
	} {
		t.Run(name, func(t *testing.T) {
			d := route.Decide(input(t, laned(t), func(in *route.Input) { in.Task.EngineHint, in.Task.ResourceHint = c.engine, c.resource }))
			got := d.Cluster
			if d.Queue != "default" {
				got += "/" + d.Queue
			}
			require.Equal(t, c.want, got, route.Explain(d))
		})
	}
}

func TestAWishThatIsNotFollowedIsAnswered(t *testing.T) {
	asks := func(hint string) func(*route.Input) { return func(in *route.Input) { in.Task.EngineHint = hint } }
	resources := func(hint string) func(*route.Input) { return func(in *route.Input) { in.Task.ResourceHint = hint } }
	large := func(in *route.Input) {
		in.Policy = load(t, "engines:\n  interactive: {kind: clickhouse}\n  batch: {kind: spark, resource: large, cost_per_second: 9}\nrules: [{name: default, route: auto}]\n")
	}
	for name, c := range map[string]struct {
		in   []func(*route.Input)
		says string
	}{
		"no such engine":    {[]func(*route.Input){asks("snowflake")}, "the request asks for snowflake, but the policy has no such engine"},
		"removed":           {[]func(*route.Input){asks("interactive"), set("interactive", map[signal.Name]float64{signal.Ready: 0})}, "but interactive: is not ready"},
		"too slow":          {[]func(*route.Input){asks("batch"), set("batch", map[signal.Name]float64{signal.EstWaitMs: 90_000})}, "but batch meets the SLA less well"},
		"no such resources": {[]func(*route.Input){resources("huge")}, "the request asks for huge, but the policy has no such resources"},
		"two wishes that no place has together": {
			[]func(*route.Input){asks("interactive"), resources("large"), large},
			"the request asks for large, but no place that can take it is all that it asks for",
		},
		"nothing meets the SLA": {[]func(*route.Input){
			asks("batch"), func(in *route.Input) { in.Task.SLASeconds = new(0.021) },
			set("batch", map[signal.Name]float64{signal.EstWaitMs: 90_000}),
		}, "but batch is expected to take longer, and nothing meets the SLA"},
		"by lot": {[]func(*route.Input){exploring(t, "share: 0.5"), asks("a"), func(in *route.Input) {
			for in.Seed = 0; route.Decide(*in).Exploration == nil; {
				in.Seed++
			}
		}}, "the request asks for a, but it goes where the lot has fallen"},
		"against the rule": {[]func(*route.Input){asks("interactive"), func(in *route.Input) { in.Task.Tags = []string{"batch"} }}, "but interactive: rule transformations routes to batch"},
	} {
		t.Run(name, func(t *testing.T) {
			d := route.Decide(input(t, c.in...))
			require.Contains(t, codes(d), string(route.HintNotFollowed))
			require.Contains(t, route.Explain(d), c.says)
		})
	}
}
