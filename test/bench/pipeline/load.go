package main

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/pointsman/pointsman/loadgen/publish"
	"github.com/pointsman/pointsman/loadgen/workload"
	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/signal"
	"github.com/pointsman/pointsman/pkg/stream"
)

// reads makes n reads of the CAB trace as Tasks: 22 templates of TPC-H with the trace's parameters. Nothing of them is rejected
// and nothing has a budget, so that each gets one decision and one submission.
func reads(prefix string, n int) ([]workload.Arrival, error) {
	// The generator adds the demo's other parts; they are few, and left out.
	all, err := workload.Generate(workload.Options{Count: n + 1000, Seed: 1, Prefix: prefix})
	if err != nil {
		return nil, err
	}
	out := make([]workload.Arrival, 0, n)
	for _, a := range all {
		if a.Kind == workload.CAB && len(out) < n {
			out = append(out, a)
		}
	}
	if len(out) < n {
		return nil, fmt.Errorf("the trace gave %d of %d reads", len(out), n)
	}
	return out, nil
}

// requests publishes Tasks as an outside producer does, a number of times, and waits until all of them are there.
func (t topics) requests(ctx context.Context, tasks []workload.Arrival, times int) error {
	cl, err := t.client(kgo.DefaultProduceTopic(t.Topic(event.TopicRequests)), kgo.ProducerLinger(5*time.Millisecond))
	if err != nil {
		return err
	}
	defer cl.Close()
	failed := make(chan error, 1)
	for i := range times * len(tasks) {
		rec, err := publish.Record(tasks[i%len(tasks)])
		if err != nil {
			return err
		}
		cl.Produce(ctx, rec, func(_ *kgo.Record, err error) {
			if err != nil {
				select {
				case failed <- err:
				default:
				}
			}
		})
	}
	if err := cl.Flush(ctx); err != nil {
		return fmt.Errorf("publishing requests: %w", err)
	}
	select {
	case err := <-failed:
		return fmt.Errorf("publishing requests: %w", err)
	default:
		return nil
	}
}

// signals publishes once a second what the profiler and the scaler would say of two idle pools.
func (t topics) signals(ctx context.Context) (stop func() error, err error) {
	p, err := stream.NewProducer(t.of("profiler"), stream.Deps{}, "signals")
	if err != nil {
		return nil, err
	}
	send := func(ctx context.Context) error {
		for _, cluster := range pools {
			for _, o := range observations(cluster, time.Now().UTC()) {
				data, err := event.Marshal(o)
				if err != nil {
					return err
				}
				if err := p.Send(ctx, stream.Message{
					Topic: event.TopicSignals, Key: cluster + "/" + o.Source, Type: event.ClusterObserved,
					ID: fmt.Sprintf("%s/%s/%d", cluster, o.Source, o.At.UnixNano()), Time: o.At, Data: data,
				}); err != nil {
					return err
				}
			}
		}
		return nil
	}
	if err := send(ctx); err != nil {
		p.Close()
		return nil, fmt.Errorf("publishing signals: %w", err)
	}
	end := every(ctx, time.Second, send)
	return func() error { defer p.Close(); return end() }, nil
}

// pools are the clusters of the built-in policy.
var pools = []string{"interactive", "batch"}

// observations are those of the three sources: the engine itself, the fold of attempts, the scaler.
func observations(cluster string, at time.Time) []signal.Observation {
	of := func(source string, values map[signal.Name]float64) signal.Observation {
		o := signal.Observation{Cluster: cluster, Source: source, At: at, Values: map[signal.Name]signal.Value{}}
		for name, v := range values {
			o.Values[name] = signal.Of(v, signal.Count, source, at)
		}
		return o
	}
	return []signal.Observation{
		of("engine", map[signal.Name]float64{signal.Healthy: 1, signal.MemoryUsedBytes: 200e6}),
		of("attempts", map[signal.Name]float64{signal.Queued: 0, signal.Running: 0, signal.Slots: 4, signal.EstWaitMs: 0, signal.OldestQueuedMs: 0}),
		of("scaler", map[signal.Name]float64{signal.Ready: 1, signal.Replicas: 1, signal.ReadyReplicas: 1, signal.WakeMs: 2000}),
	}
}

