package parts

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/pointsman/pointsman/loadgen/tpch"
	"github.com/pointsman/pointsman/pkg/embedded/broker"
	"github.com/pointsman/pointsman/pkg/embedded/chdb"
	"github.com/pointsman/pointsman/pkg/embedded/cluster"
	"github.com/pointsman/pointsman/pkg/lifecycle"
)

// Parts are the running parts.
type Parts struct {
	*lifecycle.Group
	cfg Config

	Broker      *broker.Broker
	HistoryDB   *chdb.Engine
	Interactive *chdb.Engine
	Batch       *pool
	Cluster     *cluster.Server
	Lake        tpch.Manifest
	lakeViews   []string
}

// Start starts everything and returns when it answers. On an error it stops what it had started.
func Start(ctx context.Context, cfg Config) (_ *Parts, err error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	p := &Parts{Group: lifecycle.NewGroup(lifecycle.Options{}), cfg: cfg}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.Stop(context.WithoutCancel(ctx)))
		}
	}()
	if err := p.library(ctx); err != nil {
		return nil, err
	}
	if err := p.lake(ctx); err != nil {
		return nil, err
	}
	if err := p.broker(ctx); err != nil {
		return nil, err
	}
	if p.HistoryDB, err = p.engine(ctx, chdb.Config{Name: History, Addr: cfg.HistoryAddr}); err != nil {
		return nil, err
	}
	if p.Interactive, err = p.engine(ctx, p.interactive()); err != nil {
		return nil, err
	}
	if err := showLake(ctx, p.Interactive, p.lakeViews); err != nil {
		return nil, err
	}
	return p, p.cluster(ctx)
}

// library makes sure of the engine's library before anything else: a first fetch takes a while, and is shown.
func (p *Parts) library(ctx context.Context) error {
	if p.cfg.LibPath != "" {
		return nil
	}
	show := newProgress(p.cfg.Progress, "fetching the ClickHouse engine", true)
	path, err := chdb.Ensure(ctx, show.update)
	show.done()
	if err != nil {
		return err
	}
	p.cfg.LibPath = path
	return nil
}

func (p *Parts) lake(ctx context.Context) error {
	show := newProgress(p.cfg.Progress, "generating tables", false)
	m, err := tpch.Generate(ctx, tpch.Options{
		Dir: p.cfg.LakeDir(), Scale: p.cfg.Scale, Seed: p.cfg.Seed, Replace: true, Progress: show.update,
	})
	show.done()
	if err != nil {
		return fmt.Errorf("generating the tables: %w", err)
	}
	p.Lake = m
	if p.lakeViews, err = tpch.ViewStatements(LakeDatabase, p.cfg.LakeDir(), m); err != nil {
		return fmt.Errorf("describing the tables: %w", err)
	}
	return nil
}

func (p *Parts) broker(ctx context.Context) error {
	cfg := broker.Default()
	cfg.Addr = p.cfg.KafkaAddr
	if p.cfg.KeepTopics {
		cfg.DataDir = filepath.Join(p.cfg.DataDir, "kafka")
	}
	b, err := broker.Start(ctx, cfg, p.cfg.Log)
	if err != nil {
		return err
	}
	p.Broker = b
	p.OnStop("broker", b.Stop)
	return nil
}

// interactive is quick for what is small and deadly for what is not: few threads, a hard memory limit, no spill.
func (p *Parts) interactive() chdb.Config {
	limit := strconv.FormatInt(p.cfg.InteractiveMemory, 10)
	return chdb.Config{
		Name: Interactive, Addr: p.cfg.InteractiveAddr,
		Settings: map[string]string{
			"max_threads": strconv.Itoa(p.cfg.InteractiveThreads), "max_memory_usage": limit,
			"max_bytes_before_external_group_by": "0", "max_bytes_before_external_sort": "0",
			"max_bytes_ratio_before_external_group_by": "0", "max_bytes_ratio_before_external_sort": "0",
		},
		Caps: map[string]string{"max_memory_usage": limit},
	}
}

// batch spills to disk, and takes its time to come up.
func (p *Parts) batch() chdb.Config {
	return chdb.Config{
		Name: BatchPool, Addr: p.cfg.BatchAddr,
		Settings: map[string]string{
			"max_threads": strconv.Itoa(p.cfg.BatchThreads), "max_memory_usage": "2000000000",
			"max_bytes_before_external_group_by": "80000000", "max_bytes_before_external_sort": "80000000",
			"max_bytes_ratio_before_external_group_by": "0", "max_bytes_ratio_before_external_sort": "0",
		},
	}
}

func (p *Parts) engine(ctx context.Context, cfg chdb.Config) (*chdb.Engine, error) {
	cfg.DataDir, cfg.LibPath, cfg.Logger = filepath.Join(p.cfg.DataDir, cfg.Name), p.cfg.LibPath, p.cfg.Log.With("engine", cfg.Name)
	e, err := chdb.Start(ctx, cfg)
	if err != nil {
		return nil, err // it says which engine
	}
	p.OnStop(cfg.Name+" engine", e.Stop)
	return e, nil
}

func (p *Parts) cluster(ctx context.Context) error {
	cfg := p.batch()
	cfg.DataDir, cfg.LibPath, cfg.Logger = filepath.Join(p.cfg.DataDir, BatchPool), p.cfg.LibPath, p.cfg.Log.With("engine", BatchPool)
	addr, err := fixedAddr(cfg.Addr)
	if err != nil {
		return err
	}
	cfg.Addr = addr
	p.Batch = &pool{cfg: cfg, views: p.lakeViews}
	none := int32(0)
	s, err := cluster.New(cluster.Options{
		Addr: p.cfg.ClusterAddr, MaxReplicas: 1, Logger: p.cfg.Log,
		Groups: []cluster.Group{{UniqueID: BatchPool, Replicas: &none, Runner: p.Batch, StartDelay: p.cfg.BatchStartDelay}},
	})
	if err != nil {
		return err
	}
	if err := s.Start(ctx); err != nil {
		return fmt.Errorf("serving the custom resource: %w", err)
	}
	p.Cluster = s
	p.OnStop("custom resource", s.Stop)
	return nil
}

// showLake makes the lakehouse's tables visible in an engine.
func showLake(ctx context.Context, e *chdb.Engine, views []string) error {
	conn, err := clickhouse.Open(e.Options())
	if err != nil {
		return fmt.Errorf("connecting to the engine: %w", err)
	}
	defer func() { _ = conn.Close() }()
	for _, stmt := range views {
		if err := conn.Exec(ctx, stmt); err != nil {
			return fmt.Errorf("showing the tables to the engine: %w", err)
		}
	}
	return nil
}
