package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/pointsman/pointsman/pkg/history/migrate"
	"github.com/pointsman/pointsman/pkg/lifecycle"
	"github.com/pointsman/pointsman/pkg/policy"
	"github.com/pointsman/pointsman/pkg/stream"
	"github.com/pointsman/pointsman/pkg/stream/topicadmin"
	"github.com/pointsman/pointsman/pkg/telemetry"
	"github.com/pointsman/pointsman/services/pointsman/demo"
	"github.com/pointsman/pointsman/services/pointsman/parts"
	"github.com/pointsman/pointsman/services/pointsman/stack"
)

// partFlags are the flags of the embedded parts.
type partFlags struct {
	Data      string  `help:"Folder for a lasting state: topics, history, results, tables. Without it everything is gone at the end." placeholder:"DIR" type:"path"`
	KafkaAddr string  `help:"Address of the embedded broker." default:"127.0.0.1:9092"`
	Scale     float64 `help:"Scale of the generated TPC-H-shaped tables; 1 is about 1.7 GB." default:"0.05"`
	Seed      uint64  `help:"Seed of tables and workload." default:"1"`
	FreePorts bool    `help:"Take free ports instead of the usual ones, e.g. beside another instance."`
	LogLevel  string  `help:"debug, info, warn or error." default:"warn" enum:"debug,info,warn,error"`
}

// config fills the parts' configuration; cleanup removes a temporary folder.
func (f partFlags) config(s *streams, log *slog.Logger) (cfg parts.Config, cleanup func() error, err error) {
	dir, cleanup := f.Data, func() error { return nil }
	if dir == "" {
		if dir, cleanup, err = tempFolder(""); err != nil {
			return cfg, nil, err
		}
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return cfg, nil, fmt.Errorf("finding the data folder: %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return cfg, nil, fmt.Errorf("making the data folder: %w", err)
	}
	cfg = parts.Default(dir)
	if f.FreePorts {
		cfg = parts.Free(dir)
	} else {
		cfg.KafkaAddr = f.KafkaAddr
	}
	cfg.KeepTopics, cfg.Scale, cfg.Seed, cfg.Log = f.Data != "", f.Scale, f.Seed, log
	if s.terminal {
		cfg.Progress = s.err
	}
	return cfg, cleanup, nil
}

func (f partFlags) telemetry(ctx context.Context, s *streams) (*telemetry.Telemetry, error) {
	cfg := telemetry.Default("127.0.0.1:0")
	if err := cfg.Log.Level.UnmarshalText([]byte(f.LogLevel)); err != nil {
		return nil, fmt.Errorf("--log-level: %w", err)
	}
	return telemetry.New(ctx, cfg, telemetry.Options{Service: "pointsman", Output: s.err})
}

// started is what runs once the parts do.
type started struct {
	tel   *telemetry.Telemetry
	cfg   parts.Config
	parts *parts.Parts
}

// with starts the embedded parts, hands them on, and stops them behind that.
func (f partFlags) with(ctx context.Context, s *streams, do func(started) error) (err error) {
	tel, err := f.telemetry(ctx, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, tel.Stop(context.WithoutCancel(ctx))) }()
	cfg, cleanup, err := f.config(s, tel.Log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cleanup()) }()
	p, err := parts.Start(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Stop(context.WithoutCancel(ctx))) }()
	return do(started{tel, cfg, p})
}

type upCmd struct {
	partFlags
	HTTPAddr string        `help:"Address of the HTTP front door." default:"127.0.0.1:8080"`
	Policy   string        `help:"Routing policy; the built-in one if empty." placeholder:"FILE" type:"existingfile"`
	Demo     bool          `help:"Run the demo: real arrivals, an agent over its budget, a burst, an engine killed under load."`
	For      time.Duration `help:"Run the demo in a window of this length, then end. Without it everything stays up until you stop it." placeholder:"60s"`
	Count    int           `help:"Tasks of the demo." default:"600"`
	Summary  string        `help:"text, or json: then the last line of the output is one JSON object." default:"text" enum:"text,json"`
	NoBreak  bool          `help:"Leave the engine alone in the demo."`
}

// Run starts everything, and runs the demo if asked to.
func (c *upCmd) Run(ctx context.Context, s *streams) error {
	if c.For != 0 && (c.For < 10*time.Second || c.For > time.Hour) {
		return &lifecycle.UsageError{Err: fmt.Errorf("--for must be between 10s and 1h, is %s", c.For)}
	}
	if err := c.checkPolicy(); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { s.say("\nstopping…") })
	defer stop()
	return c.with(ctx, s, func(on started) error { return c.services(ctx, s, on) })
}

// services starts the services on the parts, and runs the demo.
func (c *upCmd) services(ctx context.Context, s *streams, on started) (err error) {
	sc := stack.Of(on.parts, on.cfg)
	sc.HTTPAddr, sc.PolicyFile = c.HTTPAddr, c.Policy
	if c.FreePorts {
		sc = sc.FreePorts()
	}
	if err := prepare(ctx, sc); err != nil {
		return err
	}
	st, err := stack.Start(ctx, sc, on.tel)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Stop(context.WithoutCancel(ctx))) }()
	c.greet(s, on.parts, st)
	if c.Demo || c.For > 0 {
		if err := c.demo(ctx, s, on.parts, sc, on.tel); err != nil {
			return err
		}
		if c.For > 0 {
			return nil
		}
		s.say("Everything stays up until you press Ctrl-C.")
	}
	select {
	case <-ctx.Done():
		return nil
	case <-st.Done():
		return st.Err()
	}
}

