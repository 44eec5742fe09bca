// Command pipeline measures what pointsman costs over the parts it stands on, in one run on one machine: each figure of ours
// stands beside a baseline that was measured in turns with it, and their ratio is the result.
//
//	go run ./test/bench/pipeline [-real] [-only router,latency,profiler,memory]
//
// It prints a table, and as its last line one JSON object. See README.md for what each ratio means.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/pointsman/pointsman/pkg/embedded/chdb"
)

// parts of the benchmark, in the order in which they run.
var parts = []string{"router", "latency", "profiler", "memory"}

// options are the flags.
type options struct {
	real    bool
	only    []string
	profile string

	tasks, rounds int // router

	rate    int // latency
	window  time.Duration
	windows int

	events int // profiler

	memoryTasks int // memory
	inFlight    int
}

func main() {
	chdb.MaybeRunChild()
	ctx, release := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer release()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "pipeline:", err)
		os.Exit(1)
	}
}

func parse(args []string, errs io.Writer) (options, error) {
	o := options{}
	f := flag.NewFlagSet("pipeline", flag.ContinueOnError)
	f.SetOutput(errs)
	f.BoolVar(&o.real, "real", false, "run on Apache Kafka (Java and Maven needed) instead of the embedded broker; memory is always that of `up`, with its own")
	only := f.String("only", strings.Join(parts, ","), "which parts to run")
	f.StringVar(&o.profile, "profile", "", "folder for CPU and allocation profiles of our side")
	f.IntVar(&o.tasks, "tasks", 40_000, "router: requests of a round")
	f.IntVar(&o.rounds, "rounds", 3, "router and profiler: rounds, each with both sides")
	f.IntVar(&o.rate, "rate", 100, "latency: tasks a second")
	f.DurationVar(&o.window, "window", 5*time.Second, "latency: how long one side is measured before the other's turn")
	f.IntVar(&o.windows, "windows", 6, "latency: windows of each side")
	f.IntVar(&o.events, "events", 10_000, "profiler: tasks whose events are stored in a round")
	f.IntVar(&o.memoryTasks, "memory-tasks", 20_000, "memory: tasks that `up` runs")
	f.IntVar(&o.inFlight, "in-flight", 48, "memory: tasks open at once")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	for part := range strings.SplitSeq(*only, ",") {
		if !slices.Contains(parts, part) {
			return o, fmt.Errorf("-only: %q is none of %s", part, strings.Join(parts, ", "))
		}
		o.only = append(o.only, part)
	}
	for name, n := range map[string]int{
		"tasks": o.tasks, "rounds": o.rounds, "rate": o.rate, "windows": o.windows, "events": o.events,
		"memory-tasks": o.memoryTasks, "in-flight": o.inFlight, "window": int(o.window),
	} {
		if n < 1 {
			return o, fmt.Errorf("-%s must be above 0", name)
		}
	}
	return o, nil
}

func run(ctx context.Context, args []string, out, progress io.Writer) (err error) {
	o, err := parse(args, progress)
	if err != nil {
		return err
	}
	r := begin(o)
	g, err := newGround(ctx, o, progress)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.close()) }()
	for _, part := range parts {
		if !slices.Contains(o.only, part) {
			continue
		}
		g.say("%s …", part)
		switch part {
		case "router":
			r.Router, err = measureRouter(ctx, g, o)
		case "latency":
			r.Latency, err = measureLatency(ctx, g, o)
		case "profiler":
			r.Profiler, err = measureProfiler(ctx, g, o)
		case "memory":
			r.Memory, err = measureMemory(ctx, g, o)
		}
		if err != nil {
			return fmt.Errorf("measuring %s: %w", part, err)
		}
	}
	r.end()
	r.table(out)
	return json.NewEncoder(out).Encode(r)
}
