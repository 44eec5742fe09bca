package scaler_test

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	driver "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/embedded/chdb"
	"github.com/pointsman/pointsman/pkg/embedded/chdb/chdbtest"
	"github.com/pointsman/pointsman/pkg/embedded/cluster"
	"github.com/pointsman/pointsman/pkg/probe"
	"github.com/pointsman/pointsman/pkg/signal"
	"github.com/pointsman/pointsman/pkg/telemetry/telemetrytest"
	"github.com/pointsman/pointsman/services/scaler"
)

// realPool is a pool that is the ClickHouse engine in a child process.
type realPool struct {
	cfg chdb.Config

	mu     sync.Mutex
	engine *chdb.Engine
}

func (p *realPool) Start(ctx context.Context) error {
	e, err := chdb.Start(ctx, p.cfg)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.engine = e
	return nil
}

func (p *realPool) Stop(ctx context.Context) error {
	p.mu.Lock()
	e := p.engine
	p.engine = nil
	p.mu.Unlock()
	if e == nil {
		return nil
	}
	return e.Stop(ctx)
}

func (p *realPool) running() *chdb.Engine {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.engine
}

// The whole way with a real engine: asleep, woken by a decision, not ready while the canary's table is missing, ready,
// held by a query that runs, asleep again.
func TestARealEngine(t *testing.T) {
	library := chdbtest.Library(t)
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := free.Addr().String()
	require.NoError(t, free.Close())
	real := &realPool{cfg: chdb.Config{Name: "batch", Addr: addr, DataDir: t.TempDir(), LibPath: library, Logger: telemetrytest.Logger(t)}}

	b := prepare(t, func(c *scaler.Config) {
		c.Pools[0].Engine.URL = "http://" + addr
		c.Pools[0].Engine.Canary = "SELECT count() FROM lake.nation"
		c.Pools[0].Probe.Limits = probe.DefaultLimits
	})
	none := int32(0)
	server, err := cluster.New(cluster.Options{Resync: 10 * time.Millisecond, Groups: []cluster.Group{{UniqueID: "cg-batch", Replicas: &none, Runner: real}}})
	require.NoError(t, err)
	require.NoError(t, server.Start(t.Context()))
	t.Cleanup(func() { require.NoError(t, server.Stop(context.Background())) })
	b.kube, b.cfg.Kube.URL = server, server.URL()

	tel, _ := telemetrytest.New(t, "scaler")
	b.app, err = scaler.New(t.Context(), b.cfg, tel, scaler.Options{})
	require.NoError(t, err)
	require.NoError(t, b.app.Start(t.Context()))
	t.Cleanup(func() { require.NoError(t, b.app.Stop(context.Background())) })
	b.eventually(b.app.Leads, "it leads")

	b.decide("x", 1, "batch")
	b.eventually(func() bool { return b.stuck() == "canary" }, "the engine answers, its storage does not hold the table")
	require.False(t, b.says(signal.Ready, 1))
	conn := chdbtest.Open(t, real.running())
	require.NoError(t, conn.Exec(t.Context(), "CREATE DATABASE lake"))
	require.NoError(t, conn.Exec(t.Context(), "CREATE TABLE lake.nation (n UInt8) ENGINE = MergeTree ORDER BY n"))
	b.eventually(func() bool { return b.says(signal.Ready, 1) }, "ready")
	wake, known := b.latest().Values[signal.WakeMs].Get()
	require.True(t, known)
	require.Greater(t, wake, 10.0)

	ctx, cancel := context.WithCancel(driver.Context(t.Context(), driver.WithQueryID("somebody-elses")))
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = conn.Exec(ctx, "SELECT sleepEachRow(0.5) FROM numbers(20) SETTINGS max_block_size = 1 FORMAT Null")
	}()
	b.end("x")
	b.steadily(func() bool { return real.running() != nil }, time.Second, "a query that did not come through us holds the pool")
	cancel()
	<-done
	b.eventually(func() bool { return b.replicas() == 0 && real.running() == nil }, "asleep")
}
