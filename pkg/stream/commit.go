package stream

import (
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func (c *Consumer) commitLoop(ctx context.Context) {
	t := time.NewTicker(c.group.CommitEvery)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			c.commit(ctx, c.owned())
		}
	}
}

// commit writes the finished prefix of partitions that are ours at this moment. The broker fences members, not partitions: it takes a
// commit of any member for any partition, forwards or back, so what is not ours must not be asked for.
func (c *Consumer) commit(ctx context.Context, parts []*Partition) {
	c.commitMu.Lock()
	defer c.commitMu.Unlock()
	want := map[*Partition]kgo.EpochOffset{}
	span := 0
	for _, p := range parts {
		p.mu.Lock()
		if !p.released && p.tracker != nil {
			if offset, epoch, ok := p.tracker.toCommit(); ok {
				want[p] = kgo.EpochOffset{Epoch: epoch, Offset: offset}
			}
			span += p.tracker.span()
		}
		p.mu.Unlock()
	}
	c.m.span.Set(float64(span))
	if len(want) == 0 {
		return
	}
	for p, err := range c.commitOffsets(ctx, want, "") {
		if err != nil && ctx.Err() == nil {
			c.m.commitErrors.Inc()
			c.said.WarnContext(ctx, "committing offsets", "group", c.group.Group, "topic", p.Topic, "partition", p.ID,
				"offset", want[p].Offset, "error", err)
		}
	}
}

var errNoAnswer = errors.New("the broker's answer leaves the partition out")

// commitOffsets sends one commit and notes what was taken. commitMu is held.
func (c *Consumer) commitOffsets(ctx context.Context, want map[*Partition]kgo.EpochOffset, metadata string) map[*Partition]error {
	offsets := map[string]map[int32]kgo.EpochOffset{}
	errs := map[*Partition]error{}
	for p, o := range want {
		if offsets[p.key.topic] == nil {
			offsets[p.key.topic] = map[int32]kgo.EpochOffset{}
		}
		offsets[p.key.topic][p.ID] = o
		errs[p] = errNoAnswer
	}
	if metadata != "" {
		ctx = kgo.PreCommitFnContext(ctx, func(req *kmsg.OffsetCommitRequest) error {
			for i := range req.Topics {
				for j := range req.Topics[i].Partitions {
					req.Topics[i].Partitions[j].Metadata = &metadata
				}
			}
			return nil
		})
	}
	var failed error
	c.kafka().CommitOffsetsSync(ctx, offsets, func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, resp *kmsg.OffsetCommitResponse, err error) {
		if err != nil {
			failed = err
			return
		}
		for _, t := range resp.Topics {
			for _, rp := range t.Partitions {
				if p := c.partition(partitionKey{t.Topic, rp.Partition}); p != nil {
					if _, asked := want[p]; asked {
						errs[p] = kerr.ErrorForCode(rp.ErrorCode)
					}
				}
			}
		}
	})
	for p, o := range want {
		if failed != nil {
			errs[p] = failed
		}
		if errs[p] == nil {
			p.mu.Lock()
			p.tracker.committed, p.tracker.rewound = max(p.tracker.committed, o.Offset), false
			p.mu.Unlock()
		}
	}
	return errs
}
