package stream

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func (c *Consumer) groupOpts() []kgo.Opt {
	g := c.group
	topics := make([]string, len(g.Topics))
	for i, t := range g.Topics {
		topics[i] = c.cfg.Topic(t)
	}
	start := kgo.NewOffset().AtStart()
	if g.StartEnd {
		start = kgo.NewOffset().AtEnd()
	}
	metadata := map[partitionKey]string{}
	opts := []kgo.Opt{
		kgo.ConsumerGroup(c.cfg.Group(g.Group)),
		kgo.ConsumeTopics(topics...),
		kgo.ConsumeStartOffset(start),
		kgo.ConsumeResetOffset(kgo.NoResetOffset()), // a gap is a person's decision, or counted: see adjust and fetchError
		kgo.KeepControlRecords(),
		kgo.DisableAutoCommit(),
		kgo.BlockRebalanceOnPoll(),
		kgo.FetchMaxWait(250 * time.Millisecond), // a partition that was paused is fetched again only when the poll in flight returns
		kgo.SessionTimeout(g.SessionTimeout),
		kgo.HeartbeatInterval(g.HeartbeatEvery),
		kgo.RebalanceTimeout(g.RebalanceTimeout),
		kgo.OnPartitionsAssigned(c.onAssigned),
		kgo.OnPartitionsRevoked(func(_ context.Context, _ *kgo.Client, m map[string][]int32) { c.release(c.pick(m), true) }),
		kgo.OnPartitionsLost(func(_ context.Context, _ *kgo.Client, m map[string][]int32) { c.release(c.pick(m), false) }),
		kgo.OnOffsetsFetched(func(_ context.Context, _ *kgo.Client, resp *kmsg.OffsetFetchResponse) error {
			for _, group := range resp.Groups {
				for _, t := range group.Topics {
					for _, p := range t.Partitions {
						if p.Metadata != nil {
							metadata[partitionKey{t.Topic, p.Partition}] = *p.Metadata
						}
					}
				}
			}
			return nil
		}),
		kgo.AdjustFetchOffsetsFn(func(ctx context.Context, offsets map[string]map[int32]kgo.Offset) (map[string]map[int32]kgo.Offset, error) {
			return c.adjust(ctx, offsets, metadata)
		}),
	}
	if g.InstanceID != "" {
		opts = append(opts, kgo.InstanceID(g.InstanceID))
	}
	if g.ServerBalanced {
		opts = append(opts, kgo.ServerSideBalancer())
	}
	return opts
}

func (c *Consumer) onAssigned(_ context.Context, cl *kgo.Client, assigned map[string][]int32) {
	if len(assigned) == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for topic, ids := range assigned {
		for _, id := range ids {
			k := partitionKey{topic, id}
			c.parts[k] = newPartition(c, cl, k)
		}
	}
	cl.ResumeFetchPartitions(assigned) // a pause outlives the assignment it was made in
	c.m.assigned.Set(float64(len(c.parts)))
}

// adjust runs when the group's offsets are known and before anything is fetched from there. It starts the workers, and it is where a
// consumer that was away for longer than retention finds out.
func (c *Consumer) adjust(ctx context.Context, offsets map[string]map[int32]kgo.Offset, metadata map[partitionKey]string) (map[string]map[int32]kgo.Offset, error) {
	topics := make([]string, 0, len(offsets))
	for t := range offsets {
		topics = append(topics, t)
	}
	admin := kadm.NewClient(c.kafka())
	starts, err := admin.ListStartOffsets(ctx, topics...)
	if err != nil {
		return nil, err
	}
	ends, err := admin.ListEndOffsets(ctx, topics...)
	if err != nil {
		return nil, err
	}
	for t, ps := range offsets {
		for id, o := range ps {
			at := o.EpochOffset().Offset
			start, okStart := starts.Lookup(t, id)
			end, okEnd := ends.Lookup(t, id)
			if !okStart || !okEnd || start.Err != nil || end.Err != nil {
				return nil, errors.Join(errors.New("where the log starts and ends is not known"), start.Err, end.Err)
			}
			next := at
			switch {
			case at < 0:
				at, next = -1, 0
			case at < start.Offset:
				c.outlived(t, id, at, start.Offset)
				next = start.Offset
				ps[id] = kgo.NewOffset().At(next)
			case at > end.Offset:
				// The log ends before what was committed: the topic was made anew, or the cluster lost its end.
				c.loss(t, id, end.Offset, at)
				at, next = -1, start.Offset
				ps[id] = kgo.NewOffset().At(next)
			}
			c.begin(partitionKey{t, id}, at, next, metadata[partitionKey{t, id}])
		}
	}
	return offsets, nil
}

func (c *Consumer) begin(k partitionKey, committed, next int64, metadata string) {
	p := c.partition(k)
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.started || p.released {
		return
	}
	p.started = true
	p.tracker = newTracker(committed, next)
	p.metadata = metadata
	go p.work()
}

// outlived deals with records that the broker took away before they were read. On a compacted topic that is no loss: it takes a
// record when a newer one of its key is there, and a broker may move the start of the log as it does so.
func (c *Consumer) outlived(topic string, id int32, from, to int64) {
	if name := c.cfg.Name(topic); RulesFor(name).Tombstones {
		c.deps.log().Debug("records were compacted away before they were read", "group", c.group.Group, "topic", name, "partition", id, "from", from, "to", to)
		return
	}
	c.loss(topic, id, from, to)
}

