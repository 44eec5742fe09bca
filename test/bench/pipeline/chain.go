package main

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/pointsman/pointsman/pkg/event"
)

// startChain starts the baseline of the latency: the same three topics in a row with nothing but a copy between them, and
// records of the same sizes.
//
//	requests → copy → decisions → copy → attempt-state → read
func startChain(ctx context.Context, g *ground, decisions, claims []template) (*side, error) {
	s, err := newSide(ctx, g, "chain")
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	var mu sync.Mutex
	var errs []error
	hop := func(from, to string, carry []template, note func(id string)) {
		wg.Go(func() {
			if err := s.copy(ctx, from, to, carry, note); err != nil {
				mu.Lock()
				errs = append(errs, fmt.Errorf("the hop from %s: %w", from, err))
				mu.Unlock()
			}
		})
	}
	hop(event.TopicRequests, event.TopicDecisions, decisions, nil)
	hop(event.TopicDecisions, event.TopicAttemptState, claims, s.watch.decided)
	hop(event.TopicAttemptState, "", nil, s.watch.arrive)
	s.stop = func() error {
		cancel()
		wg.Wait()
		return errors.Join(errs...)
	}
	return s, nil
}

// copy reads a topic in a group, and for each record writes one to another topic at once. Offsets are committed on the side, as
// the client does by itself.
func (t topics) copy(ctx context.Context, from, to string, carry []template, note func(id string)) error {
	opts := []kgo.Opt{
		kgo.ConsumerGroup(t.Group("hop-" + from)), kgo.ConsumeTopics(t.Topic(from)), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.ProducerLinger(0), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
	}
	if to != "" {
		opts = append(opts, kgo.DefaultProduceTopic(t.Topic(to)))
	}
	cl, err := t.client(opts...)
	if err != nil {
		return err
	}
	defer cl.Close()
	n := 0
	for {
		fetches := cl.PollFetches(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err := fetches.Err0(); err != nil {
			return err
		}
		fetches.EachRecord(func(r *kgo.Record) {
			if note != nil {
				note(string(r.Key))
			}
			if to == "" {
				return
			}
			c := carry[n%len(carry)]
			n++
			cl.Produce(context.WithoutCancel(ctx), &kgo.Record{Key: r.Key, Value: c.value, Headers: c.headers}, func(_ *kgo.Record, err error) {
				if err != nil {
					t.ground.say("a plain hop could not write: %v", err)
				}
			})
		})
	}
}
