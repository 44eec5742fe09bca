// Package follow reads all partitions of some topics outside of any group and knows how far it has come, so that somebody
// can ask for proof that nothing has been missed up to this moment.
//
// Positions count transaction markers and aborted records, so a log that ends in such can be read to its end all the same.
package follow

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/pointsman/pointsman/pkg/stream"
	"github.com/pointsman/pointsman/pkg/telemetry"
)

// Source is a topic, and where in it to start.
type Source struct {
	Topic string // without prefix
	// LookBack is how far back to start; 0 starts with the oldest record that is left.
	LookBack time.Duration
}

// Follower reads. Its stages are read one after the other until each has been read up to its end; then all go on side by
// side. That way what ends a thing can be read before what begins it.
type Follower struct {
	kafka  stream.Config
	deps   stream.Deps
	name   string
	stages [][]Source
	take   func(rec *kgo.Record)

	mu       sync.Mutex
	position map[place]int64 // the next offset, of every partition that is read
	complete bool            // all stages have been read to what was their end when we started
	err      error           // of the last try to start
	moved    chan struct{}
	client   *kgo.Client
}

type place struct {
	topic     string
	partition int32
}

const (
	// startAgain is how long to wait before the next try to start: the broker may be away, or the topics not made.
	startAgain = time.Second
	// fetchWait bounds how long the broker may hold a fetch. Partitions that are added while one is under way only join the
	// next, so with the library's 5 s each stage could wait that long.
	fetchWait = 250 * time.Millisecond
)

// ErrBehind is the answer of Verify when the end was not reached in time.
var ErrBehind = errors.New("the topics have not been read up to now")

// New makes a follower that hands every record that is no control record to take, from one goroutine.
func New(kafka stream.Config, deps stream.Deps, name string, take func(*kgo.Record), stages ...[]Source) *Follower {
	return &Follower{kafka: kafka, deps: deps, name: name, stages: stages, take: take, moved: make(chan struct{})}
}

// Run reads until the context ends. A broker that is away is waited for.
func (f *Follower) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		err := f.session(ctx)
		if ctx.Err() != nil {
			return nil
		}
		f.mu.Lock()
		f.err, f.client = err, nil
		f.mu.Unlock()
		f.deps.Log.WarnContext(ctx, "the topics can't be read, trying again", telemetry.Err(err), "after", startAgain)
		select {
		case <-ctx.Done():
		case <-time.After(startAgain):
		}
	}
	return nil
}

func (f *Follower) session(ctx context.Context) error {
	deps := f.deps
	deps.Tracer = nil // what is followed here is state, not work
	cl, err := stream.NewClient(f.kafka, deps, f.name, kgo.KeepControlRecords(), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchMaxWait(fetchWait))
	if err != nil {
		return err
	}
	defer cl.Close()
	f.mu.Lock()
	f.position, f.complete, f.client = map[place]int64{}, false, cl
	f.mu.Unlock()
	for _, stage := range f.stages {
		ends, err := f.begin(ctx, cl, stage)
		if err != nil {
			return err
		}
		for !f.reached(ends) {
			if err := f.poll(ctx, cl); err != nil {
				return err
			}
		}
	}
	f.mu.Lock()
	f.complete, f.err = true, nil
	f.mu.Unlock()
	for {
		if err := f.poll(ctx, cl); err != nil {
			return err
		}
	}
}

