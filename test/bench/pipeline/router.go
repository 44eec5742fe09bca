package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/pointsman/pointsman/loadgen/workload"
	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/history"
	"github.com/pointsman/pointsman/pkg/telemetry"
	"github.com/pointsman/pointsman/services/router"
)

// routerResult is tasks per second of the router against a plain loop.
type routerResult struct {
	Tasks         int       `json:"tasks"`
	RequestBytes  int       `json:"requestBytes"`
	DecisionBytes int       `json:"decisionBytes"`
	OursPerSecond []float64 `json:"oursPerSecond"`
	PlainPerSec   []float64 `json:"plainPerSecond"`
	Ratio         float64   `json:"ratio"`
	Goal          float64   `json:"goal"`
	// Processor time for each task, in microseconds, and what the ratio would be if nothing but that counted.
	OursCPU  []float64 `json:"oursCPU"`
	PlainCPU []float64 `json:"plainCPU"`
	RatioCPU float64   `json:"ratioCPU"`
	// Without keeping the inputs of decisions: what that costs. InputBytes is their mean size.
	WithoutInputsPerSecond []float64 `json:"withoutInputsPerSecond"`
	WithoutInputsCPU       []float64 `json:"withoutInputsCPU"`
	InputBytes             int       `json:"inputBytes"`
	RatioInputs            float64   `json:"ratioInputs"`
}

// routerGoal is the issue's, for the embedded broker.
const routerGoal = 0.15

func measureRouter(ctx context.Context, g *ground, o options) (*routerResult, error) {
	db, err := g.history(ctx, "bench_router")
	if err != nil {
		return nil, err
	}
	tasks, err := reads("router", o.tasks)
	if err != nil {
		return nil, err
	}
	out := &routerResult{Tasks: o.tasks, Goal: routerGoal}
	for round := range o.rounds {
		ours, decisions, inputs, err := routeOnce(ctx, g, round, tasks, db, true)
		if err != nil {
			return nil, fmt.Errorf("the router: %w", err)
		}
		without, _, _, err := routeOnce(ctx, g, round, tasks, db, false)
		if err != nil {
			return nil, fmt.Errorf("the router without inputs: %w", err)
		}
		out.WithoutInputsPerSecond, out.WithoutInputsCPU = append(out.WithoutInputsPerSecond, without.perSecond), append(out.WithoutInputsCPU, without.cpu)
		out.InputBytes = meanBytes(inputs)
		plain, err := plainOnce(ctx, g, round, tasks, decisions)
		if err != nil {
			return nil, fmt.Errorf("the plain loop: %w", err)
		}
		g.say("  round %d: router %.0f/s (%.0f µs of processor each), without inputs %.0f/s (%.0f µs), plain loop %.0f/s (%.1f µs), ratio %.3f (%.3f)", round+1,
			ours.perSecond, ours.cpu, without.perSecond, without.cpu, plain.perSecond, plain.cpu, ours.perSecond/plain.perSecond, plain.cpu/ours.cpu)
		out.OursPerSecond, out.PlainPerSec = append(out.OursPerSecond, ours.perSecond), append(out.PlainPerSec, plain.perSecond)
		out.OursCPU, out.PlainCPU = append(out.OursCPU, ours.cpu), append(out.PlainCPU, plain.cpu)
		out.DecisionBytes = meanBytes(decisions)
	}
	for _, a := range tasks[:min(1000, len(tasks))] {
		data, err := a.Task.MarshalJSON()
		if err != nil {
			return nil, err
		}
		out.RequestBytes += len(data)
	}
	out.RequestBytes /= min(1000, len(tasks))
	out.RatioInputs = ratio(out.OursPerSecond, out.WithoutInputsPerSecond)
	out.Ratio, out.RatioCPU = ratio(out.OursPerSecond, out.PlainPerSec), ratio(out.PlainCPU, out.OursCPU)
	return out, nil
}

