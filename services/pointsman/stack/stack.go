// Package stack runs the five services in one process, against a broker, a history and engines that are given by address:
// the embedded ones of `pointsman up`, or those of a test.
//
// A service here is the same code with the same configuration as in a process of its own; the stack only fills in addresses
// and starts them in an order in which each finds what it needs.
package stack

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/pointsman/pointsman/pkg/history"
	"github.com/pointsman/pointsman/pkg/lifecycle"
	"github.com/pointsman/pointsman/pkg/stream"
	"github.com/pointsman/pointsman/pkg/stream/topicadmin"
	"github.com/pointsman/pointsman/pkg/telemetry"
	"github.com/pointsman/pointsman/services/executor"
	"github.com/pointsman/pointsman/services/intake"
	"github.com/pointsman/pointsman/services/intake/access"
	"github.com/pointsman/pointsman/services/pointsman/parts"
	"github.com/pointsman/pointsman/services/profiler"
	"github.com/pointsman/pointsman/services/router"
	"github.com/pointsman/pointsman/services/scaler"
)

// Config says where everything is.
type Config struct {
	Brokers     []string
	Prefix      string
	HistoryAddr string
	// InteractiveAddr and BatchAddr are the pools' addresses, ClusterURL that of the custom resource that runs the batch pool.
	InteractiveAddr, BatchAddr string
	ClusterURL                 string
	ClusterNamespace           string
	ClusterName                string
	LakeDir                    string
	DataDir                    string
	PolicyFile                 string
	// HTTPAddr is intake's, ExplainAddr the router's, ConsoleAddr the profiler's.
	HTTPAddr, ExplainAddr, ConsoleAddr string
	// AdminAddr gives the admin address of a service.
	AdminAddr func(service string) string
	// IdleAfter is how long the batch pool may be idle before it is put to sleep.
	IdleAfter time.Duration
}

// Of is the configuration of a stack on embedded parts.
func Of(p *parts.Parts, cfg parts.Config) Config {
	return Config{
		Brokers: p.Broker.Addrs(), HistoryAddr: p.HistoryDB.Addr(), InteractiveAddr: p.Interactive.Addr(), BatchAddr: p.Batch.Addr(),
		ClusterURL: p.Cluster.URL(), ClusterNamespace: p.Cluster.Namespace(), ClusterName: p.Cluster.Name(),
		LakeDir: cfg.LakeDir(), DataDir: cfg.DataDir, IdleAfter: time.Minute,
		HTTPAddr: "127.0.0.1:8080", ExplainAddr: "127.0.0.1:8402", ConsoleAddr: "127.0.0.1:8085",
		AdminAddr: func(service string) string { return adminAddrs[service] },
	}
}

// adminAddrs are the usual admin addresses; see docs/config.md.
var adminAddrs = map[string]string{
	"intake": "127.0.0.1:9401", "router": "127.0.0.1:9402", "executor": "127.0.0.1:9403", "scaler": "127.0.0.1:9404", "profiler": "127.0.0.1:9405",
}

// FreePorts makes every address of the stack's own a free port.
func (c Config) FreePorts() Config {
	const free = "127.0.0.1:0"
	c.HTTPAddr, c.ExplainAddr, c.ConsoleAddr = free, free, free
	c.AdminAddr = func(string) string { return free }
	return c
}

// Stack is the five services, running.
type Stack struct {
	*lifecycle.Group
	Intake *intake.App
	Router *router.App
}

// canary touches the storage of a pool: the smallest table of the lakehouse.
const canary = "SELECT count() FROM " + parts.LakeDatabase + ".region"

// Start starts the services, the reader of results first and the front door last.
func Start(ctx context.Context, cfg Config, tel *telemetry.Telemetry) (_ *Stack, err error) {
	s := &Stack{Group: lifecycle.NewGroup(lifecycle.Options{})}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Stop(context.WithoutCancel(ctx)))
		}
	}()
	start := func(name string, app lifecycle.App, err error) error {
		if err != nil {
			return fmt.Errorf("wiring the %s: %w", name, err)
		}
		s.OnStop(name, app.Stop)
		if err := app.Start(ctx); err != nil {
			return fmt.Errorf("starting the %s: %w", name, err)
		}
		// A service that fails takes the stack down: half of it running would look like all of it.
		s.Go(ctx, name+" watch", func(ctx context.Context) error {
			select {
			case <-ctx.Done():
				return nil
			case <-app.Done():
				if err := app.Err(); err != nil {
					return fmt.Errorf("the %s failed: %w", name, err)
				}
				return nil
			}
		})
		return nil
	}
	specs, err := topicadmin.Specs()
	if err != nil {
		return nil, err
	}
	maxBytes := topicadmin.MaxBytes(specs)
	prof, err := profiler.New(ctx, cfg.profiler(), tel.For("profiler"))
	if err := start("profiler", prof, err); err != nil {
		return nil, err
	}
	scale, err := scaler.New(ctx, cfg.scaler(), tel.For("scaler"), scaler.Options{MaxBytes: maxBytes})
	if err := start("scaler", scale, err); err != nil {
		return nil, err
	}
	exec, err := executor.New(ctx, cfg.executor(), tel.For("executor"), executor.Options{MaxBytes: maxBytes})
	if err := start("executor", exec, err); err != nil {
		return nil, err
	}
	s.Router, err = router.New(ctx, cfg.router(), tel.For("router"))
	if err := start("router", s.Router, err); err != nil {
		return nil, err
	}
	s.Intake, err = intake.New(ctx, cfg.intake(s.Router.HTTPAddr().String()), tel.For("intake"))
	if err := start("intake", s.Intake, err); err != nil {
		return nil, err
	}
	return s, nil
}

