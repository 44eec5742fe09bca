package watch_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/signal"
	"github.com/pointsman/pointsman/pkg/stream"
	"github.com/pointsman/pointsman/pkg/stream/streamtest"
	"github.com/pointsman/pointsman/services/executor/watch"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var at = time.Date(2026, 11, 30, 9, 15, 0, 0, time.UTC)

func seen(source string, when time.Time, facts map[signal.Name]float64) signal.Observation {
	o := signal.Observation{Cluster: "batch", Source: source, At: when, Values: map[signal.Name]signal.Value{}}
	for name, n := range facts {
		o.Values[name] = signal.Of(n, signal.Count, source, when)
	}
	return o
}

func TestAsleep(t *testing.T) {
	for _, c := range []struct {
		name string
		seen []signal.Observation
		now  time.Time
		want bool
	}{
		{"nobody says anything", nil, at, false},
		{"asleep at zero", []signal.Observation{seen("scaler", at, map[signal.Name]float64{signal.Ready: 0, signal.Replicas: 0})}, at, true},
		{"waking", []signal.Observation{seen("scaler", at, map[signal.Name]float64{signal.Ready: 0, signal.Replicas: 2})}, at, true},
		{"awake", []signal.Observation{seen("scaler", at, map[signal.Name]float64{signal.Ready: 1, signal.Replicas: 2})}, at, false},
		{"down, and nobody can wake it", []signal.Observation{seen("engine", at, map[signal.Name]float64{signal.Ready: 0})}, at, false},
		{"what was seen is old", []signal.Observation{seen("scaler", at, map[signal.Name]float64{signal.Ready: 0, signal.Replicas: 0})}, at.Add(time.Minute), false},
		{"ready is not known", []signal.Observation{seen("scaler", at, map[signal.Name]float64{signal.Replicas: 0})}, at, false},
		{"it woke up", []signal.Observation{
			seen("scaler", at, map[signal.Name]float64{signal.Ready: 0, signal.Replicas: 0}),
			seen("scaler", at.Add(time.Second), map[signal.Name]float64{signal.Ready: 1}),
		}, at.Add(time.Second), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := watch.New(30 * time.Second)
			for _, o := range c.seen {
				w.Observe(o)
			}
			require.Equal(t, c.want, w.Asleep("batch", c.now))
			require.False(t, w.Asleep("other", c.now))
		})
	}
}

func TestReadsTheTopic(t *testing.T) {
	broker := streamtest.Start(t)
	broker.Topic(t, event.TopicSignals, 2, map[string]string{"cleanup.policy": "compact"})
	producer, err := stream.NewProducer(broker.Config, broker.Deps, "scaler")
	require.NoError(t, err)
	defer producer.Close()
	send := func(o signal.Observation) {
		data, err := json.Marshal(o)
		require.NoError(t, err)
		require.NoError(t, producer.Send(t.Context(), stream.Message{
			Topic: event.TopicSignals, Key: o.Cluster + "/" + o.Source, Type: event.ClusterObserved, ID: "x", Data: data,
		}))
	}
	now := time.Now()
	require.NoError(t, producer.Write(t.Context(), &kgo.Record{Topic: event.TopicSignals, Key: []byte("x"), Value: []byte("no JSON")}))
	send(seen("scaler", now, map[signal.Name]float64{signal.Ready: 0, signal.Replicas: 0}))

	w := watch.New(time.Minute)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx, broker.Config, broker.Deps) }()
	asleep := func() bool { return w.Asleep("batch", time.Now()) }
	require.Eventually(t, asleep, 10*time.Second, 10*time.Millisecond)

	changed := w.Changed()
	send(seen("scaler", now.Add(time.Millisecond), map[signal.Name]float64{signal.Ready: 1}))
	select {
	case <-changed:
	case <-time.After(10 * time.Second):
		t.Fatal("nobody was woken")
	}
	require.False(t, asleep())
	cancel()
	require.NoError(t, <-ended)
}

func TestATopicThatIsMadeAnewIsReadAgain(t *testing.T) {
	broker := streamtest.Start(t)
	broker.Topic(t, event.TopicSignals, 1, nil)
	w := watch.New(time.Hour)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx, broker.Config, broker.Deps) }()
	send := func(ready float64) {
		data, err := json.Marshal(seen("scaler", time.Now(), map[signal.Name]float64{signal.Ready: ready, signal.Replicas: 1}))
		require.NoError(t, err)
		producer, err := stream.NewProducer(broker.Config, broker.Deps, "scaler") // one that knows the topic as it is now
		require.NoError(t, err)
		defer producer.Close()
		require.NoError(t, producer.Send(t.Context(), stream.Message{
			Topic: event.TopicSignals, Key: "batch/scaler", Type: event.ClusterObserved, ID: "x", Data: data,
		}))
	}
	asleep := func() bool { return w.Asleep("batch", time.Now()) }
	send(0)
	require.Eventually(t, asleep, 10*time.Second, 10*time.Millisecond)
	_, err := kadm.NewClient(broker.Client(t)).DeleteTopics(t.Context(), event.TopicSignals)
	require.NoError(t, err)
	broker.Topic(t, event.TopicSignals, 1, nil)
	send(1)
	require.Eventually(t, func() bool { return !asleep() }, 20*time.Second, 10*time.Millisecond, "the pool is awake, and nobody hears of it")
	cancel()
	require.NoError(t, <-ended)
}

// A broker that was never reached is tried again every second, and said to be away once.
func TestABrokerThatIsAwayIsSaidOnce(t *testing.T) {
	var said lines
	deps := stream.Deps{Log: stream.Calm(slog.New(slog.NewTextHandler(&said, nil)))}
	cfg := stream.DefaultConfig()
	cfg.Brokers = []string{"127.0.0.1:1"}
	ctx, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond) // for three tries
	defer cancel()
	require.NoError(t, watch.New(time.Minute).Run(ctx, cfg, deps))
	require.Equal(t, 1, strings.Count(said.String(), "reading signals; starting anew"), said.String())
}

// lines is a log that several goroutines write to.
type lines struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
