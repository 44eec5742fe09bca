package profiler_test

import (
	"context"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/pointsman/pointsman/pkg/config"
	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/telemetry/telemetrytest"
	"github.com/pointsman/pointsman/services/profiler"
)

// door stands before the engine and can be shut: then nobody gets in, and who is in is thrown out.
type door struct {
	listener net.Listener
	upstream string
	mu       sync.Mutex
	shut     bool
	inside   map[net.Conn]bool
	wg       sync.WaitGroup
}

func newDoor(t *testing.T, upstream string) *door {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	d := &door{listener: l, upstream: upstream, inside: map[net.Conn]bool{}}
	d.wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			d.wg.Go(func() { d.serve(c) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		d.set(true)
		d.wg.Wait()
	})
	return d
}

func (d *door) serve(c net.Conn) {
	defer func() { _ = c.Close() }()
	up, err := net.Dial("tcp", d.upstream)
	if err != nil {
		return
	}
	defer func() { _ = up.Close() }()
	d.mu.Lock()
	if d.shut {
		d.mu.Unlock()
		return
	}
	d.inside[c], d.inside[up] = true, true
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.inside, c)
		delete(d.inside, up)
	}()
	d.wg.Go(func() {
		_, _ = io.Copy(up, c)
		_ = up.Close()
	})
	_, _ = io.Copy(c, up)
}

func (d *door) set(shut bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.shut = shut
	if shut {
		for c := range d.inside {
			_ = c.Close()
		}
	}
}

// K14: the history is down under load for longer than the group's patience. Reading stops, memory stays in its bounds, nothing is
// committed, nobody leaves the group, and when the history is back all of it is stored, exactly.
func TestHistoryDownUnderLoad(t *testing.T) {
	const n = 20_000
	b := newBench(t)
	d := newDoor(t, b.history.Addr[0])
	cfg := b.cfg
	cfg.History.Addr = []string{d.listener.Addr().String()}
	cfg.Sink.MaxBytes = 2 * config.MiB
	cfg.Consumer.MaxSpan, cfg.Consumer.MaxPoll = 1000, 500
	cfg.Consumer.SessionTimeout = time.Second
	tel, _ := telemetrytest.New(t, "profiler")
	app, err := profiler.New(t.Context(), cfg, tel)
	require.NoError(t, err)
	require.NoError(t, app.Start(t.Context()))
	t.Cleanup(func() { require.NoError(t, app.Stop(context.Background())) })

	b.live(0, 5)
	b.caughtUp()
	before, generation := b.offsets(), b.generation()
	d.set(true)
	cl := b.broker.Client(t)
	for from := 0; from < n; from += 2000 {
		recs := make([]*kgo.Record, 2000)
		for i := range recs {
			recs[i] = b.record(event.TopicOutcomes, outcome(100+from+i), int32(i%partitions))
		}
		require.NoError(t, cl.ProduceSync(t.Context(), recs...).FirstErr())
	}
	var held float64
	for until := time.Now().Add(4 * time.Second); time.Now().Before(until); time.Sleep(50 * time.Millisecond) {
		held = max(held, gauge(t, tel.Registry, "pointsman_profiler_held_bytes"))
	}
	require.Positive(t, held)
	require.LessOrEqual(t, held, float64(cfg.Sink.MaxBytes))
	require.LessOrEqual(t, gauge(t, tel.Registry, "pointsman_stream_unfinished_records"), float64(partitions*(cfg.Consumer.MaxSpan+cfg.Consumer.MaxPoll)))
	require.Equal(t, before, b.offsets(), "nothing is committed that is not stored")
	require.Equal(t, generation, b.generation(), "nobody left the group, nothing was dealt anew")
	require.False(t, tel.Health.Ready(t.Context()).OK, "a profiler that can't store is not ready")

	d.set(false)
	start := time.Now()
	b.within(2*time.Minute, n+5, "SELECT count() FROM outcomes FINAL")
	b.caughtUp()
	require.EqualValues(t, n+5, b.count("SELECT count() FROM outcomes"), "each was stored once")
	require.EqualValues(t, n+5, b.count("SELECT uniqExact(task_id) FROM outcomes"))
	b.eventually(n+5, "SELECT sum(n30) FROM v_sla_hit_rate")
	t.Logf("drained in %s", time.Since(start))
}

func (b *bench) offsets() map[int32]int64 {
	out := map[int32]int64{}
	for p := range int32(partitions) {
		out[p] = b.broker.Offset(b.t, "profiler", event.TopicOutcomes, p)
	}
	return out
}

func (b *bench) generation() int32 {
	info := b.broker.GroupInfo(b.broker.Config.Group("profiler"))
	require.NotNil(b.t, info)
	return info.Epoch
}

func gauge(t *testing.T, reg *prometheus.Registry, name string) float64 {
	t.Helper()
	families, err := reg.Gather()
	require.NoError(t, err)
	for _, f := range families {
		if f.GetName() == name {
			return f.GetMetric()[0].GetGauge().GetValue()
		}
	}
	t.Fatalf("no metric %s", name)
	return 0
}