// counter counts the records of a topic.
type counter struct {
	admin *kadm.Client
	topic string
}

func (c counter) count(ctx context.Context) (int64, error) {
	ends, err := c.admin.ListEndOffsets(ctx, c.topic)
	if err != nil {
		return 0, fmt.Errorf("counting the records of %s: %w", c.topic, err)
	}
	var n int64
	ends.Each(func(o kadm.ListedOffset) {
		if o.Err != nil {
			err = o.Err
		}
		n += o.Offset
	})
	return n, err
}

// pace is how many a second were done between two looks at a count. The way from the start to the first of them is left out on
// both sides: joining a group costs what it costs, whoever joins.
type pace struct {
	firstAt, lastAt   time.Time
	first, last       int64
	firstCPU, lastCPU time.Duration
}

// rate is what a pace comes to. The processor time is that of this process, which holds the embedded broker too. It is the
// steadier of the two figures on a machine that has other things to do.
type rate struct {
	perSecond float64
	cpu       float64 // microseconds for each
}

func (p pace) rate() (rate, error) {
	n := float64(p.last - p.first)
	if n == 0 {
		return rate{}, fmt.Errorf("all %d were done between two looks: take more", p.last)
	}
	return rate{
		perSecond: n / p.lastAt.Sub(p.firstAt).Seconds(),
		cpu:       float64((p.lastCPU - p.firstCPU).Microseconds()) / n,
	}, nil
}

// follow looks at a count until it has reached want.
func follow(ctx context.Context, interval time.Duration, want int64, count func(context.Context) (int64, error)) (pace, error) {
	var p pace
	stuck := time.Now()
	for {
		n, err := count(ctx)
		if err != nil {
			return p, err
		}
		now := time.Now()
		if n > p.last || p.first == 0 {
			stuck = now
		}
		if n > 0 && p.first == 0 {
			p.first, p.firstAt, p.firstCPU = n, now, processorTime()
		}
		p.last, p.lastAt, p.lastCPU = n, now, processorTime()
		if n >= want {
			return p, nil
		}
		if now.Sub(stuck) > patience {
			return p, fmt.Errorf("%d of %d after %s without any more", n, want, patience)
		}
		select {
		case <-ctx.Done():
			return p, context.Cause(ctx)
		case <-time.After(interval):
		}
	}
}

// patience is how long nothing may happen before a measurement is given up.
const patience = time.Minute

// template is what a real record carries, for the baseline to carry too.
type template struct {
	value   []byte
	headers []kgo.RecordHeader
}

// templates takes records of a topic, for the baseline to write records of the same sizes and the same content.
func (t topics) templates(ctx context.Context, topic string, n int, take func(*kgo.Record) bool) ([]template, error) {
	cl, err := t.client(kgo.ConsumeTopics(t.Topic(topic)), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var out []template
	for len(out) < n {
		fetches := cl.PollRecords(ctx, n)
		if err := fetches.Err0(); err != nil {
			return nil, fmt.Errorf("reading %s: %w", topic, err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			if take == nil || take(r) {
				out = append(out, template{r.Value, r.Headers})
			}
		})
	}
	return out, nil
}

// meanBytes is the mean size of values.
func meanBytes(ts []template) int {
	n := 0
	for _, t := range ts {
		n += len(t.value)
	}
	return n / max(1, len(ts))
}

// count is how many records a topic holds.
func (t topics) count(ctx context.Context, topic string) (int64, error) {
	cl, err := t.client()
	if err != nil {
		return 0, err
	}
	defer cl.Close()
	return counter{kadm.NewClient(cl), t.Topic(topic)}.count(ctx)
}
