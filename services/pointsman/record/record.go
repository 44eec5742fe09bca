// Package record reads what routers have recorded of their decisions: from a Kafka that is running, or from the data folder of
// an embedded broker that is not.
//
// It reads and decodes; what is made of it is pkg/replay's. Nothing is committed, and a folder is not changed.
package record

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/pointsman/pointsman/pkg/embedded/broker"
	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/policy"
	"github.com/pointsman/pointsman/pkg/route"
	"github.com/pointsman/pointsman/pkg/stream"
)

// Record is where decisions, their inputs and policies are read.
type Record struct {
	cfg  stream.Config
	deps stream.Deps
	stop func(context.Context) error
}

// OfKafka reads from a running cluster.
func OfKafka(cfg stream.Config) *Record {
	return &Record{cfg: cfg, stop: func(context.Context) error { return nil }}
}

// OfFolder reads from a copy of the data folder of `pointsman up --data`, which must not be running.
func OfFolder(ctx context.Context, dir string) (*Record, error) {
	topics := []string{event.TopicDecisions, event.TopicInputs, event.TopicPolicies}
	quiet := slog.New(slog.DiscardHandler)
	c, err := broker.OpenCopy(ctx, filepath.Join(dir, "kafka"), topics, quiet)
	if errors.Is(err, broker.ErrNoData) { // perhaps it is the broker's own folder
		c, err = broker.OpenCopy(ctx, dir, topics, quiet)
	}
	if err != nil {
		return nil, err
	}
	cfg := stream.DefaultConfig()
	cfg.Brokers, cfg.ClientID = c.Addrs(), "pointsman-cli"
	return &Record{cfg: cfg, stop: c.Stop}, nil
}

// Close ends what was started for reading.
func (r *Record) Close(ctx context.Context) error { return r.stop(ctx) }

// Policies returns the recorded policies by hash. One that this version can't load any more is left out.
func (r *Record) Policies(ctx context.Context) (map[string]*policy.Policy, error) {
	out := map[string]*policy.Policy{}
	ranges, err := r.plan(ctx, []string{event.TopicPolicies}, time.Time{}, time.Time{})
	if err != nil {
		return nil, err
	}
	err = stream.ReadRanges(ctx, r.cfg, r.deps, ranges, func(rec *kgo.Record) error {
		env, err := stream.Decode(rec, stream.RulesFor(event.TopicPolicies))
		if err != nil || env.Tombstone {
			return nil
		}
		var t event.PolicyText
		if json.Unmarshal(env.Data, &t) != nil {
			return nil
		}
		if p, err := policy.Load(t.Hash, []byte(t.Text)); err == nil && p.Hash == t.Hash {
			out[p.Hash] = p
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading the policies: %w", err)
	}
	return out, nil
}

// Reader is what Read hands records to. Each of its functions may be nil.
type Reader struct {
	// Key, when set, is the only key whose records are handed over.
	Key      string
	Decision func(raw []byte, d event.RouteDecision)
	Input    func(route.Input)
	// Unreadable is told of a record that is not what its topic says.
	Unreadable func(topic string, partition int32, offset int64, err error)
	// Progress is told how many records of how many are read.
	Progress func(done, total int64)
}

// slack is how much longer a record's time may lie from the decision's own: a batch is written after it was decided, and clocks
// differ a little.
const slack = time.Minute

// Read reads what was decided between two times, and a little more around it: the caller looks at the decisions' own times. A
// zero time is no bound; the end is what is there now.
func (r *Record) Read(ctx context.Context, from, to time.Time, rd Reader) error {
	if !from.IsZero() {
		from = from.Add(-slack)
	}
	if !to.IsZero() {
		to = to.Add(slack)
	}
	var topics []string
	if rd.Decision != nil {
		topics = append(topics, event.TopicDecisions)
	}
	if rd.Input != nil {
		topics = append(topics, event.TopicInputs)
	}
	ranges, err := r.plan(ctx, topics, from, to)
	if err != nil {
		return err
	}
	var done, total int64
	for _, s := range ranges {
		total += s.To - s.From
	}
	for _, step := range inStep(ranges, stepMost) {
		err = stream.ReadRanges(ctx, r.cfg, r.deps, step, func(rec *kgo.Record) error {
			if done++; rd.Progress != nil {
				rd.Progress(done, total)
			}
			if rd.Key != "" && rd.Key != string(rec.Key) {
				return nil
			}
			if err := r.hand(rec, rd); err != nil && rd.Unreadable != nil {
				rd.Unreadable(r.cfg.Name(rec.Topic), rec.Partition, rec.Offset, err)
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("reading the record: %w", err)
		}
	}
	return nil
}

// stepMost is how many records of a partition are read before the others have to follow.
const stepMost = 1000

// inStep cuts ranges into steps, each with the same share of every range. A decision has one input: read like that they come together, and
// whoever joins them has few to hold. Read all at once, the topic with the smaller records runs ahead by most of its length.
func inStep(ranges []stream.Range, most int64) [][]stream.Range {
	steps := int64(0)
	for _, s := range ranges {
		steps = max(steps, (s.To-s.From+most-1)/most)
	}
	out := make([][]stream.Range, steps)
	for i := range steps {
		for _, s := range ranges {
			n := s.To - s.From
			if a, z := s.From+n*i/steps, s.From+n*(i+1)/steps; a < z {
				out[i] = append(out[i], stream.Range{Topic: s.Topic, Partition: s.Partition, From: a, To: z})
			}
		}
	}
	return out
}

func (r *Record) hand(rec *kgo.Record, rd Reader) error {
	topic := r.cfg.Name(rec.Topic)
	env, err := stream.Decode(rec, stream.RulesFor(topic))
	if err != nil {
		return err
	}
	switch topic {
	case event.TopicDecisions:
		var d event.RouteDecision
		if err := d.UnmarshalJSON(env.Data); err != nil {
			return err
		}
		rd.Decision(env.Data, d)
	case event.TopicInputs:
		var in route.Input
		if err := in.UnmarshalJSON(env.Data); err != nil {
			return err
		}
		rd.Input(in)
	}
	return nil
}

func (r *Record) plan(ctx context.Context, topics []string, from, to time.Time) ([]stream.Range, error) {
	ranges, err := stream.Plan(ctx, r.cfg, r.deps, topics, from, to)
	if errors.Is(err, kerr.UnknownTopicOrPartition) {
		return nil, fmt.Errorf("there is no topic %v: it is older than the keeping of inputs, or `pointsman topics apply` was not run: %w", topics, err)
	}
	return ranges, err
}
