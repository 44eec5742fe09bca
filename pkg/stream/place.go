package stream

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// PartitionOf is where this package's producers, and those in Java with their defaults, put a key of a topic with n partitions.
// Other producers may put it elsewhere.
func PartitionOf(topic, key string, n int) int32 {
	return int32(kgo.StickyKeyPartitioner(nil).ForTopic(topic).Partition(&kgo.Record{Topic: topic, Key: []byte(key)}, n))
}

// Partitions returns how many partitions a topic has.
func (p *Producer) Partitions(ctx context.Context, topic string) (int, error) {
	p.mu.RLock()
	cl := p.client
	p.mu.RUnlock()
	name := p.cfg.Topic(topic)
	found, err := kadm.NewClient(cl).ListTopics(ctx, name)
	if err == nil {
		err = found.Error()
	}
	if err != nil {
		return 0, fmt.Errorf("counting the partitions of %s: %w", name, err)
	}
	return len(found[name].Partitions), nil
}
