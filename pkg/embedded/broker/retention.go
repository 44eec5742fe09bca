package broker

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
)

// enforce keeps the bounds. kfake runs retention and compaction on its own only once an hour and only for topics that ask for it.
func (b *Broker) enforce(ctx context.Context, cfg Config, admin *kadm.Client, log *slog.Logger) {
	defer admin.Close()
	t := time.NewTicker(cfg.Sweep)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			b.cluster.Compact() // compacts, and applies the retention of every topic
			topics, err := admin.ListTopics(ctx)
			if err != nil {
				continue // only when it is stopping: the broker is in this process
			}
			b.cap(topics.Names(), cfg.MaxBytes, log)
		}
	}
}

// cap deletes the oldest records of the largest partitions until all partitions together fit. Compacted topics are left alone: each
// of their records is the newest of its key.
func (b *Broker) cap(topics []string, maxBytes int64, log *slog.Logger) {
	type part struct {
		topic string
		info  *kfake.PartitionInfo
	}
	var parts []part
	var sizes []int64
	for _, topic := range topics {
		info := b.cluster.TopicInfo(topic)
		if info == nil {
			continue
		}
		if policy := info.Configs["cleanup.policy"]; policy != nil && strings.Contains(*policy, "compact") {
			continue
		}
		for _, p := range b.cluster.PartitionInfos(topic) {
			parts = append(parts, part{topic, p})
			sizes = append(sizes, p.NumBytes)
		}
	}
	level := waterLevel(sizes, maxBytes)
	for _, p := range parts {
		if p.info.NumBytes <= level {
			continue
		}
		// Offsets stand in for bytes: records of one partition are alike, and the next sweep corrects what this one missed.
		n := p.info.HighWatermark - p.info.LogStartOffset
		cut := p.info.LogStartOffset + int64(float64(n)*(1-float64(level)/float64(p.info.NumBytes))) + 1
		cut = min(cut, p.info.HighWatermark)
		if err := b.cluster.DeleteRecords(p.topic, p.info.Partition, cut); err != nil {
			continue // the topic was deleted in between
		}
		if log != nil {
			log.Warn("embedded broker: over its size, deleted the oldest records", "topic", p.topic, "partition", p.info.Partition,
				"from", p.info.LogStartOffset, "to", cut, "max_bytes", maxBytes)
		}
	}
}

// waterLevel returns the size that no partition may exceed so that the sum of all fits into total.
func waterLevel(sizes []int64, total int64) int64 {
	s := slices.Clone(sizes)
	slices.Sort(s)
	left := total
	for i, size := range s {
		share := left / int64(len(s)-i)
		if size > share {
			return share
		}
		left -= size
	}
	return total
}