// loss counts records that are gone, and ends the session if that is the policy.
func (c *Consumer) loss(topic string, id int32, from, to int64) {
	name := c.cfg.Name(topic)
	c.m.lost.WithLabelValues(name).Add(float64(to - from))
	c.mu.Lock()
	c.lost += to - from
	c.mu.Unlock()
	c.deps.log().Error("records were deleted before they were read",
		"group", c.group.Group, "topic", name, "partition", id, "from", from, "to", to, "lost", to-from, "policy", string(c.group.OnLoss))
	if c.group.OnLoss == LossStop {
		c.fail(&LossError{Topic: name, Partition: id, From: from, To: to})
	}
}

// fetchError deals with one error of a poll. It is true if the client has to be built anew.
func (c *Consumer) fetchError(ctx context.Context, cl *kgo.Client, e kgo.FetchError) (again bool) {
	var dataLoss *kgo.ErrDataLoss
	switch err := e.Err; {
	case errors.Is(err, kerr.FencedInstanceID):
		c.m.fenced.Inc()
		c.fail(errors.Join(ErrFenced, err))
	case errors.Is(err, kerr.OffsetOutOfRange):
		c.outrun(ctx, cl, partitionKey{e.Topic, e.Partition})
	case errors.As(err, &dataLoss):
		c.truncated(partitionKey{e.Topic, e.Partition}, max(dataLoss.ConsumedTo, dataLoss.ResetTo), dataLoss.ResetTo)
	case errors.Is(err, kerr.TopicAuthorizationFailed), errors.Is(err, kerr.GroupAuthorizationFailed), errors.Is(err, kerr.SaslAuthenticationFailed):
		c.fail(err)
	case errors.Is(err, kerr.UnknownTopicID), errors.Is(err, kerr.InconsistentTopicID):
		c.deps.log().WarnContext(ctx, "topic was made anew", "topic", e.Topic, "error", err)
		return true
	default:
		c.said.WarnContext(ctx, "reading from kafka", "group", c.group.Group, "topic", e.Topic, "partition", e.Partition, "error", err)
	}
	return false
}

// outrun is for a partition whose log does not have the offset that we are at: retention has overtaken us while we were reading, or the
// log lost its end, and the client could not tell where.
func (c *Consumer) outrun(ctx context.Context, cl *kgo.Client, k partitionKey) {
	p := c.partition(k)
	if p == nil {
		return
	}
	admin := kadm.NewClient(cl)
	starts, err := admin.ListStartOffsets(ctx, k.topic)
	ends, errEnds := admin.ListEndOffsets(ctx, k.topic)
	start, okStart := starts.Lookup(k.topic, k.id)
	end, okEnd := ends.Lookup(k.topic, k.id)
	if err = errors.Join(err, errEnds, start.Err, end.Err); err != nil || !okStart || !okEnd {
		c.said.WarnContext(ctx, "reading from kafka", "topic", k.topic, "partition", k.id, "error", err)
		return // the error comes again with the next poll
	}
	p.mu.Lock()
	from := p.tracker.next
	if from < start.Offset {
		p.tracker.next = start.Offset
	}
	p.mu.Unlock()
	switch {
	case from < start.Offset:
		c.outlived(k.topic, k.id, from, start.Offset)
	case from > end.Offset:
		c.truncated(k, from, end.Offset)
		from = end.Offset
	}
	cl.SetOffsets(map[string]map[int32]kgo.EpochOffset{k.topic: {k.id: {Epoch: -1, Offset: max(from, start.Offset)}}})
}

// truncated is for a log that lost what it had from an offset on. What is written there from now on is new.
func (c *Consumer) truncated(k partitionKey, from, to int64) {
	c.loss(k.topic, k.id, to, from)
	if p := c.partition(k); p != nil && c.group.OnLoss == LossResume {
		p.rewind(to)
	}
}

func (c *Consumer) pick(m map[string][]int32) []*Partition {
	var out []*Partition
	for topic, ids := range m {
		for _, id := range ids {
			if p := c.partition(partitionKey{topic, id}); p != nil {
				out = append(out, p)
			}
		}
	}
	return out
}

// release ends the work on partitions and forgets them. While they are still ours, what is finished is committed first; a commit for
// partitions that were lost could move the next owner's offset back, so there is none then.
func (c *Consumer) release(parts []*Partition, ours bool) {
	if len(parts) == 0 {
		return
	}
	var wg sync.WaitGroup
	for _, p := range parts {
		p.stop()
		p.mu.Lock()
		if !p.started {
			p.started = true
			close(p.done)
		}
		p.mu.Unlock()
		wg.Go(func() { c.wait(p) })
	}
	wg.Wait()
	if ours {
		ctx, cancel := context.WithTimeout(context.Background(), c.group.RebalanceTimeout/4)
		c.commit(ctx, parts)
		cancel()
	}
	c.commitMu.Lock() // a commit on its way ends before anybody else may own the partition
	defer c.commitMu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range parts {
		p.mu.Lock()
		p.released, p.queue = true, nil
		p.mu.Unlock()
		if c.parts[p.key] == p {
			delete(c.parts, p.key)
		}
	}
	c.m.assigned.Set(float64(len(c.parts)))
}

// wait gives a worker the time that the group gives us, less a reserve for the commit.
func (c *Consumer) wait(p *Partition) {
	t := time.NewTimer(c.group.RebalanceTimeout / 2)
	defer t.Stop()
	select {
	case <-p.done:
	case <-t.C:
		c.deps.log().Error("a processor did not let go of its partition in time", "topic", p.Topic, "partition", p.ID)
	}
}
