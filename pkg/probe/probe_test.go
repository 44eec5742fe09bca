package probe_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/probe"
	"github.com/pointsman/pointsman/pkg/signal"
)

type fakeEngine struct {
	values            map[signal.Name]signal.Value
	observeErr        error
	canaryErr         error
	observed, canary  int
	observeTakes, can time.Duration
}

func (e *fakeEngine) Observe(ctx context.Context) (signal.Observation, error) {
	e.observed++
	if err := wait(ctx, e.observeTakes); err != nil {
		return signal.Observation{}, err
	}
	return signal.Observation{Values: e.values}, e.observeErr
}

func (e *fakeEngine) Canary(ctx context.Context) error {
	e.canary++
	if err := wait(ctx, e.can); err != nil {
		return err
	}
	return e.canaryErr
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

var t0 = time.Date(2026, 11, 30, 9, 15, 0, 0, time.UTC)

func known(n float64) signal.Value { return signal.Of(n, signal.Count, "test", t0) }

func healthy() *fakeEngine {
	return &fakeEngine{values: map[signal.Name]signal.Value{signal.Healthy: known(1)}}
}

var up = probe.Pods{Wanted: 2, Available: known(2), Observed: true}

func TestClimb(t *testing.T) {
	long := errors.New(strings.Repeat("x", 1000))
	for _, c := range []struct {
		name    string
		pods    probe.Pods
		engine  *fakeEngine
		ready   bool
		layer   probe.Layer
		verdict probe.Verdict
		reason  string
	}{
		{"all pass", up, healthy(), true, "", "", ""},
		{"one pod of two is enough", probe.Pods{Wanted: 2, Available: known(1), Observed: true}, healthy(), true, "", "", ""},
		{"asleep", probe.Pods{Available: known(0), Observed: true}, healthy(), false, probe.ControlPlane, probe.Failed, "no replicas are wanted"},
		{"pods pending", probe.Pods{Wanted: 2, Available: known(0), Observed: true}, healthy(), false, probe.ControlPlane, probe.Failed, "0 of 2"},
		{"nobody reported", probe.Pods{Wanted: 2, Observed: true}, healthy(), false, probe.ControlPlane, probe.Unknown, "not reported"},
		{"an old report", probe.Pods{Wanted: 2, Available: known(2)}, healthy(), false, probe.ControlPlane, probe.Unknown, "older one"},
		{"no answer", up, &fakeEngine{observeErr: errors.New("connection refused")}, false, probe.Backends, probe.Failed, "connection refused"},
		{"engine says no", up, &fakeEngine{values: map[signal.Name]signal.Value{signal.Healthy: known(0)}}, false, probe.Backends, probe.Failed, "not healthy"},
		{"engine says nothing", up, &fakeEngine{}, false, probe.Backends, probe.Unknown, "does not say"},
		{"a front end without backends", up, &fakeEngine{values: map[signal.Name]signal.Value{
			signal.Healthy: known(1), signal.ReadyReplicas: known(0),
		}}, false, probe.Backends, probe.Failed, "no live backend"},
		{"storage out of reach", up, &fakeEngine{values: healthy().values, canaryErr: long}, false, probe.Canary, probe.Failed, strings.Repeat("x", 300)},
		{"engine too slow", up, &fakeEngine{observeTakes: time.Hour}, false, probe.Backends, probe.Unknown, "deadline exceeded"},
		{"canary too slow", up, &fakeEngine{values: healthy().values, can: time.Hour}, false, probe.Canary, probe.Unknown, "deadline exceeded"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				report := probe.New(c.engine, probe.DefaultLimits).Climb(t.Context(), c.pods)
				require.Len(t, report.Checks, 3)
				require.Equal(t, c.ready, report.Ready())
				stuck, isStuck := report.Stuck()
				require.NotEqual(t, c.ready, isStuck)
				require.Equal(t, c.layer, stuck.Layer)
				require.Equal(t, c.verdict, stuck.Verdict)
				require.Contains(t, stuck.Reason, c.reason)
				require.LessOrEqual(t, len(stuck.Reason), 400)
			})
		})
	}
}

func TestALaterLayerIsNotAsked(t *testing.T) {
	engine := healthy()
	report := probe.New(engine, probe.DefaultLimits).Climb(t.Context(), probe.Pods{Wanted: 1, Available: known(0), Observed: true})
	require.Zero(t, engine.observed)
	require.Zero(t, engine.canary)
	require.Equal(t, probe.Unknown, report.Of(probe.Canary).Verdict)
	require.Contains(t, report.Of(probe.Canary).Reason, "control_plane")

	engine.values[signal.Healthy] = known(0)
	probe.New(engine, probe.DefaultLimits).Climb(t.Context(), up)
	require.Equal(t, 1, engine.observed)
	require.Zero(t, engine.canary)
}

func TestLoadIsKept(t *testing.T) {
	engine := healthy()
	engine.values[signal.Running] = known(3)
	report := probe.New(engine, probe.DefaultLimits).Climb(t.Context(), up)
	running, ok := report.Load.Values[signal.Running].Get()
	require.True(t, ok)
	require.EqualValues(t, 3, running)
}

func TestNothingAskedIsNotReady(t *testing.T) {
	require.False(t, probe.Report{}.Ready())
	require.Equal(t, probe.Unknown, probe.Report{}.Of(probe.Backends).Verdict)
}

func TestLimitsAreChecked(t *testing.T) {
	require.NoError(t, probe.DefaultLimits.Validate())
	require.Error(t, probe.Limits{}.Validate())
}
