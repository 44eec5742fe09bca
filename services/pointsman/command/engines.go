package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/pointsman/pointsman/pkg/config"
	"github.com/pointsman/pointsman/pkg/lifecycle"
	"github.com/pointsman/pointsman/services/executor"
	"github.com/pointsman/pointsman/services/executor/check"
)

type enginesCmd struct {
	List  enginesListCmd  `cmd:"" help:"The engines of an executor's configuration."`
	Check enginesCheckCmd `cmd:"" help:"Try out what works against engines: connect, canary, run, find, cancel, types, limits, settings of queues and resource profiles. It reads no data of yours, and runs queries for some seconds."`
}

// engineFlags say which engines are meant.
type engineFlags struct {
	Config string   `help:"Configuration of the executor. Variables POINTSMAN_EXECUTOR_… count as they do there." placeholder:"FILE" type:"existingfile" short:"c"`
	Names  []string `arg:"" optional:"" name:"name" help:"Engines of the configuration; all of them without a name."`
	Output string   `help:"text or json." default:"text" enum:"text,json" short:"o"`
}

// engines are those of the configuration that are named.
func (f engineFlags) engines() ([]executor.EngineConfig, error) {
	loaded, err := config.Load(executor.Default(), config.Options{Service: "executor", File: f.Config, Environ: os.Environ()})
	if err != nil {
		return nil, &lifecycle.UsageError{Err: err}
	}
	var out []executor.EngineConfig
	for _, e := range loaded.Config.Engines {
		if len(f.Names) == 0 || slices.Contains(f.Names, e.Name) {
			out = append(out, e)
		}
	}
	for _, name := range f.Names {
		if !slices.ContainsFunc(out, func(e executor.EngineConfig) bool { return e.Name == name }) {
			return nil, &lifecycle.UsageError{Err: fmt.Errorf("no engine %q is configured", name)}
		}
	}
	if len(out) == 0 {
		return nil, &lifecycle.UsageError{Err: errors.New("no engine is configured; name a configuration with --config")}
	}
	return out, nil
}

// listedEngine is an engine in a list. Its credential is not in it.
type listedEngine struct {
	Name        string   `json:"name"`
	Kind        string   `json:"kind"`
	URL         string   `json:"url"`
	User        string   `json:"user,omitempty"`
	Slots       int      `json:"slots"`
	SharedSlots int      `json:"sharedSlots,omitempty"`
	Resources   []string `json:"resources,omitempty"`
	Queues      []string `json:"queues,omitempty"`
}

type enginesListCmd struct{ engineFlags }

// Run prints the engines.
func (l enginesListCmd) Run(s *streams) error {
	engines, err := l.engines()
	if err != nil {
		return err
	}
	list := make([]listedEngine, len(engines))
	for i, e := range engines {
		list[i] = listedEngine{Name: e.Name, Kind: e.Kind, URL: e.URL, User: e.User, Slots: e.Slots, SharedSlots: e.SharedSlots}
		list[i].Resources = slices.Sorted(maps.Keys(e.Resources))
		list[i].Queues = slices.Sorted(maps.Keys(e.Queues))
	}
	if l.Output == "json" {
		return json.NewEncoder(s.out).Encode(list)
	}
	w := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "NAME\tKIND\tURL\tUSER\tSLOTS\tSHARED\tRESOURCES\tQUEUES")
	for _, e := range list {
		shared := "-"
		if e.SharedSlots > 0 {
			shared = fmt.Sprint(e.SharedSlots)
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%s\t%s\t%s\n", e.Name, e.Kind, e.URL, dash(e.User), e.Slots, shared,
			dash(strings.Join(e.Resources, ",")), dash(strings.Join(e.Queues, ",")))
	}
	return w.Flush()
}

type enginesCheckCmd struct {
	engineFlags
	URL      string `help:"Check the engine at this URL instead of configured ones." placeholder:"URL"`
	Kind     string `help:"Its kind." default:"clickhouse"`
	Flavour  string `help:"Its flavour, for the kind mysql."`
	User     string `help:"User to connect as."`
	Password string `help:"The user's password." env:"POINTSMAN_ENGINE_PASSWORD"`
	Database string `help:"Database to run in."`
	Canary   string `help:"Statement that proves that its storage answers."`
}

// checkedEngine is what was found of one engine.
type checkedEngine struct {
	Name   string          `json:"name"`
	Kind   string          `json:"kind"`
	OK     bool            `json:"ok"`
	Checks []check.Finding `json:"checks"`
}

// eachCheck bounds one check, allChecks all of them: what an engine that is slow at everything leaves for later is not tried.
const (
	eachCheck = 8 * time.Second
	allChecks = time.Minute - eachCheck // until the last of them may begin
)

// Run checks the engines at once, and prints what was found in their order.
func (c enginesCheckCmd) Run(ctx context.Context, s *streams) error {
	engines, err := c.chosen()
	if err != nil {
		return err
	}
	ctx, stop := context.WithTimeoutCause(ctx, allChecks, errors.New("there was no time left for it"))
	defer stop()
	found := make([]checkedEngine, len(engines))
	var wg sync.WaitGroup
	for i, cfg := range engines {
		wg.Go(func() { found[i] = tryOut(ctx, cfg) })
	}
	wg.Wait()
	bad := 0
	for _, e := range found {
		if !e.OK {
			bad++
		}
	}
	if c.Output == "json" {
		err = json.NewEncoder(s.out).Encode(found)
	} else {
		err = printChecks(s, found)
	}
	if err == nil && bad > 0 {
		err = fmt.Errorf("%d of %d engines failed a check", bad, len(found))
	}
	return err
}

// chosen are the engines to check.
func (c enginesCheckCmd) chosen() ([]executor.EngineConfig, error) {
	if c.URL == "" {
		return c.engines()
	}
	if len(c.Names) > 0 || c.Config != "" {
		return nil, &lifecycle.UsageError{Err: errors.New("--url goes without names and without --config")}
	}
	cfg := executor.EngineConfig{
		Name: c.URL, Kind: c.Kind, Flavour: c.Flavour, URL: c.URL, User: c.User, Password: config.Secret(c.Password), Database: c.Database, Canary: c.Canary, Slots: 2,
	}
	if err := cfg.Validate(); err != nil {
		return nil, &lifecycle.UsageError{Err: err}
	}
	return []executor.EngineConfig{cfg}, nil
}

func tryOut(ctx context.Context, cfg executor.EngineConfig) checkedEngine {
	out := checkedEngine{Name: cfg.Name, Kind: cfg.Kind}
	e, err := executor.OpenEngine(cfg)
	if err != nil {
		out.Checks = []check.Finding{{Check: check.Names()[0], Status: check.Failed, Detail: err.Error()}}
		return out
	}
	defer func() { _ = e.Close() }()
	variants := map[string]check.Variant{}
	for name, l := range cfg.Variants() {
		variants[name] = check.Variant{Settings: l.Settings, MaxMemory: int64(l.MaxMemory)}
	}
	out.Checks = check.Run(ctx, e, check.Options{
		Kind: cfg.Kind, ID: "pointsman-check-" + ulid.Make().String(), Database: cfg.Database, Gone: time.Second, Each: eachCheck, Variants: variants,
	})
	out.OK = check.Good(out.Checks)
	return out
}

func printChecks(s *streams, found []checkedEngine) error {
	w := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "ENGINE\tCHECK\tSTATUS\tTIME\tDETAIL")
	for _, e := range found {
		for _, f := range e.Checks {
			_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", e.Name, f.Check, f.Status, millis(&f.Ms), dash(f.Detail))
		}
	}
	return w.Flush()
}