// checkPolicy finds the policy's faults before anything is started.
func (c *upCmd) checkPolicy() error {
	if c.Policy == "" {
		return nil
	}
	text, err := os.ReadFile(c.Policy)
	if err != nil {
		return fmt.Errorf("reading the policy: %w", err)
	}
	if _, err := policy.Load(c.Policy, text); err != nil {
		return &lifecycle.UsageError{Err: fmt.Errorf("the policy has faults:\n%w", err)}
	}
	return nil
}

// prepare makes the topics and the history's schema.
func prepare(ctx context.Context, sc stack.Config) error {
	specs, err := topicadmin.Specs()
	if err != nil {
		return err
	}
	if _, err := topicadmin.Apply(ctx, sc.Kafka(), stream.Deps{}, specs, topicadmin.Options{}); err != nil {
		return fmt.Errorf("making the topics: %w", err)
	}
	if _, err := migrate.Up(ctx, sc.History()); err != nil {
		return fmt.Errorf("making the history's schema: %w", err)
	}
	return nil
}

func (c *upCmd) demo(ctx context.Context, s *streams, p *parts.Parts, sc stack.Config, tel *telemetry.Telemetry) error {
	window := c.For
	if window == 0 {
		window = time.Minute
	}
	opts := demo.Options{
		Kafka: sc.Kafka(), History: sc.History(), Window: window, Count: c.Count, Seed: c.Seed,
		Prefix: "demo" + strconv.FormatInt(time.Now().Unix(), 36), Progress: s.err, Terminal: s.terminal, Width: s.width, Log: tel.Log,
	}
	if !c.NoBreak {
		opts.Break = p.Interactive.Kill
	}
	r, err := demo.Run(ctx, opts)
	if err != nil {
		return err
	}
	w := s.out
	if c.Summary == "json" {
		w = s.err
	}
	if err := r.Print(w); err != nil {
		return fmt.Errorf("printing the summary: %w", err)
	}
	if c.Summary == "json" {
		if err := json.NewEncoder(s.out).Encode(r.Summary); err != nil {
			return fmt.Errorf("printing the summary: %w", err)
		}
	}
	return r.Summary.Complete()
}

// greet says what runs where, and what to try.
func (c *upCmd) greet(s *streams, p *parts.Parts, st *stack.Stack) {
	s.say("pointsman is up.")
	s.say("  Kafka       %s      (kcat -b %s -L)", p.Broker.Addrs()[0], p.Broker.Addrs()[0])
	s.say("  HTTP        http://%s      (POST /v1/queries, /v1/explain; OpenAPI at /v1/openapi.yaml)", st.Intake.Addr())
	s.say("  ClickHouse  http://%s      (history: database pointsman, views v_tasks, v_sla_hit_rate, …)", p.HistoryDB.Addr())
	s.say("  pools       interactive %s, batch %s (asleep until something needs it)", p.Interactive.Addr(), p.Batch.Addr())
	if !c.FreePorts {
		s.say("  admin       http://127.0.0.1:9401 to 9405: /healthz /readyz /metrics of intake, router, executor, scaler, profiler")
	}
	s.say("Try:")
	s.say(`  curl -s 'http://%s/v1/queries?wait=30s' -d '{"sql":"SELECT n_name FROM tpch.nation LIMIT 3","tenant":"me","slaSeconds":5}' | jq .outcome.result`, st.Intake.Addr())
	s.say(`  curl -s 'http://%s/?database=pointsman' -d 'SELECT status, cluster, count() FROM v_tasks GROUP BY ALL FORMAT PrettyCompact'`, p.HistoryDB.Addr())
	s.say("")
}

func (s *streams) say(format string, args ...any) {
	_, _ = fmt.Fprintf(s.err, format+"\n", args...)
}

type embeddedCmd struct{ partFlags }

// Run starts the parts, makes topics and schema, and waits.
func (c *embeddedCmd) Run(ctx context.Context, s *streams) error {
	return c.with(ctx, s, func(on started) error { return c.wait(ctx, s, on.cfg, on.parts) })
}

func (c *embeddedCmd) wait(ctx context.Context, s *streams, cfg parts.Config, p *parts.Parts) error {
	sc := stack.Of(p, cfg)
	if err := prepare(ctx, sc); err != nil {
		return err
	}
	if err := json.NewEncoder(s.out).Encode(map[string]string{
		"kafka": p.Broker.Addrs()[0], "history": p.HistoryDB.Addr(), "interactive": p.Interactive.Addr(), "batch": p.Batch.Addr(),
		"cluster": p.Cluster.URL(), "namespace": p.Cluster.Namespace(), "name": p.Cluster.Name(), "lake": cfg.LakeDir(), "data": cfg.DataDir,
	}); err != nil {
		return fmt.Errorf("printing the addresses: %w", err)
	}
	select {
	case <-ctx.Done():
		return nil
	case <-p.Done():
		return p.Err()
	}
}
