package check_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/pointsman/pointsman/pkg/embedded/chdb"
	"github.com/pointsman/pointsman/pkg/embedded/chdb/chdbtest"
	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/engine/flightsql/flightsqltest"
	"github.com/pointsman/pointsman/pkg/engines"
	"github.com/pointsman/pointsman/services/executor/check"
)

func TestMain(m *testing.M) {
	chdb.MaybeRunChild()
	goleak.VerifyTestMain(m)
}

func open(t *testing.T, url string) engine.Engine {
	t.Helper()
	e, err := engines.Open(engines.Config{Name: "x", Kind: "clickhouse", URL: url, Queries: 2})
	require.NoError(t, err)
	t.Cleanup(func() { _ = e.Close() })
	return e
}

func options() check.Options {
	return check.Options{Kind: "clickhouse", ID: "check", Gone: time.Second, Each: 8 * time.Second}
}

func byName(findings []check.Finding) map[string]check.Finding {
	out := map[string]check.Finding{}
	for _, f := range findings {
		out[f.Check] = f
	}
	return out
}

func TestAGoodEngine(t *testing.T) {
	e := chdbtest.Start(t, chdb.Config{Name: "good"})
	began := time.Now()
	findings := check.Run(t.Context(), open(t, e.URL()), options())
	require.Less(t, time.Since(began), time.Minute)
	require.True(t, check.Good(findings))
	for _, f := range findings {
		require.Equal(t, check.OK, f.Status, "%s: %s", f.Check, f.Detail)
	}
	require.Len(t, findings, len(check.Names())-1) // there are no settings to try
	found := byName(findings)
	require.Contains(t, found["find"].Detail, "progress: rows, bytes, memory")
	require.Contains(t, found["error"].Detail, "60 UNKNOWN_TABLE")
	require.Contains(t, found["memory limit"].Detail, "241")
	require.Contains(t, found["observe"].Detail, "running")
}

func TestAnEngineThatIsDown(t *testing.T) {
	findings := check.Run(t.Context(), open(t, "http://127.0.0.1:1"), options())
	require.False(t, check.Good(findings))
	found := byName(findings)
	require.Equal(t, check.Failed, found["connect"].Status)
	require.Equal(t, check.Skipped, found["submit"].Status)
	require.Equal(t, "needs connect", found["submit"].Detail)
	require.Equal(t, check.Skipped, found["cancel"].Status)
}

// lying is an engine that says what it does not do.
type lying struct {
	engine.Engine
	how string
}

func (l lying) Kill(ctx context.Context, id string) (bool, error) {
	if l.how == "kills nothing" {
		return true, nil
	}
	return l.Engine.Kill(ctx, id)
}

func (l lying) Canary(ctx context.Context) error {
	if l.how == "no storage" {
		return errors.New("the storage does not answer")
	}
	return l.Engine.Canary(ctx)
}

func (l lying) Submit(ctx context.Context, q engine.Query) (engine.Rows, error) {
	switch l.how {
	case "no limits":
		q.MaxExecution, q.MaxMemoryBytes = 0, 0
	case "no guard":
		q.SubmitBefore = time.Time{}
	}
	return l.Engine.Submit(ctx, q)
}

func TestWhatDoesNotWorkIsFound(t *testing.T) {
	e := chdbtest.Start(t, chdb.Config{Name: "lying"})
	for how, failed := range map[string][]string{
		"no storage":    {"canary"},
		"kills nothing": {"cancel"},
		"no limits":     {"time limit", "memory limit"},
		"no guard":      {"guard"},
	} {
		opts := options()
		opts.ID, opts.Each = "lying "+how, 3*time.Second
		findings := check.Run(t.Context(), lying{open(t, e.URL()), how}, opts)
		var got []string
		for _, f := range findings {
			if f.Status == check.Failed {
				got = append(got, f.Check)
				require.NotEmpty(t, f.Detail)
			}
		}
		require.Equal(t, failed, got, how)
		require.False(t, check.Good(findings))
	}
}

