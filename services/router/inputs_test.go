package router

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/pointsman/pointsman/pkg/query"
	"github.com/pointsman/pointsman/pkg/route"
	"github.com/pointsman/pointsman/pkg/signal"
	"github.com/pointsman/pointsman/pkg/stream"
)

// keeper is an inputs whose broker answers with an error, with the counts of what became of the records.
func keeper(t *testing.T, now *time.Time, writes *int, answer error) (*inputs, func() map[string]int) {
	reg := prometheus.NewRegistry()
	i := &inputs{
		cfg: stream.DefaultConfig(), log: slog.New(slog.DiscardHandler), metrics: newMetrics(reg), clock: func() time.Time { return *now }, on: true,
		write: func(_ context.Context, recs ...*kgo.Record) func() error {
			*writes += len(recs)
			return func() error { return answer }
		},
	}
	return i, func() map[string]int {
		families, err := reg.Gather()
		require.NoError(t, err)
		out := map[string]int{}
		for _, f := range families {
			for _, m := range f.GetMetric() {
				if f.GetName() == "pointsman_router_inputs_total" && m.GetCounter().GetValue() > 0 {
					out[m.GetLabel()[0].GetValue()] = int(m.GetCounter().GetValue())
				}
			}
		}
		return out
	}
}

func TestAnInputThatCantBeKeptHoldsUpNoDecision(t *testing.T) {
	recs := []*kgo.Record{{}, {}, {}}
	for name, c := range map[string]struct {
		answer error
		want   map[string]int
	}{
		"all kept":      {nil, map[string]int{"written": 3}},
		"one too large": {errors.Join(fmt.Errorf("writing: %w", stream.ErrTooLarge)), map[string]int{"written": 2, "too_large": 1}},
		"all refused":   {errors.Join(errors.New("a"), errors.New("b"), errors.New("c")), map[string]int{"failed": 3}},
	} {
		t.Run(name, func(t *testing.T) {
			now, writes := time.Now(), 0
			i, counted := keeper(t, &now, &writes, c.answer)
			require.NoError(t, i.start(t.Context(), recs)())
			require.Equal(t, c.want, counted())
			require.NoError(t, i.start(t.Context(), nil)(), "a batch without inputs asks nobody")
			require.Equal(t, 3, writes)
		})
	}
}

// Each write to a topic that is not there takes seconds: one is enough for a while.
func TestAMissingTopicIsNotAskedForEachBatch(t *testing.T) {
	now, writes := time.Now(), 0
	i, counted := keeper(t, &now, &writes, errors.Join(fmt.Errorf("writing to inputs: %w", kerr.UnknownTopicOrPartition), kerr.UnknownTopicOrPartition))
	recs := []*kgo.Record{{}, {}}
	require.NoError(t, i.start(t.Context(), recs)())
	require.NoError(t, i.start(t.Context(), recs)())
	require.Equal(t, 2, writes)
	require.Equal(t, map[string]int{"failed": 2, "skipped": 2}, counted())
	now = now.Add(inputsPause + time.Second)
	require.NoError(t, i.start(t.Context(), recs)())
	require.Equal(t, 4, writes, "somebody may have made the topic since")
}

// The batch is not done while it is not known whether its inputs are written: it is read again.
func TestAnEndedContextLeavesTheBatchOpen(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	now, writes := time.Now(), 0
	i, counted := keeper(t, &now, &writes, fmt.Errorf("%w: %w", stream.ErrUnconfirmed, context.Canceled))
	require.ErrorIs(t, i.start(ctx, []*kgo.Record{{}})(), stream.ErrUnconfirmed)
	require.Empty(t, counted())
}

func TestEncodeInput(t *testing.T) {
	now, writes := time.Now(), 0
	i, counted := keeper(t, &now, &writes, nil)
	in := &route.Input{Task: query.Task{ID: "t", SQL: "SELECT 1"}, Attempt: 2, Now: now, Signals: signal.Snapshot{}}
	rec, ok := i.encode(in, &kgo.Record{})
	require.True(t, ok)
	env, err := stream.Decode(rec, stream.Rules{})
	require.NoError(t, err)
	require.Equal(t, "t/2", env.ID)
	require.True(t, now.Equal(env.Time))
	in.Signals = signal.Snapshot{"c": {signal.Queued: signal.Of(3, signal.Count, "s", now)}}
	for range 2 { // the second time from what was written before
		rec, ok = i.encode(in, &kgo.Record{})
		require.True(t, ok)
		var back route.Input
		require.NoError(t, back.UnmarshalJSON(rec.Value))
		require.Equal(t, "3", back.Signals["c"][signal.Queued].String())
	}
	in.Signals = signal.Snapshot{"c": {signal.Queued: signal.Of(4, signal.Count, "s", now)}}
	rec, ok = i.encode(in, &kgo.Record{})
	require.True(t, ok)
	require.Contains(t, string(rec.Value), `"value":4`, "another snapshot is another text")
	_, ok = i.encode(nil, &kgo.Record{})
	require.False(t, ok, "a decision that no policy made has none")
	in.Task.Intent = []byte("not JSON")
	_, ok = i.encode(in, &kgo.Record{})
	require.False(t, ok)
	require.Equal(t, map[string]int{"failed": 1}, counted())
	i.on = false
	in.Task.Intent = nil
	_, ok = i.encode(in, &kgo.Record{})
	require.False(t, ok)
}