// routeOnce has the real router decide what was published before it started, until all decisions are in the log, and their
// inputs too when those are kept.
func routeOnce(ctx context.Context, g *ground, round int, tasks []workload.Arrival, db history.Config, keep bool) (_ rate, decisions, inputs []template, err error) {
	t, err := g.topics(ctx, fmt.Sprintf("router%d%t", round, keep))
	if err != nil {
		return rate{}, nil, nil, err
	}
	defer func() { err = errors.Join(err, t.drop(context.WithoutCancel(ctx))) }()
	quiet, err := t.signals(ctx)
	if err != nil {
		return rate{}, nil, nil, err
	}
	defer func() { err = errors.Join(err, quiet()) }()
	if err := t.requests(ctx, tasks, 1); err != nil {
		return rate{}, nil, nil, err
	}
	stop, err := startRouter(ctx, g, t, db, func(c *router.Config) { c.Inputs.Enabled = keep })
	if err != nil {
		return rate{}, nil, nil, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	if keep {
		profiled, err := g.profiling("router")
		if err != nil {
			return rate{}, nil, nil, err
		}
		defer profiled()
	}
	p, err := t.follow(ctx, event.TopicDecisions, 10*time.Millisecond, int64(len(tasks)))
	if err != nil {
		return rate{}, nil, nil, err
	}
	if decisions, err = t.templates(ctx, event.TopicDecisions, min(500, len(tasks)), nil); err != nil {
		return rate{}, nil, nil, err
	}
	if keep {
		if inputs, err = t.templates(ctx, event.TopicInputs, min(500, len(tasks)), nil); err != nil {
			return rate{}, nil, nil, err
		}
	}
	r, err := p.rate()
	return r, decisions, inputs, err
}

// startRouter starts a router as `up` does, but without its HTTP server.
func startRouter(ctx context.Context, g *ground, t topics, db history.Config, edits ...func(*router.Config)) (stop func() error, err error) {
	tel, err := g.telemetry(ctx)
	if err != nil {
		return nil, err
	}
	cfg := router.Default()
	cfg.Telemetry.Admin.Address, cfg.HTTP.Address = "", ""
	cfg.Kafka, cfg.History = t.of("router"), db
	cfg.Catalog.Folder = g.lake()
	for _, edit := range edits {
		edit(&cfg)
	}
	app, err := router.New(ctx, cfg, tel.For("router"))
	if err != nil {
		return nil, err
	}
	if err := app.Start(ctx); err != nil {
		return nil, errors.Join(err, app.Stop(context.WithoutCancel(ctx)))
	}
	return func() error {
		ctx := context.WithoutCancel(ctx)
		return errors.Join(app.Err(), app.Stop(ctx), tel.Stop(ctx))
	}, nil
}

// telemetry is that of `up`: spans are made and nobody exports them.
func (g *ground) telemetry(ctx context.Context) (*telemetry.Telemetry, error) {
	cfg := telemetry.Default("")
	if err := cfg.Log.Level.UnmarshalText([]byte("warn")); err != nil {
		return nil, err
	}
	return telemetry.New(ctx, cfg, telemetry.Options{Service: "bench", Output: g.progress})
}

func (t topics) follow(ctx context.Context, topic string, interval time.Duration, want int64) (pace, error) {
	cl, err := t.client()
	if err != nil {
		return pace{}, err
	}
	defer cl.Close()
	return follow(ctx, interval, want, counter{kadm.NewClient(cl), t.Topic(topic)}.count)
}

// plainTimes is how many times as much the plain loop has to do: it would be over too soon to be measured.
const plainTimes = 5

// plainOnce is the loop that anybody would write: read, write a record of the same size for each, wait, commit.
func plainOnce(ctx context.Context, g *ground, round int, tasks []workload.Arrival, decisions []template) (_ rate, err error) {
	t, err := g.topics(ctx, fmt.Sprintf("plain%d", round))
	if err != nil {
		return rate{}, err
	}
	defer func() { err = errors.Join(err, t.drop(context.WithoutCancel(ctx))) }()
	if err := t.requests(ctx, tasks, plainTimes); err != nil {
		return rate{}, err
	}
	loop, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- plainLoop(loop, t, decisions) }()
	p, err := t.follow(ctx, event.TopicDecisions, 2*time.Millisecond, int64(plainTimes*len(tasks)))
	cancel()
	if err := errors.Join(err, <-ended); err != nil {
		return rate{}, err
	}
	return p.rate()
}

func plainLoop(ctx context.Context, t topics, decisions []template) error {
	cl, err := t.client(
		kgo.ConsumerGroup(t.Group("plain")), kgo.ConsumeTopics(t.Topic(event.TopicRequests)), kgo.DisableAutoCommit(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DefaultProduceTopic(t.Topic(event.TopicDecisions)), kgo.ProducerLinger(0),
	)
	if err != nil {
		return err
	}
	defer cl.Close()
	n := 0
	for {
		fetches := cl.PollRecords(ctx, 1000)
		if ctx.Err() != nil {
			return nil
		}
		if err := fetches.Err0(); err != nil {
			return err
		}
		var failed error
		fetches.EachRecord(func(r *kgo.Record) {
			d := decisions[n%len(decisions)]
			n++
			cl.Produce(context.WithoutCancel(ctx), &kgo.Record{Key: r.Key, Value: d.value, Headers: d.headers}, func(_ *kgo.Record, err error) {
				if err != nil {
					failed = err
				}
			})
		})
		if err := cl.Flush(ctx); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		if failed != nil {
			return failed
		}
		if err := cl.CommitRecords(ctx, fetches.Records()...); err != nil && ctx.Err() == nil {
			return err
		}
	}
}
