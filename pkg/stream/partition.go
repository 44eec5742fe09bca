package stream

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"
)

// ErrNotOwned is returned when something was to be done for a partition that is no longer ours.
var ErrNotOwned = errors.New("the partition is no longer ours")

// maxBehind bounds how many records may be finished behind one that is not, for they are all read again when the process dies. That is
// harmless, for whoever finished them knows them again, but it takes time.
const maxBehind = 1_000_000

// Partition is one partition that the group has given to this process, until it takes it away.
type Partition struct {
	Topic string // without prefix
	ID    int32

	c      *Consumer
	client *kgo.Client
	key    partitionKey
	ctx    context.Context
	stop   context.CancelFunc
	wake   chan struct{}
	done   chan struct{} // closed when the worker is through

	mu       sync.Mutex
	started  bool
	released bool // Done and commits have no effect any more
	paused   bool
	tracker  *tracker
	metadata string // of the commit we started from
	queue    []*kgo.Record
}

func newPartition(c *Consumer, cl *kgo.Client, k partitionKey) *Partition {
	p := &Partition{
		Topic: c.cfg.Name(k.topic), ID: k.id, c: c, client: cl, key: k,
		wake: make(chan struct{}, 1), done: make(chan struct{}),
	}
	p.ctx, p.stop = context.WithCancel(context.Background())
	return p
}

// Committed returns where the group stood when the partition was given to us, with the metadata of that commit. ok is false if it had
// no offset yet.
func (p *Partition) Committed() (offset int64, metadata string, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.tracker.committed, p.metadata, p.tracker.committed >= 0
}

// Done says that records are finished for good: their effects are durable. The order does not matter. What is done up to the first
// record that is not gets committed within a second. After the partition is gone it does nothing.
func (p *Partition) Done(recs ...*kgo.Record) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.released {
		return
	}
	for _, r := range recs {
		p.tracker.done(r.Offset, r.LeaderEpoch)
	}
	p.unpause()
}

// CommitTo commits an offset and metadata at once, for a processor that has to keep more than its place, and finishes all records below
// it. It never moves the group's offset back.
func (p *Partition) CommitTo(ctx context.Context, next int64, metadata string) error {
	p.c.commitMu.Lock()
	defer p.c.commitMu.Unlock()
	p.mu.Lock()
	owned, behind := !p.released, next <= p.tracker.committed
	p.mu.Unlock()
	switch {
	case !owned:
		return fmt.Errorf("committing %s[%d]: %w", p.Topic, p.ID, ErrNotOwned)
	case behind:
		return nil
	}
	errs := p.c.commitOffsets(ctx, map[*Partition]kgo.EpochOffset{p: {Epoch: -1, Offset: next}}, metadata)
	if err := errs[p]; err != nil {
		return fmt.Errorf("committing %s[%d]: %w", p.Topic, p.ID, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tracker.doneBelow(next)
	p.unpause()
	return nil
}

// deliver queues records for the worker. Control records are finished here: that way the group's offset passes transaction markers, and
// its lag reaches zero.
func (p *Partition) deliver(recs []*kgo.Record) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.released || p.tracker == nil {
		return
	}
	for _, r := range recs {
		if !p.tracker.deliver(r.Offset, r.LeaderEpoch, recordSize(r)) {
			continue
		}
		if r.Attrs.IsControl() {
			p.tracker.done(r.Offset, r.LeaderEpoch)
			continue
		}
		p.queue = append(p.queue, r)
	}
	if !p.paused && (p.tracker.span() >= p.c.group.MaxSpan || p.tracker.held >= p.c.group.MaxHeldBytes || p.tracker.behind() >= maxBehind) {
		p.paused = true
		p.client.PauseFetchPartitions(map[string][]int32{p.key.topic: {p.ID}})
		p.c.m.pauses.Inc()
	}
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// rewind goes back to where a log that has lost its end goes on. What waits to be handed on from there is gone. Records that are in work
// are too, but their effects can't be called back.
func (p *Partition) rewind(to int64) {
	p.c.commitMu.Lock() // a commit of what was there before ends first
	defer p.c.commitMu.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.released || p.tracker == nil {
		return
	}
	p.tracker.rewind(to)
	p.queue = slices.DeleteFunc(p.queue, func(r *kgo.Record) bool { return r.Offset >= to })
	p.unpause()
}

func (p *Partition) unpause() {
	if p.paused && p.tracker.span() <= p.c.group.MaxSpan/2 && p.tracker.held <= p.c.group.MaxHeldBytes/2 && p.tracker.behind() <= maxBehind/2 {
		p.paused = false
		p.client.ResumeFetchPartitions(map[string][]int32{p.key.topic: {p.ID}})
	}
}

// work is the partition's goroutine.
func (p *Partition) work() {
	defer close(p.done)
	proc, err := p.c.assign(p.ctx, p)
	if err != nil {
		if p.ctx.Err() == nil {
			p.c.fail(fmt.Errorf("taking over %s[%d]: %w", p.Topic, p.ID, err))
		}
		return
	}
	defer proc.Close()
	for {
		select {
		case <-p.ctx.Done():
			return
		case <-p.wake:
		}
		for recs := p.take(); len(recs) > 0; recs = p.take() {
			if err := proc.Process(p.ctx, recs); err != nil {
				if p.ctx.Err() == nil {
					p.c.fail(fmt.Errorf("processing %s[%d]@%d: %w", p.Topic, p.ID, recs[0].Offset, err))
				}
				return
			}
			if p.ctx.Err() != nil {
				return
			}
		}
	}
}

func (p *Partition) take() []*kgo.Record {
	p.mu.Lock()
	defer p.mu.Unlock()
	recs := p.queue
	if n := p.c.group.MaxPoll; len(recs) > n {
		p.queue = recs[n:]
		return recs[:n:n]
	}
	p.queue = nil
	return recs
}
