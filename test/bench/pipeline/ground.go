package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/pointsman/pointsman/loadgen/tpch"
	"github.com/pointsman/pointsman/pkg/embedded/broker"
	"github.com/pointsman/pointsman/pkg/embedded/chdb"
	"github.com/pointsman/pointsman/pkg/history"
	"github.com/pointsman/pointsman/pkg/history/migrate"
	"github.com/pointsman/pointsman/pkg/stream"
	"github.com/pointsman/pointsman/pkg/stream/topicadmin"
	"github.com/pointsman/pointsman/test/real/kafka"
)

// ground is what both sides stand on: one broker, one history, the lakehouse's tables.
type ground struct {
	brokers  []string
	dir      string
	engine   *chdb.Engine
	specs    []topicadmin.Spec
	progress io.Writer
	profiles string

	mu       sync.Mutex
	profiled int
	closers  []func() error
}

// heldBytes is what the embedded broker may keep: a round of either side must not lose a record to retention.
const heldBytes = 4 << 30

func newGround(ctx context.Context, o options, progress io.Writer) (_ *ground, err error) {
	g := &ground{progress: progress, profiles: o.profile}
	defer func() {
		if err != nil {
			err = errors.Join(err, g.close())
		}
	}()
	if g.dir, err = os.MkdirTemp("", "pointsman-bench-"); err != nil {
		return nil, fmt.Errorf("making a folder: %w", err)
	}
	g.onClose(func() error { return os.RemoveAll(g.dir) })
	if g.profiles != "" {
		if err = os.MkdirAll(g.profiles, 0o755); err != nil {
			return nil, fmt.Errorf("making the folder of the profiles: %w", err)
		}
	}
	if g.specs, err = topicadmin.Specs(); err != nil {
		return nil, err
	}
	if len(o.only) == 1 && o.only[0] == "memory" {
		return g, nil // it brings everything along
	}
	if err = g.startBroker(ctx, o.real); err != nil {
		return nil, err
	}
	if _, err = tpch.Generate(ctx, tpch.Options{Dir: g.lake(), Scale: 0.01, Seed: 1}); err != nil {
		return nil, fmt.Errorf("generating the tables: %w", err)
	}
	g.engine, err = chdb.Start(ctx, chdb.Config{Name: "history", DataDir: filepath.Join(g.dir, "history"), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, fmt.Errorf("starting the history's engine: %w", err)
	}
	g.onClose(func() error { return g.engine.Stop(context.WithoutCancel(ctx)) })
	return g, nil
}

func (g *ground) startBroker(ctx context.Context, real bool) error {
	if real {
		t := &outside{dir: g.dir}
		g.onClose(t.end)
		return t.do(func() { g.brokers = kafka.Start(t, kafka.Options{Brokers: 1}).Addrs() })
	}
	cfg := broker.Default()
	cfg.Addr, cfg.MaxBytes = "127.0.0.1:0", heldBytes
	b, err := broker.Start(ctx, cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	g.brokers = b.Addrs()
	g.onClose(func() error { return b.Stop(context.WithoutCancel(ctx)) })
	return nil
}

func (g *ground) onClose(f func() error) { g.closers = append(g.closers, f) }

func (g *ground) close() error {
	var errs []error
	for _, f := range slices.Backward(g.closers) {
		errs = append(errs, f())
	}
	g.closers = nil
	return errors.Join(errs...)
}

func (g *ground) lake() string { return filepath.Join(g.dir, "lake") }

func (g *ground) say(format string, args ...any) {
	_, _ = fmt.Fprintf(g.progress, format+"\n", args...)
}

// history makes a database with the schema up.
func (g *ground) history(ctx context.Context, database string) (history.Config, error) {
	cfg := history.Config{Addr: []string{g.engine.Addr()}, Database: database}.WithDefaults()
	if _, err := migrate.Up(ctx, cfg); err != nil {
		return cfg, fmt.Errorf("making the schema of %s: %w", database, err)
	}
	return cfg, nil
}

func (g *ground) dropHistory(ctx context.Context, cfg history.Config) error {
	db, err := history.Open(history.Config{Addr: cfg.Addr, Database: "default"})
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	return db.Conn().Exec(ctx, "DROP DATABASE IF EXISTS "+cfg.Database)
}

// topics are a set of pointsman's topics under a prefix of their own, as `pointsman topics apply` makes them.
type topics struct {
	stream.Config
	ground *ground
}

func (g *ground) topics(ctx context.Context, prefix string) (topics, error) {
	t := topics{Config: stream.DefaultConfig(), ground: g}
	t.Brokers, t.Prefix = g.brokers, prefix+"."
	if _, err := topicadmin.Apply(ctx, t.Config, stream.Deps{}, g.specs, topicadmin.Options{}); err != nil {
		return t, fmt.Errorf("making the topics: %w", err)
	}
	return t, nil
}

// of is the configuration of one service.
func (t topics) of(service string) stream.Config {
	cfg := t.Config
	cfg.ClientID = "pointsman-" + service
	return cfg
}

func (t topics) client(opts ...kgo.Opt) (*kgo.Client, error) {
	base := []kgo.Opt{
		kgo.SeedBrokers(t.Brokers...), kgo.ClientID("plain"), kgo.ProducerBatchMaxBytes(4 << 20),
		kgo.ProducerBatchCompression(kgo.SnappyCompression()), kgo.MaxBufferedRecords(1 << 20), kgo.DisableClientMetrics(),
	}
	cl, err := kgo.NewClient(append(base, opts...)...)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	return cl, nil
}

// drop deletes the topics, so that the next round finds the memory that this one found.
func (t topics) drop(ctx context.Context) error {
	cl, err := t.client()
	if err != nil {
		return err
	}
	defer cl.Close()
	names := make([]string, len(t.ground.specs))
	for i, s := range t.ground.specs {
		names[i] = t.Topic(s.Name)
	}
	resp, err := kadm.NewClient(cl).DeleteTopics(ctx, names...)
	if err == nil {
		err = resp.Error()
	}
	if err != nil {
		return fmt.Errorf("deleting the topics: %w", err)
	}
	runtime.GC()
	return nil
}

// profiling profiles until the returned function is called, if profiles are wanted.
func (g *ground) profiling(name string) (stop func(), err error) {
	if g.profiles == "" {
		return func() {}, nil
	}
	g.mu.Lock()
	g.profiled++
	base := filepath.Join(g.profiles, fmt.Sprintf("%s-%02d", name, g.profiled))
	g.mu.Unlock()
	f, err := os.Create(base + ".cpu")
	if err != nil {
		return nil, fmt.Errorf("profiling: %w", err)
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, errors.Join(fmt.Errorf("profiling: %w", err), f.Close())
	}
	return func() {
		pprof.StopCPUProfile()
		_ = f.Close()
		if f, err := os.Create(base + ".allocs"); err == nil {
			_ = pprof.Lookup("allocs").WriteTo(f, 0)
			_ = f.Close()
		}
	}, nil
}

// every calls f at once and then at intervals, until the returned function is called, which gives the first error.
func every(ctx context.Context, interval time.Duration, f func(context.Context) error) (stop func() error) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		tick := time.NewTicker(interval)
		defer tick.Stop()
		var first error
		for {
			if err := f(ctx); err != nil && ctx.Err() == nil && first == nil {
				first = err
			}
			select {
			case <-ctx.Done():
				ended <- first
				return
			case <-tick.C:
			}
		}
	}()
	return func() error {
		cancel()
		return <-ended
	}
}
