// Command execution measures what an attempt costs over the engine's own call, what 2,000 open attempts take, and how fast a large
// result is stored, each beside its baseline in one run.
//
//	go run ./test/bench/execution [-only overhead,open,stream]
//
// Its last line is one JSON object. See README.md for what each figure means.
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
	"strings"
	"syscall"

	"github.com/pointsman/pointsman/pkg/embedded/chdb"
)

type options struct {
	only                string
	attempts, open      int
	rows, rounds, width int
}

// results are what was measured; a part that was not run is absent.
type results struct {
	Load     string          `json:"load"`
	Overhead *overheadResult `json:"overhead,omitempty"`
	Open     *openResult     `json:"open,omitempty"`
	Stream   *streamResult   `json:"stream,omitempty"`
}

func main() {
	chdb.MaybeRunChild()
	ctx, release := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer release()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "execution:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out, errs io.Writer) (err error) {
	var o options
	f := flag.NewFlagSet("execution", flag.ContinueOnError)
	f.SetOutput(errs)
	f.StringVar(&o.only, "only", "overhead,open,stream", "which parts to run")
	f.IntVar(&o.attempts, "attempts", 600, "overhead: attempts, and as many calls of the engine")
	f.IntVar(&o.open, "open", 2000, "open: attempts that are open at once")
	f.IntVar(&o.rows, "rows", 9_300_000, "stream: rows of the result")
	f.IntVar(&o.width, "width", 100, "stream: bytes of text in a row")
	f.IntVar(&o.rounds, "rounds", 2, "stream: rounds, each with both sides")
	if err := f.Parse(args); err != nil {
		return err
	}
	w, err := newWorld(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	r := results{Load: load()}
	fmt.Fprintln(out, "load before:", r.Load)
	if strings.Contains(o.only, "overhead") {
		if r.Overhead, err = measureOverhead(ctx, w, o.attempts); err != nil {
			return fmt.Errorf("overhead: %w", err)
		}
		fmt.Fprintln(out, r.Overhead)
	}
	if strings.Contains(o.only, "open") {
		if r.Open, err = measureOpen(ctx, w, o.open); err != nil {
			return fmt.Errorf("open attempts: %w", err)
		}
		fmt.Fprintln(out, r.Open)
	}
	if strings.Contains(o.only, "stream") {
		if r.Stream, err = measureStream(ctx, w, o); err != nil {
			return fmt.Errorf("streaming: %w", err)
		}
		fmt.Fprintln(out, r.Stream)
	}
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, string(text))
	return nil
}

// load is the machine's, so that figures of a crowded one are known as such.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.Join(strings.Fields(string(text))[:3], " ")
}