// begin adds a stage's partitions and returns where each ends now.
func (f *Follower) begin(ctx context.Context, cl *kgo.Client, stage []Source) (map[place]int64, error) {
	admin := kadm.NewClient(cl)
	from := map[string]map[int32]kgo.Offset{}
	var topics []string
	for _, s := range stage {
		name := f.kafka.Topic(s.Topic)
		topics = append(topics, name)
		starts, err := admin.ListStartOffsets(ctx, name)
		if s.LookBack > 0 {
			starts, err = admin.ListOffsetsAfterMilli(ctx, time.Now().Add(-s.LookBack).UnixMilli(), name)
		}
		if err = errors.Join(err, starts.Error()); err != nil {
			return nil, fmt.Errorf("finding where to start reading %s: %w", s.Topic, err)
		}
		from[name] = map[int32]kgo.Offset{}
		f.mu.Lock()
		starts.Each(func(o kadm.ListedOffset) {
			f.position[place{o.Topic, o.Partition}] = o.Offset
			from[name][o.Partition] = kgo.NewOffset().At(o.Offset)
		})
		f.mu.Unlock()
	}
	ends, err := f.ends(ctx, cl, topics)
	if err != nil {
		return nil, err
	}
	cl.AddConsumePartitions(from)
	return ends, nil
}

func (f *Follower) ends(ctx context.Context, cl *kgo.Client, topics []string) (map[place]int64, error) {
	listed, err := kadm.NewClient(cl).ListCommittedOffsets(ctx, topics...)
	if err = errors.Join(err, listed.Error()); err != nil {
		return nil, fmt.Errorf("finding where the topics end: %w", err)
	}
	ends := map[place]int64{}
	listed.Each(func(o kadm.ListedOffset) { ends[place{o.Topic, o.Partition}] = o.Offset })
	return ends, nil
}

func (f *Follower) poll(ctx context.Context, cl *kgo.Client) error {
	fetches := cl.PollFetches(ctx)
	if err := ctx.Err(); err != nil {
		return err
	}
	if fetches.IsClientClosed() {
		return errors.New("the client was closed")
	}
	for _, e := range fetches.Errors() {
		if errors.Is(e.Err, kerr.UnknownTopicID) || errors.Is(e.Err, kerr.InconsistentTopicID) {
			return fmt.Errorf("reading %s, which was made anew: %w", e.Topic, e.Err) // only a new client can read it
		}
		f.deps.Log.WarnContext(ctx, "reading from kafka", telemetry.KeyTopic, e.Topic, telemetry.KeyPartition, e.Partition, telemetry.Err(e.Err))
	}
	fetches.EachPartition(func(p kgo.FetchTopicPartition) {
		for _, rec := range p.Records {
			if !rec.Attrs.IsControl() {
				f.take(rec)
			}
		}
		if n := len(p.Records); n > 0 {
			f.move(place{p.Topic, p.Partition}, p.Records[n-1].Offset+1)
		}
	})
	return nil
}

func (f *Follower) move(p place, next int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.position[p] = next
	close(f.moved)
	f.moved = make(chan struct{})
}

func (f *Follower) reached(ends map[place]int64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.past(ends)
}

func (f *Follower) past(ends map[place]int64) bool {
	for p, end := range ends {
		if f.position[p] < end {
			return false
		}
	}
	return true
}

// Complete reports whether everything that was there at the start has been read.
func (f *Follower) Complete() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.complete
}

// Health is the check of readiness.
func (f *Follower) Health(context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.err != nil:
		return f.err
	case !f.complete:
		return ErrBehind
	default:
		return nil
	}
}

// Verify asks the broker where the topics end now and returns once all of that has been handed over. Without an answer,
// or when that takes longer than the context, it returns an error: then nothing may be concluded from what was not seen.
func (f *Follower) Verify(ctx context.Context) error {
	f.mu.Lock()
	cl, complete := f.client, f.complete
	f.mu.Unlock()
	if cl == nil || !complete {
		return ErrBehind
	}
	var topics []string
	for _, stage := range f.stages {
		for _, s := range stage {
			topics = append(topics, f.kafka.Topic(s.Topic))
		}
	}
	ends, err := f.ends(ctx, cl, topics)
	if err != nil {
		return errors.Join(ErrBehind, err)
	}
	for {
		f.mu.Lock()
		done, moved := f.past(ends), f.moved
		f.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(ErrBehind, ctx.Err())
		case <-moved:
		}
	}
}