func (c Config) kafka(service string) stream.Config {
	k := stream.DefaultConfig()
	k.Brokers, k.Prefix, k.ClientID = c.Brokers, c.Prefix, "pointsman-"+service
	return k
}

// History is where the history is.
func (c Config) History() history.Config {
	h := history.DefaultConfig()
	h.Addr = []string{c.HistoryAddr}
	return h
}

// Kafka is where the broker is, for tools.
func (c Config) Kafka() stream.Config { return c.kafka("tools") }

// Results is the folder of result files.
func (c Config) Results() string { return filepath.Join(c.DataDir, "results") }

func (c Config) profiler() profiler.Config {
	cfg := profiler.Default()
	cfg.Telemetry.Admin.Address = c.AdminAddr("profiler")
	cfg.Kafka, cfg.History, cfg.HTTP.Address = c.kafka("profiler"), c.History(), c.ConsoleAddr
	four, two := interactiveSlots, batchSlots
	cfg.Engines = []profiler.EngineConfig{
		{Name: parts.Interactive, Kind: "clickhouse", Addr: []string{c.InteractiveAddr}, Canary: canary, Slots: &four},
		{Name: parts.BatchPool, Kind: "clickhouse", Addr: []string{c.BatchAddr}, Canary: canary, Slots: &two},
	}
	return cfg
}

// The slots of the two pools, as the shipped policy has them too.
const (
	interactiveSlots = 4
	batchSlots       = 2
)

func (c Config) scaler() scaler.Config {
	cfg := scaler.Default()
	cfg.Telemetry.Admin.Address = c.AdminAddr("scaler")
	cfg.Kafka, cfg.HTTP.Address = c.kafka("scaler"), ""
	cfg.Kube.URL, cfg.Kube.Namespace, cfg.Kube.Name = c.ClusterURL, c.ClusterNamespace, c.ClusterName
	p := scaler.PoolConfig{}
	p.SetDefaults()
	// One process on this machine comes and goes in seconds, where a pool of nodes takes minutes.
	p.Name, p.ComputeGroup, p.IdleAfter, p.DrainFor, p.RaiseOnQueue = parts.BatchPool, parts.BatchPool, c.IdleAfter, time.Second, false
	p.Engine.URL, p.Engine.Canary = "http://"+c.BatchAddr, canary
	p.Probe.WakeEvery = 200 * time.Millisecond
	cfg.Pools = []scaler.PoolConfig{p}
	return cfg
}

func (c Config) executor() executor.Config {
	cfg := executor.Default()
	cfg.Telemetry.Admin.Address = c.AdminAddr("executor")
	cfg.Kafka, cfg.Results.Folder = c.kafka("executor"), c.Results()
	engine := func(name, addr string, slots int) executor.EngineConfig {
		e := executor.EngineConfig{}
		e.SetDefaults()
		e.Name, e.URL, e.Slots, e.Canary = name, "http://"+addr, slots, canary
		return e
	}
	cfg.Engines = []executor.EngineConfig{
		engine(parts.Interactive, c.InteractiveAddr, interactiveSlots), engine(parts.BatchPool, c.BatchAddr, batchSlots),
	}
	return cfg
}

func (c Config) router() router.Config {
	cfg := router.Default()
	cfg.Telemetry.Admin.Address = c.AdminAddr("router")
	cfg.Kafka, cfg.History, cfg.HTTP.Address = c.kafka("router"), c.History(), c.ExplainAddr
	cfg.Policy.File = c.PolicyFile
	cfg.Catalog.Folder, cfg.Catalog.Schema = c.LakeDir, parts.LakeDatabase
	return cfg
}

func (c Config) intake(explainAddr string) intake.Config {
	cfg := intake.Default()
	cfg.Telemetry.Admin.Address = c.AdminAddr("intake")
	cfg.Kafka, cfg.HTTP.Address, cfg.Results.Folder = c.kafka("intake"), c.HTTPAddr, c.Results()
	cfg.Explain.URL = "http://" + explainAddr + "/v1/explain"
	// Everybody on this machine may come in; a deployment lists its tokens.
	cfg.Auth.Mode = access.None
	return cfg
}
