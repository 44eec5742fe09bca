package command

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"time"

	"github.com/pointsman/pointsman/loadgen/publish"
	"github.com/pointsman/pointsman/loadgen/workload"
)

// shape are the flags that decide what is sent; run and print share them.
type shape struct {
	For   time.Duration `default:"60s" help:"Window of the demo; arrivals end at 70% of it. With --rate: how long to send."`
	Count int           `placeholder:"N" help:"Number of tasks: by default 10 for each second of the window; with --rate, rate times window."`
	Rate  float64       `placeholder:"PER-SECOND" help:"Send the reads of the trace at this constant rate instead of the demo's arrivals, for benchmarks."`
	Seed  uint64        `default:"1" help:"Seed: the same flags and seed give the same tasks at the same times."`
}

// arrivals returns the chosen workload and how many arrivals it has.
func (s *shape) arrivals(prefix string) (iter.Seq[workload.Arrival], int, error) {
	opts := workload.Options{Window: s.For, Count: s.Count, Seed: s.Seed, Prefix: prefix}
	if s.Rate == 0 {
		list, err := workload.Generate(opts)
		return slices.Values(list), len(list), err
	}
	count := s.Count
	if count == 0 {
		count = int(s.Rate * s.For.Seconds())
	}
	seq, err := workload.ConstantRate(opts, s.Rate, count)
	return seq, count, err
}

type printCommand struct {
	shape  `embed:""`
	Prefix string `default:"demo" help:"Start of every task and session id."`
	Times  bool   `help:"Wrap each task in an object with the milliseconds at which it is due and its kind."`
}

// Run prints one task a line: what kcat -P -t requests takes.
func (c *printCommand) Run(s streams) error {
	arrivals, _, err := c.arrivals(c.Prefix)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(s.out)
	for a := range arrivals {
		line, err := a.Task.MarshalJSON()
		if err != nil {
			return fmt.Errorf("encoding task %s: %w", a.Task.ID, err)
		}
		if c.Times {
			line = fmt.Appendf(nil, `{"atMs":%.3f,"kind":%q,"task":%s}`, float64(a.At.Microseconds())/1000, a.Kind, line)
		}
		if _, err := out.Write(append(line, '\n')); err != nil {
			return fmt.Errorf("printing: %w", err)
		}
		if s.ctx.Err() != nil {
			return s.ctx.Err()
		}
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	return nil
}

type runCommand struct {
	shape   `embed:""`
	Brokers []string `default:"127.0.0.1:9092" placeholder:"HOST:PORT" help:"Brokers to begin with, by default 127.0.0.1:9092."`
	Remote  bool     `help:"Allow brokers that are not on this machine."`
	Topic   string   `default:"requests" help:"Topic to publish to."`
	Prefix  string   `placeholder:"TEXT" help:"Start of every task and session id. By default it holds the time of day: a Task whose id was seen before is not run again."`
	Report  string   `enum:"text,json" default:"text" help:"Form of the report on standard output: text or json."`
}

func (c *runCommand) Run(s streams) error {
	prefix := c.Prefix
	if prefix == "" {
		prefix = "run-" + time.Now().UTC().Format("20060102T150405")
	}
	arrivals, count, err := c.arrivals(prefix)
	if err != nil {
		return err
	}
	client, err := publish.NewClient(c.Brokers, c.Topic, c.Remote)
	if err != nil {
		return err
	}
	defer client.Close()
	fmt.Fprintf(s.err, "publishing %d tasks to %s at %v, ids %s-%d-…\n", count, c.Topic, c.Brokers, prefix, c.Seed)
	var progress func(int64)
	if draw := bar(s.err, "tasks"); draw != nil {
		progress = func(sent int64) { draw(sent, int64(count)) }
	}
	report, err := publish.Run(s.ctx, client, arrivals, progress)
	if report.Sent > 0 { // also when the run failed or was interrupted: it says what was sent
		err = errors.Join(err, c.print(s.out, report))
	}
	return err
}

func (c *runCommand) print(out io.Writer, report publish.Report) error {
	if c.Report == "json" {
		raw, err := json.Marshal(report)
		if err != nil {
			return fmt.Errorf("encoding report: %w", err)
		}
		_, err = fmt.Fprintln(out, string(raw))
		return err
	}
	_, err := fmt.Fprintln(out, report)
	return err
}
