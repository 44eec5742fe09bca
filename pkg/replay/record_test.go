package replay_test

import (
	"fmt"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/policy"
	"github.com/pointsman/pointsman/pkg/profile"
	"github.com/pointsman/pointsman/pkg/query"
	"github.com/pointsman/pointsman/pkg/replay"
	"github.com/pointsman/pointsman/pkg/route"
	"github.com/pointsman/pointsman/pkg/shape"
	"github.com/pointsman/pointsman/pkg/signal"
)

var at = time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)

func load(t require.TestingT, text string) *policy.Policy {
	p, err := policy.Load("test", []byte(text))
	require.NoError(t, err)
	return p
}

// input is a small read by an ordinary tenant, i seconds after the start.
func input(i int, edits ...func(*route.Input)) route.Input {
	now := at.Add(time.Duration(i) * time.Second)
	in := route.Input{
		Task:        query.Task{ID: fmt.Sprintf("t%03d", i), SQL: "SELECT 1 FROM a", Tenant: "blue", SubmittedAt: &now, SLASeconds: new(30.0)},
		Attempt:     1,
		Fingerprint: "pm1-aa", Now: now,
		Shape:     shape.Shape{Statement: shape.Select, ReadOnly: true, JoinTables: 1, Tables: []shape.Table{{Name: "a"}}, Source: shape.FromTokens},
		Estimates: map[string]signal.Value{route.ScanBytes: signal.Of(20e6, signal.Bytes, "catalog", now)},
		History:   profile.Lookup{Asked: true}, Signals: signal.Snapshot{},
	}
	for _, c := range []string{"small", "large"} {
		in.Signals[c] = map[signal.Name]signal.Value{}
		for name, n := range map[signal.Name]float64{signal.Healthy: 1, signal.Ready: 1, signal.Running: 0, signal.Queued: 0, signal.Slots: 4, signal.EstWaitMs: 0} {
			in.Signals[c][name] = signal.Of(n, signal.Count, "test", now)
		}
	}
	for _, e := range edits {
		e(&in)
	}
	return in
}

func bytesOf(n float64) func(*route.Input) {
	return func(in *route.Input) { in.Estimates[route.ScanBytes] = signal.Of(n, signal.Bytes, "catalog", in.Now) }
}

func tenant(name string) func(*route.Input) { return func(in *route.Input) { in.Task.Tenant = name } }

// recorded is an input as it is read back from the log, with its decision and the decision's bytes.
func recorded(t require.TestingT, p *policy.Policy, in route.Input) (route.Input, event.RouteDecision, []byte) {
	in.Policy = p
	d := route.Decide(in)
	raw, err := event.Marshal(d)
	require.NoError(t, err)
	data, err := event.Marshal(in)
	require.NoError(t, err)
	var back route.Input
	require.NoError(t, back.UnmarshalJSON(data))
	var read event.RouteDecision
	require.NoError(t, read.UnmarshalJSON(raw))
	return back, read, raw
}

// options try a policy on what p has decided.
func options(p, with *policy.Policy) replay.Options {
	return replay.Options{Policies: map[string]*policy.Policy{p.Hash: p}, Policy: with}
}

// run replays inputs that p has decided.
func run(t require.TestingT, p *policy.Policy, o replay.Options, inputs ...route.Input) replay.Report {
	r := replay.NewRun(o)
	for _, in := range inputs {
		back, d, raw := recorded(t, p, in)
		r.Decision(raw, d)
		r.Input(back)
	}
	return r.Report()
}