// A setting that the engine does not know shows only when a query has it, so each variant gets one.
func TestSettings(t *testing.T) {
	e := open(t, chdbtest.Start(t, chdb.Config{Name: "settings"}).URL())
	opts := options()
	opts.Variants = map[string]check.Variant{
		"queue small":   {Settings: map[string]string{"max_threads": "1"}},
		"resources big": {Settings: map[string]string{"max_threads": "2"}, MaxMemory: 1 << 30},
	}
	found := byName(check.Run(t.Context(), e, opts))["settings"]
	require.Equal(t, check.OK, found.Status, found.Detail)
	require.Equal(t, "taken: queue small, resources big", found.Detail)

	opts.ID = "bad settings"
	opts.Variants["queue bad"] = check.Variant{Settings: map[string]string{"no_such_setting": "1"}}
	findings := check.Run(t.Context(), e, opts)
	require.False(t, check.Good(findings))
	found = byName(findings)["settings"]
	require.Equal(t, check.Failed, found.Status)
	require.Regexp(t, `^queue bad: .*no_such_setting`, found.Detail)
	require.NotContains(t, found.Detail, "queue small")
}

// slowly answers everything, and as late as it may.
type slowly struct {
	engine.Engine
	takes time.Duration
}

func (s slowly) Canary(ctx context.Context) error {
	select {
	case <-time.After(s.takes):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func TestAllOfThemAreBounded(t *testing.T) {
	e := slowly{open(t, chdbtest.Start(t, chdb.Config{Name: "slow"}).URL()), time.Minute}
	opts := options()
	opts.Each = 200 * time.Millisecond
	require.Contains(t, byName(check.Run(t.Context(), e, opts))["canary"].Detail, "no answer within 200ms")

	opts = options()
	ctx, stop := context.WithTimeoutCause(t.Context(), 300*time.Millisecond, errors.New("there was no time left for it"))
	defer stop()
	began := time.Now()
	found := byName(check.Run(ctx, e, opts))
	require.Less(t, time.Since(began), opts.Each)
	require.Equal(t, check.OK, found["connect"].Status)
	require.Equal(t, check.Failed, found["canary"].Status)
	require.Equal(t, check.Skipped, found["observe"].Status)
	require.Equal(t, "there was no time left for it", found["observe"].Detail)
	require.Equal(t, check.Skipped, found["cancel"].Status)
}

// Flight SQL is a protocol: what is behind it is not known, and how much it can be asked is its own.
func TestFlightSQL(t *testing.T) {
	behind := chdbtest.Start(t, chdb.Config{Name: "flight"}).URL()
	for _, c := range []struct {
		name    string
		server  flightsqltest.Config
		skipped []string
	}{
		{"with the actions", flightsqltest.Config{Engine: behind}, []string{"memory limit"}},
		{"without", flightsqltest.Config{Engine: behind, Plain: true}, []string{"find", "memory limit"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			e, err := engines.Open(engines.Config{Name: "x", Kind: "flightsql", URL: "grpc://" + flightsqltest.Start(t, c.server).Addr(), Queries: 2})
			require.NoError(t, err)
			t.Cleanup(func() { _ = e.Close() })
			opts := options()
			opts.Kind, opts.Gone = "flightsql", 5*time.Second // its slow query is one that computes, which on a busy machine ends late
			var skipped []string
			for _, f := range check.Run(t.Context(), e, opts) {
				require.NotEqual(t, check.Failed, f.Status, "%s: %s", f.Check, f.Detail)
				if f.Status == check.Skipped {
					skipped = append(skipped, f.Check)
					require.NotEmpty(t, f.Detail)
				}
				t.Logf("%-12s %-7s %5d ms  %s", f.Check, f.Status, f.Ms, f.Detail)
			}
			require.Equal(t, c.skipped, skipped)
		})
	}
}

// An engine of a kind that nobody has statements for is checked as far as the port goes.
func TestAnUnknownKind(t *testing.T) {
	e := chdbtest.Start(t, chdb.Config{Name: "unknown"})
	opts := options()
	opts.Kind = "new"
	findings := check.Run(t.Context(), open(t, e.URL()), opts)
	require.True(t, check.Good(findings))
	found := byName(findings)
	require.Equal(t, check.OK, found["submit"].Status)
	for _, name := range []string{"types", "find", "cancel", "time limit", "memory limit"} {
		require.Equal(t, check.Skipped, found[name].Status, name)
		require.NotEmpty(t, found[name].Detail, name)
	}
}
